package backend

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// BlockSize is the number of positions in a KV block.
const BlockSize = 64

// BlocksFor is the number of blocks that hold so many positions.
func BlocksFor(positions int) int { return (positions + BlockSize - 1) / BlockSize }

// WindowBlocks is how many blocks of a cache class with a window one sequence alone needs to go on for ever, if it asks
// for so many positions beyond what is computed, and tells of what is computed once a block: what the next row sees
// comes to that, and parts of blocks at both ends.
func WindowBlocks(window, ahead int) int { return BlocksFor(window+ahead) + 3 }

// Window is how much a sequence keeps of a cache class, as ir.Class has it: 0 is all. Of states it is the block that
// the next row changes and the one before, for what a step that failed left in the newer one is of no use: the sequence
// goes on from the end of the older one.
func Window(c ir.Class) int {
	if c.State {
		return BlockSize + 1
	}
	return c.Window
}

// KVType is the element type of the KV cache.
type KVType uint8

const (
	KVF16 KVType = iota + 1
	KVF32
	// KVQ8 is int8 with float32 scales: of KVScaled features of K, and of a whole head of V. x is kept as round(x·s) with
	// s = 127/amax, and read as that times 1/s, in float32, ties to even. Where amax is below KVTiny all is zero.
	KVQ8
)

const (
	KVScaled = 32 // features with one scale
	KVTiny   = 0x1p-100
)

var kvNames = [...]string{KVF16: "f16", KVF32: "f32", KVQ8: "q8"}

func (t KVType) String() string {
	if t.Check() != nil {
		return fmt.Sprintf("KV type %d", uint8(t))
	}
	return kvNames[t]
}

// ParseKV reads a type's name, or llama.cpp's name of q8.
func ParseKV(name string) (KVType, error) {
	if name == "q8_0" {
		return KVQ8, nil
	}
	for t := KVF16; int(t) < len(kvNames); t++ {
		if kvNames[t] == name {
			return t, nil
		}
	}
	return 0, fmt.Errorf("KV type %q: want f32, f16 or q8", name)
}

// Check is an error for what is no type.
func (t KVType) Check() error {
	if t < KVF16 || int(t) >= len(kvNames) {
		return fmt.Errorf("KV type %d: want f32, f16 or q8", uint8(t))
	}
	return nil
}

// StateBytes is what a block of one state holds, which is float32 whatever the cache's type.
func StateBytes(l ir.StateLayer) int { return 4 * l.Values }

// BlockBytes is what a block of one layer holds, without what a device may add for its layout.
func (t KVType) BlockBytes(l ir.KVLayer) int {
	features := l.KDim + l.VDim
	each := 2 * features
	switch t {
	case KVF32:
		each = 4 * features
	case KVQ8:
		each = features + 4*((l.KDim+KVScaled-1)/KVScaled+1)
	}
	return BlockSize * l.KVHeads * each
}
