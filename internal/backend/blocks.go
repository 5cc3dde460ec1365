package backend

import "fmt"

// Blocks reads and writes the blocks of a model's caches as bytes, so that they can move between tiers. A block is K
// and V, or states, of all layers of a class that are computed here. The layout of its bytes is the device's own, and
// valid only for models that are compiled alike.
//
// No step in flight may write a block that is read, or touch one that is written. All methods return when the copy is
// done.
type Blocks interface {
	// BlockBytes is the size of a block of a class; 0: there is none.
	BlockBytes(class int) int
	// ReadBlock copies a block to memory, and WriteBlock memory to a block, of BlockBytes.
	ReadBlock(class int, block int32, to []byte) error
	WriteBlock(class int, block int32, from []byte) error
	// CopyBlock makes a block equal to another one.
	CopyBlock(class int, to, from int32) error
}

// Area is the memory of one layer's blocks of a class: Each bytes for every block.
type Area struct {
	Memory []byte
	Each   int
}

// Areas are the areas of each cache class. They implement Blocks for devices that compute in the program's memory.
type Areas [][]Area

// BlockBytes implements Blocks.
func (a Areas) BlockBytes(class int) (bytes int) {
	if class < 0 || class >= len(a) {
		return 0
	}
	for _, x := range a[class] {
		bytes += x.Each
	}
	return bytes
}

// ReadBlock implements Blocks.
func (a Areas) ReadBlock(class int, block int32, to []byte) error {
	if err := a.check(class, len(to), block); err != nil {
		return err
	}
	for _, x := range a[class] {
		to = to[copy(to, x.part(block)):]
	}
	return nil
}

// WriteBlock implements Blocks.
func (a Areas) WriteBlock(class int, block int32, from []byte) error {
	if err := a.check(class, len(from), block); err != nil {
		return err
	}
	for _, x := range a[class] {
		from = from[copy(x.part(block), from):]
	}
	return nil
}

// CopyBlock implements Blocks.
func (a Areas) CopyBlock(class int, to, from int32) error {
	if class < 0 || class >= len(a) {
		return fmt.Errorf("cache class %d of %d", class, len(a))
	}
	if err := a.check(class, a.BlockBytes(class), to, from); err != nil {
		return err
	}
	for _, x := range a[class] {
		copy(x.part(to), x.part(from))
	}
	return nil
}

// part returns the bytes of a block in the area.
func (x Area) part(block int32) []byte { return x.Memory[int(block)*x.Each:][:x.Each] }

func (a Areas) check(class, bytes int, blocks ...int32) error {
	if class < 0 || class >= len(a) {
		return fmt.Errorf("cache class %d of %d", class, len(a))
	}
	if want := a.BlockBytes(class); bytes != want {
		return fmt.Errorf("%d bytes for a block of cache class %d, which has %d", bytes, class, want)
	}
	for _, b := range blocks {
		for _, x := range a[class] {
			if n := len(x.Memory) / x.Each; b < 0 || int(b) >= n {
				return fmt.Errorf("block %d of cache class %d, which has %d", b, class, n)
			}
		}
	}
	return nil
}

// Joined are the Blocks of several models that compute a program together: a block is the bytes that it has in each of
// them, one after the other.
type Joined []Blocks

// BlockBytes implements Blocks.
func (j Joined) BlockBytes(class int) (bytes int) {
	for _, b := range j {
		bytes += b.BlockBytes(class)
	}
	return bytes
}

// ReadBlock implements Blocks.
func (j Joined) ReadBlock(class int, block int32, to []byte) error {
	return j.each(class, to, func(b Blocks, part []byte) error { return b.ReadBlock(class, block, part) })
}

// WriteBlock implements Blocks.
func (j Joined) WriteBlock(class int, block int32, from []byte) error {
	return j.each(class, from, func(b Blocks, part []byte) error { return b.WriteBlock(class, block, part) })
}

// CopyBlock implements Blocks.
func (j Joined) CopyBlock(class int, to, from int32) error {
	for _, b := range j {
		if err := b.CopyBlock(class, to, from); err != nil {
			return err
		}
	}
	return nil
}

func (j Joined) each(class int, bytes []byte, move func(b Blocks, part []byte) error) error {
	if want := j.BlockBytes(class); len(bytes) != want {
		return fmt.Errorf("%d bytes for a block of cache class %d, which has %d", len(bytes), class, want)
	}
	for _, b := range j {
		n := b.BlockBytes(class)
		if err := move(b, bytes[:n]); err != nil {
			return err
		}
		bytes = bytes[n:]
	}
	return nil
}
