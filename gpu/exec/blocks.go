package exec

import (
	"fmt"

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

// ReadBlock implements backend.Blocks.
func (b *blocks) ReadBlock(class int, block int32, to []byte) error {
	err := b.move(class, len(to), func(r driver.Recording, x *area, at uint64) {
		r.Copy(b.staged, at, x.buffer, x.at(block), x.each)
	}, block)
	if err == nil {
		copy(to, b.staged.Bytes)
	}
	return err
}

// WriteBlock implements backend.Blocks.
func (b *blocks) WriteBlock(class int, block int32, from []byte) error {
	if err := b.stage(class, len(from), block); err != nil {
		return err
	}
	copy(b.staged.Bytes, from)
	return b.move(class, len(from), func(r driver.Recording, x *area, at uint64) {
		r.Copy(x.buffer, x.at(block), b.staged, at, x.each)
	}, block)
}

// CopyBlock implements backend.Blocks.
func (b *blocks) CopyBlock(class int, to, from int32) error {
	if to == from {
		return b.stage(class, -1, to)
	}
	return b.move(class, -1, func(r driver.Recording, x *area, _ uint64) {
		r.Copy(x.buffer, x.at(to), x.buffer, x.at(from), x.each)
	}, to, from)
}

// move records a copy for each area of a class, by the function each, and waits until it has run. at is the area's
// offset in the staging buffer.
func (b *blocks) move(class, bytes int, each func(r driver.Recording, x *area, at uint64), which ...int32) error {
	if err := b.stage(class, bytes, which...); err != nil {
		return err
	}
	return b.queue.once(func(r driver.Recording) error {
		r.BarrierAll()
		at := uint64(0)
		for i := range b.areas[class] {
			x := &b.areas[class][i]
			each(r, x, at)
			at += x.each
		}
		r.BarrierAll()
		r.BarrierToHost()
		return nil
	})
}

// stage checks a request, and takes the staging buffer, for the largest block, when it is first needed. bytes is -1 for
// a request that needs no staging buffer.
func (b *blocks) stage(class, bytes int, which ...int32) (err error) {
	if class < 0 || class >= len(b.areas) {
		return fmt.Errorf("cache class %d of %d", class, len(b.areas))
	}
	if want := b.BlockBytes(class); bytes >= 0 && bytes != want {
		return fmt.Errorf("%d bytes for a block of cache class %d, which has %d", bytes, class, want)
	}
	for _, x := range b.areas[class] {
		for _, block := range which {
			if block < 0 || int(block) >= x.count {
				return fmt.Errorf("block %d of cache class %d, which has %d", block, class, x.count)
			}
		}
	}
	if bytes < 0 || b.staged != nil {
		return nil
	}
	most := 0
	for c := range b.areas {
		most = max(most, b.BlockBytes(c))
	}
	b.staged, err = b.memory.raw(driver.Staging, uint64(most), "blocks of caches on their way")
	return err
}

var _ backend.Blocks = (*blocks)(nil)
