package place

import (
	"cmp"
	"fmt"
	"sort"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// cache is what decides how large a KV cache is.
type cache struct {
	program   *ir.Program
	kv        backend.KV
	sequences int // that go on at once, or wait in the prefix tree to be continued, at least
	eased     int // of these, those that states are kept of; 0: all
	ahead     int // positions beyond what is computed that each asks for
	context   int // blocks of the longest one; 0: as many as a class that keeps all has
	// By KV layer and by state, whether the host of a device has it; nil: it has none.
	layers, kept []bool
}

// room is memory for caches: a device's, or the program's where that is all there is, and the host's of a device that
// computes some segments there.
type room struct{ device, host int64 }

// holds says whether there is room for as much, on either side.
func (r room) holds(need room) bool { return need.device <= r.device && need.host <= r.host }

func (r room) less(n room) room { return room{r.device - n.device, r.host - n.host} }

func (r room) plus(n room) room { return room{r.device + n.device, r.host + n.host} }

// short is the side that has too little for a need: its bytes, and those that are needed.
func (r room) short(need room) (have, want int64) {
	if need.device > r.device {
		return r.device, need.device
	}
	return r.host, need.host
}

// add counts bytes on one side or the other.
func (r *room) add(onHost bool, bytes int64) {
	if onHost {
		r.host += bytes
	} else {
		r.device += bytes
	}
}

// plan fixes the context of a model and the blocks of each cache class. What was not asked for takes at most share
// bytes; what was asked for, free.
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
	if need := c.states(blocks); !free.holds(need) {
		have, want := free.short(need)
		return fmt.Errorf("the recurrent states of a sequence and a step need %d MiB, %d MiB are available: fewer rows a step "+
			"(%d now) need less", want/mib, have/mib, m.Rows)
	}
	if most := max(c.fit(free.less(c.states(blocks))), leastBlocks); blocks > most {
		have, want := free.short(c.bytes(blocks).plus(c.states(blocks)))
		return fmt.Errorf("a context of %d tokens needs a KV cache of %d MiB with what else was asked for, %d MiB are "+
			"available: ask for a context of at most %d tokens", m.Context, want/mib, have/mib,
			most*c.context/blocks*backend.BlockSize)
	}
	for _, class := range c.program.Classes {
		layout.Blocks = append(layout.Blocks, c.blocks(class, blocks))
	}
	all := c.bytes(blocks).plus(c.states(blocks))
	m.KV, m.HostKV = all.device, all.host
	return nil
}

// fit is how many blocks classes that keep all may have so that the whole cache takes no more than so many bytes.
func (c *cache) fit(bytes room) int {
	const beyondAll = 1 << 31
	return sort.Search(beyondAll, func(blocks int) bool { return !bytes.holds(c.bytes(blocks + 1)) })
}

// bytes is what keys and values take where classes that keep all have so many blocks.
func (c *cache) bytes(all int) (bytes room) {
	for i, l := range c.program.KV {
		class := c.program.Classes[l.Class]
		bytes.add(c.layers != nil && c.layers[i], int64(c.blocks(class, all))*int64(c.kv.Of(class).BlockBytes(l)))
	}
	return bytes
}

// states is what recurrent states take, which come on top: they do not grow with the context, so that fewer blocks for
// the other classes would not make room for them.
func (c *cache) states(all int) (bytes room) {
	for i, l := range c.program.States {
		bytes.add(c.kept != nil && c.kept[i],
			int64(c.blocks(c.program.Classes[l.Class], all))*int64(backend.StateBytes(l)))
	}
	return bytes
}

// ease has fewer sequences, and steps of fewer rows, where states would take more than so many bytes: a step leaves one
// for every block of its rows. It returns the rows.
func (c *cache) ease(rows, flight int, bytes room) int {
	const leastRows, beyondAll = 64, 1 << 20
	for c.ahead = (flight + 1) * rows; !bytes.holds(c.states(beyondAll)); c.ahead = (flight + 1) * rows {
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
