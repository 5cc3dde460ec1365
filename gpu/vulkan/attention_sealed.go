//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/kvcode"
)

// mostOuter is the largest factor of a number of features, beside a power of two, that a rotation on a card has.
const mostOuter = 32

// turns is an error if heads of so many features cannot be rotated on a card.
func turns(r *kvcode.Rotation, features int) error {
	if features/r.Power > mostOuter {
		return fmt.Errorf("a head of %d features, %d times a power of two, is not rotated on Vulkan: want at most %d times",
			features, features/r.Power, mostOuter)
	}
	return nil
}

// Seal records a kernel.Seal.
func (k *Kernels) Seal(r *vk.Recording, s *kernel.Seal) error {
	h, f := &s.Heads, s.Heads.Format()
	key := shaders.SealConstants{Opentype: kernel.KeyKind(f.K.Open), Type: kernel.KeyKind(f.K.Kept()),
		Features: uint32(h.Features), Grouped: backend.KVScaled}
	value := shaders.SealConstants{Opentype: kernel.ValueKind(f.V.Open), Type: kernel.ValueKind(f.V.Kept()),
		Features: uint32(h.ValueFeatures()), Grouped: uint32(h.ValueFeatures()), Ofvalues: 1}
	p := shaders.SealPush{Rows: s.Rows, Recent: s.Recent.Rows, Tables: s.Tables, Count: s.Count}
	for _, x := range []struct {
		c          *shaders.SealConstants
		open, kept uint64
		form       backend.Form
	}{{&key, s.Recent.Keys, s.Keys, f.K.Kept()}, {&value, s.Recent.Values, s.Values, f.V.Kept()}} {
		features := int(x.c.Features)
		codes, ok := kernel.CodesOf(x.form, features)
		if err := turns(codes.Rotation, features); ok && err != nil {
			return err
		}
		if shared := kernel.SealShared(features); uint32(shared) > k.d.Facts.Shared {
			return fmt.Errorf("sealing heads of %d features needs %d bytes of shared memory, the device has %d", features,
				shared, k.d.Facts.Shared)
		}
		x.c.Power = uint32(codes.Rotation.Power)
		shader, err := k.kernel(shaders.Seal, x.c.List())
		if err != nil {
			return err
		}
		p := p
		p.Open, p.Kept, p.Levels, p.Unit, p.Scale = x.open, x.kept, codes.Levels, codes.Unit, codes.Rotation.Scale
		vk.Use(r, shader, &p)
		r.Dispatch(uint32(h.KV), uint32(s.N), 1)
	}
	return nil
}

// attendSealed is Attend for caches whose full blocks are sealed: each row's own block is a part of its own.
func (k *Kernels) attendSealed(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	if err := k.attendCoded(r, h, a); err != nil {
		return err
	}
	own := a.Own()
	if err := k.attendParts(r, h.Recent(), &own, true); err != nil {
		return err
	}
	codes, _ := kernel.CodesOf(h.Format().V.Kept(), h.ValueFeatures())
	merge, err := k.kernel(shaders.MergeCoded, shaders.MergeCodedConstants{Type: kernel.ValueKind(h.Format().V.Kept()),
		Values: uint32(h.ValueFeatures()), Power: uint32(codes.Rotation.Power)}.List())
	if err != nil {
		return err
	}
	r.Barrier()
	vk.Use(r, merge, &shaders.MergeCodedPush{Parts: a.Parts, Y: a.Y, Rows: a.Rows, Sinks: a.Sinks, Count: a.Count,
		YStride: uint32(a.YStride), Scale: codes.Rotation.Scale})
	r.Dispatch(uint32(h.Query), uint32(a.N), 1)
	return nil
}

// attendCoded records the parts of sealed blocks, by attend_coded.comp.
func (k *Kernels) attendCoded(r *vk.Recording, h *kernel.Heads, a *kernel.Attention) error {
	key, isCoded := kernel.CodesOf(h.Format().K.Kept(), h.Features)
	value, _ := kernel.CodesOf(h.Format().V.Kept(), h.ValueFeatures())
	if err := turns(key.Rotation, h.Features); isCoded && err != nil {
		return err
	}
	c, err := k.codedConstants(h)
	if err != nil {
		return err
	}
	c.Power = uint32(key.Rotation.Power)
	module := shaders.AttendCoded
	if k.Plain {
		module = shaders.AttendCodedPlain
	}
	attend, err := k.kernel(module, c.List())
	if err != nil {
		return err
	}
	vk.Use(r, attend, &shaders.AttendCodedPush{X: a.X, Keys: a.Keys, Values: a.Values, Parts: a.Parts, Rows: a.Rows,
		Tables: a.Tables, Count: a.Count, XStride: uint32(a.XStride), Window: uint32(a.Window),
		Scale: a.Scale * math.Log2E, Cap: a.Cap * math.Log2E, Chunked: bit(a.Chunked), Unit: key.Rotation.Scale,
		KeyLevels: key.Levels, ValueLevels: value.Levels})
	r.Dispatch(uint32(h.Query)/c.AtOnce, uint32(kernel.MostSplits(a.Depth)), uint32(a.N))
	return nil
}

// codedConstants chooses how many threads a workgroup has, on which the bits depend and which depends on the shape of
// heads alone; then how many query heads share it, and how often it has the levels of books.
func (k *Kernels) codedConstants(h *kernel.Heads) (c shaders.AttendCodedConstants, err error) {
	const mostAtOnce, mostCopies = 8, 16
	f := h.Format()
	c = shaders.AttendCodedConstants{Threads: 256, Type: kernel.KeyKind(f.K.Kept()),
		Valuetype: kernel.ValueKind(f.V.Kept()), Keys: uint32(h.Features), Values: uint32(h.ValueFeatures()),
		Queries: uint32(h.Query / h.KV), AtOnce: 1, Copies: 1}
	for c.Threads > k.d.Facts.Invocations || codedShared(&c) > k.d.Facts.Shared {
		if c.Threads /= 2; c.Threads < 64 {
			return c, fmt.Errorf("attention of heads of %d and %d features in %s needs more than %d bytes of shared memory",
				h.Features, h.ValueFeatures(), f, k.d.Facts.Shared)
		}
	}
	fits := func(c shaders.AttendCodedConstants) bool { return codedShared(&c) <= k.d.Facts.Shared }
	for n := uint32(2); n <= min(mostAtOnce, c.Queries); n++ {
		more := c
		if more.AtOnce = n; c.Queries%n == 0 && n*((c.Values+63)/64) <= 32 && fits(more) {
			c = more
		}
	}
	for more := c; k.d.Facts.Kind != vk.CPU && c.Copies < mostCopies; c = more {
		if more.Copies *= 2; !fits(more) {
			break
		}
	}
	return c, nil
}

// codedShared is the shared memory that attend_coded.comp takes.
func codedShared(c *shaders.AttendCodedConstants) uint32 {
	const firstBook = 6 // of the kinds of codes
	teams, parts, scales := c.Threads/64, (c.Keys+31)/32, (c.Values+31)/32
	if c.Valuetype >= firstBook {
		scales = 1
	}
	books := uint32(0)
	if c.Type >= firstBook {
		books++
	}
	if c.Valuetype >= firstBook && (c.Type != c.Valuetype || c.Keys != c.Values) {
		books++
	}
	return 4*max(c.AtOnce*c.Keys, teams*c.Values) + c.AtOnce*parts*44 + books*1024*c.Copies +
		teams*c.AtOnce*(256+64+136*scales) + 64
}
