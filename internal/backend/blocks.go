package backend

import (
	"fmt"
	"slices"
)

// Blocks reads and writes the blocks of a model's caches as bytes, so that they can move between tiers. A block is K
// and V, or states, of all layers of a class that are computed here. The layout of its bytes is the device's own, and
// valid only for models that are compiled alike.
//
// No step in flight may write a block that is read, or touch one that is written. All methods return when the copy is
// done.
type Blocks interface {
	// BlockBytes is the size of a block of a class; 0: there is none.
	BlockBytes(class int) int
	// Carry copies blocks to memory and memory to blocks, with the effect of one after the other. None takes memory to
	// a block that an earlier one fills. A device that waits for what it was given before waits as seldom as it can.
	Carry(all []Carriage) error
	// Parts are the memory of a block, in the order of its bytes, where that is the program's; none: it is elsewhere.
	Parts(class int, block int32) ([][]byte, error)
	// CopyBlock makes a block equal to another one.
	CopyBlock(class int, to, from int32) error
}

// Carriage is a copy of a block to memory, or of memory to a block.
type Carriage struct {
	Class  int
	Block  int32
	Out    bool   // from the block to Memory
	Memory []byte // of BlockBytes
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

// Parts implements Blocks.
func (a Areas) Parts(class int, block int32) (parts [][]byte, err error) {
	if err := a.check(class, a.BlockBytes(class), block); err != nil {
		return nil, err
	}
	for _, x := range a[class] {
		parts = append(parts, x.part(block))
	}
	return parts, nil
}

// Carry implements Blocks.
func (a Areas) Carry(all []Carriage) error {
	for i := range all {
		c := &all[i]
		if err := a.check(c.Class, len(c.Memory), c.Block); err != nil {
			return err
		}
		rest := c.Memory
		for _, x := range a[c.Class] {
			if part := x.part(c.Block); c.Out {
				rest = rest[copy(rest, part):]
			} else {
				rest = rest[copy(part, rest):]
			}
		}
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

// Parts implements Blocks: there are none unless all models compute in the program's memory.
func (j Joined) Parts(class int, block int32) (parts [][]byte, err error) {
	for _, b := range j {
		more, err := b.Parts(class, block)
		if err != nil || len(more) == 0 && b.BlockBytes(class) > 0 {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

// Carry implements Blocks.
func (j Joined) Carry(all []Carriage) error {
	rest := slices.Clone(all)
	for i := range rest {
		if c := &rest[i]; len(c.Memory) != j.BlockBytes(c.Class) {
			return fmt.Errorf("%d bytes for a block of cache class %d, which has %d", len(c.Memory), c.Class,
				j.BlockBytes(c.Class))
		}
	}
	for _, b := range j {
		part := slices.Clone(rest)
		for i := range part {
			n := b.BlockBytes(part[i].Class)
			part[i].Memory, rest[i].Memory = rest[i].Memory[:n:n], rest[i].Memory[n:]
		}
		if err := b.Carry(part); err != nil {
			return err
		}
	}
	return nil
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
