//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// bytesKernels are the kernels of attend_bytes.cu: the most features of a head, and the warps of a block.
var bytesKernels = [...]struct{ wide, warps int }{{128, 8}, {256, 8}}

// Sizes that attend_bytes.cu fixes: the query heads of a block, the features with which it goes on at a time, what a
// head's weights take, and the same as bytes with their sum.
const (
	bytesHeads   = 8
	bytesGrain   = backend.KVScaled
	weightsBytes = 4 * 68
	wordsBytes   = 4*40 + 4
)

// evenSplits is the most parts that any row up to a position has where blocks are divided evenly: evenSplits of
// lib/step.cuh.
func evenSplits(position int) uint32 {
	const least = 4 // blocks
	return min(kernel.MaxSplits, parts(position/backend.BlockSize+1, least))
}

// isBytes says whether kernels have whole numbers of a form: codes, or bytes.
func isBytes(f backend.Form) bool {
	switch f.(type) {
	case backend.Coded, backend.Scaled:
		return true
	}
	return false
}

// bytesShape is how attend_bytes.cu is launched: which kernel, how many query heads a block has, and its shared memory;
// wide is 0 if it does not take such heads. The bits do not depend on the number of heads.
func (k *Kernels) bytesShape(h *kernel.Heads) (wide, warps, once, shared int) {
	n, f := max(h.Features, h.ValueFeatures()), h.Format()
	if !f.Seals() || !isBytes(f.K.Kept()) || !isBytes(f.V.Kept()) || h.Features%bytesGrain != 0 ||
		h.ValueFeatures()%bytesGrain != 0 {
		return 0, 0, 0, 0
	}
	for _, x := range bytesKernels {
		for once = min(bytesHeads, h.Query/h.KV); n <= x.wide && once > 0; once-- {
			shared = bytesShared(h, x.warps, once)
			if h.Query/h.KV%once == 0 && shared <= k.c.Facts.Shared-1<<10 { // the driver takes some for itself
				return x.wide, x.warps, once, shared
			}
		}
	}
	return 0, 0, 0, 0
}

// bytesShared is the shared memory of a block of attend_bytes.cu with so many warps and query heads.
func bytesShared(h *kernel.Heads, warps, once int) int {
	scales := 1
	if c, ok := h.Format().V.Kept().(backend.Coded); ok {
		scales = c.Scales(h.ValueFeatures())
	}
	each := max(weightsBytes+scales*wordsBytes, 4*h.ValueFeatures())
	return once*(h.Features/bytesGrain*72+warps*8) + 16 + max(warps*once*each, 4*once*h.Features)
}

// takesBytes says whether attend_bytes.cu takes heads: then it takes all rows of them, of prompts and answers. Not
// those of a cache in bytes alone, which seals nothing: queries and weights are not rounded there.
func (k *Kernels) takesBytes(h *kernel.Heads) bool {
	wide, _, _, _ := k.bytesShape(h)
	return wide > 0
}

// attendBytesArgs is the arguments of attend_bytes.cu.
// Wide: they are the arguments of a kernel.
type attendBytesArgs struct {
	attendCodedArgs
	once, _ uint32
}

// attendBytes records the parts of attention to sealed blocks of whole numbers.
func (k *Kernels) attendBytes(r *recording, h *kernel.Heads, a *kernel.Attention) error {
	wide, warps, once, shared := k.bytesShape(h)
	coded, err := codedArgs(h, a)
	if err != nil {
		return err
	}
	args := &attendBytesArgs{attendCodedArgs: coded, once: uint32(once)}
	grid := [3]uint32{uint32(h.Query / once), evenSplits(a.Depth), uint32(a.N)}
	return launch(k, r, fmt.Sprintf("attend_bytes_%d", wide), "attendBytes", grid, 32*warps, shared, args)
}

// codedArgs are the arguments that kernels for codes have in common.
func codedArgs(h *kernel.Heads, a *kernel.Attention) (attendCodedArgs, error) {
	f := h.Format()
	key, isCoded := kernel.CodesOf(f.K.Kept(), h.Features)
	value, _ := kernel.CodesOf(f.V.Kept(), h.ValueFeatures())
	if err := turns(key.Rotation, h.Features); isCoded && err != nil {
		return attendCodedArgs{}, err
	}
	return attendCodedArgs{x: a.X, keys: a.Keys, values: a.Values,
		parts: a.Parts, rows: a.Rows, tables: a.Tables, count: a.Count, keyLevels: key.Levels, valueLevels: value.Levels,
		xStride: uint32(a.XStride), window: uint32(a.Window), scale: a.Scale * math.Log2E, cap: a.Cap * math.Log2E,
		chunked: bit(a.Chunked), kind: kernel.KeyKind(f.K.Kept()), valueKind: kernel.ValueKind(f.V.Kept()),
		features: uint32(h.Features), valueFeatures: uint32(h.ValueFeatures()), queries: uint32(h.Query / h.KV),
		power: uint32(key.Rotation.Power), unit: key.Rotation.Scale}, nil
}
