package place

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// cache is what decides how large a KV cache is.
type cache struct {
	program   *ir.Program
	kv        backend.KV
	sequences int // that go on at once, or wait in the prefix tree to be continued, at least
	eased     int // of these, those whose recurrent states are kept; 0: all
	ahead     int // positions beyond what is computed that each sequence asks for
	context   int // blocks of the longest sequence; 0: as many as a class that keeps all has
	// By KV layer and by state, the device that has it.
	layers, states []int
	devices        int
}

// room is memory for caches, by device.
type room []int64

// lacks is the last device that has less room than is needed there; -1: none.
func (r room) lacks(need room) int {
	for d := len(need) - 1; d >= 0; d-- {
		if need[d] > r[d] {
			return d
		}
	}
	return -1
}

// holds says whether there is room for as much, on every device.
func (r room) holds(need room) bool { return r.lacks(need) < 0 }

// plus is the room and n times another.
func (r room) plus(n int64, other room) room {
	sum := slices.Clone(r)
	for d := range other {
		sum[d] += n * other[d]
	}
	return sum
}

// short returns, for the device that lacks room, what it has and what is needed there, in bytes.
func (r room) short(need room) (have, want int64) {
	d := max(r.lacks(need), 0)
	return r[d], need[d]
}

// plan fixes the context of a model and the blocks of each cache class. What was not asked for takes at most share
// bytes on each device; what was asked for, at most free.
func (c *cache) plan(a *Ask, m *Model, layout *backend.Config, free, share room) error {
	const mib = 1 << 20
	m.Context = a.Context
	if m.Context <= 0 {
		m.Context = min(c.program.Context, max(c.fit(share), leastBlocks)*backend.BlockSize)
	}
	c.context = backend.BlocksFor(m.Context)
	blocks := a.Blocks
	if blocks <= 0 {
		blocks = min(c.context*c.sequences, c.fit(share))
	}
	blocks = max(blocks, c.context)
	states := c.stateBytes(blocks)
	if !free.holds(states) {
		have, want := free.short(states)
		return fmt.Errorf("the recurrent states of a sequence and a step need %d MiB, %d MiB are available: fewer rows a step "+
			"(%d now) need less", want/mib, have/mib, m.Rows)
	}
	all := c.bytes(blocks).plus(1, states)
	if most := max(c.fit(free.plus(-1, states)), leastBlocks); blocks > most {
		have, want := free.short(all)
		return fmt.Errorf("a context of %d tokens needs a KV cache of %d MiB with what else was asked for, %d MiB are "+
			"available: ask for a context of at most %d tokens", m.Context, want/mib, have/mib,
			most*c.context/blocks*backend.BlockSize)
	}
	for _, class := range c.program.Classes {
		layout.Blocks = append(layout.Blocks, c.blocks(class, blocks))
	}
	for d := range m.Takes {
		m.Takes[d].KV = all[d]
	}
	m.Spilled, m.Takes[0].Spilled = c.spill(layout.Blocks, a.KVHost, 0)
	for d, bytes := range a.Adapters {
		m.Takes[d].Spilled += bytes
	}
	if a.KVDisk > 0 {
		m.Kept, _ = c.spill(layout.Blocks, a.KVDisk, fileBytes)
		for class, n := range m.Kept {
			m.Kept[class] = min(n, mostKept/len(m.Kept))
		}
		m.Takes[0].Spilled += m.Files()
	}
	return nil
}

const (
	// Staged is the memory that blocks pass through on their way from and to files, in bytes: several of the blocks that
	// large models have, so that some are read while others are copied to the device.
	Staged = 32 << 20
	// KeptBook is what the books of a block in a file take, in bytes: what tells its text, and where it is.
	KeptBook = 448
	// mostKept is how many blocks are kept in files at most, of all classes together.
	mostKept = 1 << 16
	// fileBytes is what a file takes beside its block.
	fileBytes = 1 << 10
)

// Files is the memory that blocks in files take: what they pass through, and their books.
func (m *Model) Files() int64 {
	if m.Kept == nil {
		return 0
	}
	bytes := int64(Staged)
	for _, n := range m.Kept {
		bytes += int64(n) * KeptBook
	}
	return bytes
}

