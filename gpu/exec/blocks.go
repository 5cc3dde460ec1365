package exec

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/backend"
)

// blocks implements backend.Blocks: where the blocks of caches lie on the device, and the staging buffer through which
// they are read and written. Each copy runs after all that was submitted before.
type blocks struct {
	queue  *queue
	memory *memory
	areas  [][]area // by cache class
	staged *driver.Buffer
}

// area is memory that has each bytes for each block of a class.
type area struct {
	buffer *driver.Buffer
	each   uint64
	count  int
}

func (x *area) at(block int32) uint64 { return uint64(block) * x.each }

// BlockBytes implements backend.Blocks.
func (b *blocks) BlockBytes(class int) (bytes int) {
	if class < 0 || class >= len(b.areas) {
		return 0
	}
	for _, x := range b.areas[class] {
		bytes += int(x.each)
	}
	return bytes
}

// Parts implements backend.Blocks: blocks are in the device's memory.
func (b *blocks) Parts(class int, block int32) ([][]byte, error) { return nil, b.check(class, block) }

// together is how many bytes of blocks one submission copies at most, unless a block has more.
const together = 16 << 20

// Carry implements backend.Blocks: by as few submissions as the staging buffer allows.
func (b *blocks) Carry(all []backend.Carriage) error {
	for i := range all {
		if err := b.check(all[i].Class, all[i].Block); err != nil {
			return err
		}
		if have, want := len(all[i].Memory), b.BlockBytes(all[i].Class); have != want {
			return fmt.Errorf("%d bytes for a block of cache class %d, which has %d", have, all[i].Class, want)
		}
	}
	if err := b.stage(); err != nil {
		return err
	}
	for len(all) > 0 {
		n, bytes := 0, 0
		for n < len(all) && bytes+len(all[n].Memory) <= len(b.staged.Bytes) {
			bytes += len(all[n].Memory)
			n++
		}
		if err := b.submit(all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// submit copies blocks that fit the staging buffer: one whose block another one had before, behind that.
func (b *blocks) submit(all []backend.Carriage) error {
	staged := b.staged.Bytes
	for _, c := range all {
		if !c.Out {
			copy(staged, c.Memory)
		}
		staged = staged[len(c.Memory):]
	}
	err := b.queue.once(func(r driver.Recording) error {
		at, since := uint64(0), 0 // since the last barrier
		r.BarrierAll()
		for n, c := range all {
			same := func(x backend.Carriage) bool { return x.Class == c.Class && x.Block == c.Block }
			if slices.ContainsFunc(all[since:n], same) {
				r.BarrierAll()
				since = n
			}
			for i := range b.areas[c.Class] {
				x := &b.areas[c.Class][i]
				if c.Out {
					r.Copy(b.staged, at, x.buffer, x.at(c.Block), x.each)
				} else {
					r.Copy(x.buffer, x.at(c.Block), b.staged, at, x.each)
				}
				at += x.each
			}
		}
		r.BarrierAll()
		r.BarrierToHost()
		return nil
	})
	if err != nil {
		return err
	}
	staged = b.staged.Bytes
	for _, c := range all {
		if c.Out {
			copy(c.Memory, staged)
		}
		staged = staged[len(c.Memory):]
	}
	return nil
}

// CopyBlock implements backend.Blocks.
func (b *blocks) CopyBlock(class int, to, from int32) error {
	if err := b.check(class, to, from); err != nil || to == from {
		return err
	}
	return b.queue.once(func(r driver.Recording) error {
		r.BarrierAll()
		for i := range b.areas[class] {
			x := &b.areas[class][i]
			r.Copy(x.buffer, x.at(to), x.buffer, x.at(from), x.each)
		}
		r.BarrierAll()
		return nil
	})
}

// check refuses classes and blocks that do not exist.
func (b *blocks) check(class int, which ...int32) error {
	if class < 0 || class >= len(b.areas) {
		return fmt.Errorf("cache class %d of %d", class, len(b.areas))
	}
	for _, x := range b.areas[class] {
		for _, block := range which {
			if block < 0 || int(block) >= x.count {
				return fmt.Errorf("block %d of cache class %d, which has %d", block, class, x.count)
			}
		}
	}
	return nil
}

// stage takes the staging buffer, when it is first needed.
func (b *blocks) stage() (err error) {
	if b.staged != nil {
		return nil
	}
	most, all := 0, 0
	for class, areas := range b.areas {
		most = max(most, b.BlockBytes(class))
		for _, x := range areas {
			all += int(x.each) * x.count
		}
	}
	b.staged, err = b.memory.raw(driver.Staging, uint64(max(most, min(together, all))), "blocks of caches on their way")
	return err
}

var _ backend.Blocks = (*blocks)(nil)
