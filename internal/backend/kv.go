package backend

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// BlockSize is the number of positions in a KV block.
const BlockSize = 64

// BlocksFor is the number of blocks that hold so many positions.
func BlocksFor(positions int) int { return (positions + BlockSize - 1) / BlockSize }

// WindowBlocks is how many blocks of a cache class with a window one sequence needs at most, however long it grows, if
// it asks for `ahead` positions beyond what is computed and reports progress once a block: they hold what the next row
// sees, and partial blocks at both ends.
func WindowBlocks(window, ahead int) int { return BlocksFor(window+ahead) + 3 }

// Window is how many positions a sequence keeps of a cache class, as ir.Class.Window counts them: 0 is all. For states
// they reach over the block that the next row changes and the one before: if a step fails, the state in the newer block
// is of no use, and the sequence goes on from the end of the older one.
func Window(c ir.Class) int {
	if c.State {
		return BlockSize + 1
	}
	return c.Window
}

// Format is how the caches of one class are kept: K and V, each in a form of its own. A device has kernels for some
// formats, and refuses the others by name.
type Format struct {
	Name string
	K, V Side
}

// Side is the form of K, or of V. Rows are stored in open blocks. If Sealed is set, a block is sealed as soon as its 64
// rows are there: a row reads its own block from Open, and all earlier ones from Sealed. So what a row
// sees is a function of its position, whatever step it comes in, and a row that is stored again is sealed again.
type Side struct {
	Open   Form
	Sealed Form // nil: blocks stay as they are
}

// Kept is the form of full blocks.
func (s Side) Kept() Form {
	if s.Sealed != nil {
		return s.Sealed
	}
	return s.Open
}

// Form is how the 64 rows of one KV head lie in a block, with a plain implementation. A device whose kernels use
// another layout keeps values that are equal to these to the bit. Forms are compared by ==.
type Form interface {
	// Bytes is the size of 64 rows of so many features.
	Bytes(features int) int
	// Put stores rows from row `at` of the block on. In a sealed block it is called once, with all 64.
	Put(block []byte, features, at int, rows []float32)
	// Get reads rows from row `at` of the block on.
	Get(rows []float32, block []byte, features, at int)
}

// String is the format's name.
func (f Format) String() string {
	if f.Name == "" {
		return "no cache format"
	}
	return f.Name
}

// Seals says whether full blocks of the format are kept in another form than the one that rows are stored in.
func (f Format) Seals() bool { return f.K.Sealed != nil || f.V.Sealed != nil }

// BlockBytes is the size of a block of one layer, without what a device may add for its layout.
func (f Format) BlockBytes(l ir.KVLayer) int {
	return l.KVHeads * (f.K.Kept().Bytes(l.KDim) + f.V.Kept().Bytes(l.VDim))
}

// RecentBytes is the size of an open block of one layer, in which rows are stored until it is sealed.
func (f Format) RecentBytes(l ir.KVLayer) int {
	return l.KVHeads * (f.K.Open.Bytes(l.KDim) + f.V.Open.Bytes(l.VDim))
}

// KV is the formats of a model's caches: one for all, one of their own for those of classes with a window, or one for
// each cache. Caches of a class may differ in format: they share its table of blocks, not its bytes.
type KV struct {
	Format
	Windowed Format   // zero: the same
	Layers   []Format // by ir.Program.KV; nil: as the other fields say
}

// Of is the format of cache i of a program, which is of class c.
func (kv KV) Of(i int, c ir.Class) Format {
	switch {
	case i < len(kv.Layers):
		return kv.Layers[i]
	case c.Window > 0 && kv.Windowed != (Format{}):
		return kv.Windowed
	}
	return kv.Format
}

// of is the format of cache i of p.
func (kv KV) of(p *ir.Program, i int) Format { return kv.Of(i, p.Classes[p.KV[i].Class]) }

// Seals says whether any cache seals its full blocks.
func (kv KV) Seals() bool {
	return kv.Format.Seals() || kv.Windowed.Seals() || slices.ContainsFunc(kv.Layers, Format.Seals)
}

// Sealing is a program for caches of these formats: p with one more class for each class of which a cache seals blocks,
// or p itself if none does. New rows are stored in blocks of the additional class. Their owner frees such a block as
// soon as its contents are settled, as it frees blocks behind a window.
func (kv KV) Sealing(p *ir.Program) *ir.Program {
	recent := make([]int, len(p.Classes))
	sealing := *p
	sealing.Classes, sealing.KV = slices.Clone(p.Classes), slices.Clone(p.KV)
	for c := range p.Classes {
		if kv.sealsIn(p, c) {
			recent[c] = len(sealing.Classes)
			sealing.Classes = append(sealing.Classes, ir.Class{Window: BlockSize, Chunked: true})
		}
	}
	if len(sealing.Classes) == len(p.Classes) {
		return p
	}
	for i := range sealing.KV {
		if kv.of(p, i).Seals() {
			sealing.KV[i].Recent = recent[sealing.KV[i].Class]
		}
	}
	return &sealing
}

// sealsIn says whether a cache of a class seals blocks.
func (kv KV) sealsIn(p *ir.Program, class int) bool {
	for i, l := range p.KV {
		if l.Class == class && kv.of(p, i).Seals() {
			return true
		}
	}
	return false
}

// checkFor checks the formats, and that the classes of p are those that Sealing makes for them.
func (kv KV) checkFor(p *ir.Program) error {
	if err := kv.Check(); err != nil {
		return err
	}
	if kv.Layers != nil && len(kv.Layers) != len(p.KV) {
		return fmt.Errorf("formats of %d caches: the program has %d", len(kv.Layers), len(p.KV))
	}
	for i, l := range p.KV {
		f := kv.of(p, i)
		switch {
		case f.Seals() && p.Whole:
			return fmt.Errorf("cache %d: %s seals blocks, but rows of the model see those after them: want %s", i, f,
				KVListOpen())
		case f.Seals() != (l.Recent > 0):
			return fmt.Errorf("cache %d in %s: it seals blocks: %t, has a class of recent ones: %t: see KV.Sealing", i, f,
				f.Seals(), l.Recent > 0)
		}
	}
	return nil
}

// BlockBytes is the size of a block of all layers of a program.
func (kv KV) BlockBytes(p *ir.Program) (bytes int64) {
	for i, l := range p.KV {
		bytes += int64(kv.of(p, i).BlockBytes(l))
	}
	return bytes
}

// Check is an error for a format without forms, in which nothing can be kept.
func (kv KV) Check() error {
	for i, f := range append([]Format{kv.Format, kv.Windowed}, kv.Layers...) {
		if unset := i == 1 && f == (Format{}); !unset && (f.K.Open == nil || f.V.Open == nil) {
			return fmt.Errorf("cache format %q has no form for K or V: want %s", f.Name, KVList())
		}
	}
	return nil
}

// StateBytes is what a block of one state holds, which is float32 whatever the format of K and V.
func StateBytes(l ir.StateLayer) int { return 4 * l.Values }