// Files is the most memory that blocks in so many bytes of files take; see Model.Files. No file
// is smaller than what it has beside its block.
func Files(bytes int64) int64 {
	if bytes == 0 {
		return 0
	}
	return Staged + min(bytes/fileBytes, mostKept)*KeptBook
}

// spill is how many blocks of each class fit so many bytes of the host's memory, in the proportions of the cache
// itself, and the bytes that these take, each with some beside it. Recent blocks of sealed formats are not spilled: no
// prefix needs them.
func (c *cache) spill(blocks []int, bytes, beside int64) (spilled []int, takes int64) {
	each := make([]int64, len(c.program.Classes))
	for i, l := range c.program.KV {
		each[l.Class] += int64(c.kv.Of(i, c.program.Classes[l.Class]).BlockBytes(l))
	}
	for _, l := range c.program.States {
		each[l.Class] += int64(backend.StateBytes(l))
	}
	all, spilled := int64(0), make([]int, len(each))
	for class, n := range blocks {
		if each[class] > 0 {
			each[class] += beside
		}
		all += int64(n) * each[class]
	}
	for class, n := range blocks {
		if each[class] > 0 {
			spilled[class] = int(float64(n) * float64(bytes) / float64(all))
			takes += int64(spilled[class]) * each[class]
		}
	}
	return spilled, takes
}

// fit is how many blocks classes that keep all may have so that the whole cache takes no more than so many bytes.
func (c *cache) fit(bytes room) int {
	const beyondAll = 1 << 31
	return sort.Search(beyondAll, func(blocks int) bool { return !bytes.holds(c.bytes(blocks + 1)) })
}

// bytes is what keys and values take where classes that keep all have so many blocks.
func (c *cache) bytes(all int) room {
	bytes := make(room, c.devices)
	for i, l := range c.program.KV {
		class := c.program.Classes[l.Class]
		bytes[c.layers[i]] += int64(c.blocks(class, all)) * int64(c.kv.Of(i, class).BlockBytes(l))
		if l.Recent > 0 {
			recent := c.blocks(c.program.Classes[l.Recent], all)
			bytes[c.layers[i]] += int64(recent) * int64(c.kv.Of(i, class).RecentBytes(l))
		}
	}
	return bytes
}

// stateBytes is what recurrent states take, which come on top: they do not grow with the context, so that fewer blocks
// for the other classes would not make room for them.
func (c *cache) stateBytes(all int) room {
	bytes := make(room, c.devices)
	for i, l := range c.program.States {
		bytes[c.states[i]] += int64(c.blocks(c.program.Classes[l.Class], all)) * int64(backend.StateBytes(l))
	}
	return bytes
}

// ease reduces the rows of a step, and the sequences whose states are kept, until states take no more than so many
// bytes: a step leaves a state for every block of its rows. It returns the rows.
func (c *cache) ease(rows, flight int, bytes room) int {
	const leastRows, beyondAll = 64, 1 << 20
	for c.ahead = (flight + 1) * rows; !bytes.holds(c.stateBytes(beyondAll)); c.ahead = (flight + 1) * rows {
		switch {
		case rows > 4*leastRows:
			rows /= 2
		case c.eased != 1:
			c.eased = cmp.Or(c.eased, max(c.sequences, 2)) - 1
		case rows > leastRows:
			rows /= 2
		default:
			return rows
		}
	}
	return rows
}

// blocks is the number of blocks of a class where those that keep all have so many. Of a class with a window, a
// sequence holds a window and a little more, however long it is: a class needs that for as many sequences as the others
// hold contexts, room for one of them to prefill, and never more than the others have.
func (c *cache) blocks(class ir.Class, all int) int {
	window := backend.Window(class)
	if window == 0 {
		return all
	}
	context := c.context
	if context == 0 {
		context = all
	}
	contexts := max(c.sequences, (all+context-1)/max(context, 1), 1)
	if class.State && c.eased > 0 {
		contexts = c.eased
	}
	each := backend.BlocksFor(window) + 2
	return min(all, backend.WindowBlocks(window, c.ahead)+(contexts-1)*each)
}
