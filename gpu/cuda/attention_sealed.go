//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/kvcode"
)

// The largest factor of a number of features, beside a power of two, that a rotation has, and the most features that
// are sealed.
const (
	mostOuter    = 32
	mostFeatures = 1024
)

// turns is an error if heads of so many features cannot be rotated by kernels.
func turns(r *kvcode.Rotation, features int) error {
	if features/r.Power > mostOuter || features > mostFeatures {
		return fmt.Errorf("a head of %d features, %d times a power of two, is not rotated on CUDA: want at most %d, %d times",
			features, features/r.Power, mostFeatures, mostOuter)
	}
	return nil
}

// sealArgs is the arguments of seal.cu.
// Wide: they are the arguments of a kernel.
type sealArgs struct {
	open, kept, rows, recent, tables, count, levels    uint64
	openKind, kind, features, grouped, ofValues, power uint32
	unit, scale                                        float32
}

// seal records the launches that seal K and V.
func (k *Kernels) seal(r *recording, s *kernel.Seal) error {
	h, f := &s.Heads, s.Heads.Format()
	a := sealArgs{open: s.Recent.Keys, kept: s.Keys, rows: s.Rows, recent: s.Recent.Rows, tables: s.Tables, count: s.Count,
		openKind: kernel.KeyKind(f.K.Open), kind: kernel.KeyKind(f.K.Kept()), features: uint32(h.Features),
		grouped: backend.KVScaled}
	if err := k.sealSide(r, s, &a, f.K.Kept()); err != nil {
		return err
	}
	values := a // a copy: a recording keeps the address of its arguments
	values.open, values.kept, values.ofValues = s.Recent.Values, s.Values, 1
	values.openKind, values.kind = kernel.ValueKind(f.V.Open), kernel.ValueKind(f.V.Kept())
	values.features, values.grouped = uint32(h.ValueFeatures()), uint32(h.ValueFeatures())
	return k.sealSide(r, s, &values, f.V.Kept())
}

func (k *Kernels) sealSide(r *recording, s *kernel.Seal, a *sealArgs, form backend.Form) error {
	features := int(a.features)
	codes, ok := kernel.CodesOf(form, features)
	if err := turns(codes.Rotation, features); ok && err != nil {
		return err
	}
	a.power, a.levels, a.unit, a.scale = uint32(codes.Rotation.Power), codes.Levels, codes.Unit, codes.Rotation.Scale
	return launch(k, r, "seal", "seal", [3]uint32{uint32(s.Heads.KV), uint32(s.N), 1}, 256, kernel.SealShared(features), a)
}

// attendCodedArgs is the arguments of attend_coded.cu.
// Wide: they are the arguments of a kernel.
type attendCodedArgs struct {
	x, keys, values, parts, rows, tables, count, keyLevels, valueLevels uint64
	xStride, window                                                     uint32
	scale, cap                                                          float32
	chunked, kind, valueKind, features, valueFeatures, queries, power   uint32
	unit                                                                float32
}

// attendSealed records attention for caches whose full blocks are sealed: each row's own block is a part of its own.
func (k *Kernels) attendSealed(r *recording, h *kernel.Heads, a *kernel.Attention) error {
	attend := k.attendCoded
	if k.takesBytes(h) {
		attend = k.attendBytes
	}
	if err := attend(r, h, a); err != nil {
		return err
	}
	own := a.Own()
	if err := k.attendParts(r, h.Recent(), &own, true); err != nil {
		return err
	}
	r.Barrier()
	form := h.Format().V.Kept()
	codes, _ := kernel.CodesOf(form, h.ValueFeatures())
	grid := [3]uint32{uint32(h.Query), uint32(a.N), 1}
	return launch(k, r, "merge_coded", "mergeCoded", grid, 64, 4*h.ValueFeatures(), &mergeCodedArgs{parts: a.Parts, y: a.Y,
		rows: a.Rows, sinks: a.Sinks, count: a.Count, kind: kernel.ValueKind(form), features: uint32(h.ValueFeatures()),
		power: uint32(codes.Rotation.Power), yStride: uint32(a.YStride), scale: codes.Rotation.Scale})
}

// mergeCodedArgs is the arguments of merge_coded.cu.
type mergeCodedArgs struct {
	parts, y, rows, sinks, count   uint64
	kind, features, power, yStride uint32
	scale                          float32
	_                              uint32
}

// attendCoded records the parts of sealed blocks.
func (k *Kernels) attendCoded(r *recording, h *kernel.Heads, a *kernel.Attention) error {
	args, err := codedArgs(h, a)
	if err != nil {
		return err
	}
	once, shared := k.codedHeads(h)
	if shared > k.c.Facts.Shared {
		return fmt.Errorf("attention of heads of %d and %d features in %s needs %d bytes of shared memory, the card has %d",
			h.Features, h.ValueFeatures(), h.Format(), shared, k.c.Facts.Shared)
	}
	module := fmt.Sprintf("attend_coded_%d", once)
	if h.ValueFeatures() > codedFeatures {
		module = fmt.Sprintf("attend_coded_wide_%d", once)
	}
	grid := [3]uint32{uint32(h.Query / once), evenSplits(a.Depth), uint32(a.N)}
	return launch(k, r, module, "attendCoded", grid, 256, shared, &args)
}

// codedFeatures is the most features of a value that attend_coded.cu takes, unless it is compiled for more.
const codedFeatures = 128

// codedHeads is how many query heads share a block of attend_coded.cu, and the shared memory that it takes: the bits do
// not depend on it.
func (k *Kernels) codedHeads(h *kernel.Heads) (once, shared int) {
	const many = 4
	if h.ValueFeatures() <= codedFeatures && h.Query/h.KV%many == 0 && codedShared(h, many) <= k.c.Facts.Shared {
		return many, codedShared(h, many)
	}
	return 1, codedShared(h, 1)
}

// codedShared is the shared memory of attend_coded.cu for so many heads at once.
func codedShared(h *kernel.Heads, once int) int {
	const teams = 4
	parts, scales := (h.Features+31)/32, (h.ValueFeatures()+31)/32
	if v, ok := h.Format().V.Kept().(backend.Coded); ok {
		scales = v.Scales(h.ValueFeatures())
	}
	return teams*once*(136*scales+320) + 44*once*parts + 4*max(once*h.Features, teams*h.ValueFeatures())
}
