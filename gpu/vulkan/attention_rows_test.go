//go:build cgo && linux

package vulkan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/quant"
)

// filled is a cache of random numbers.
func (g *gpu) filled(h *kernel.Heads, blocks int, rnd *rand.Rand) *vk.Buffer {
	b := g.room(h.KeyBytes(blocks))
	switch h.Format() {
	case backend.KVF32.Format:
		for i := range view[float32](b.Bytes) {
			view[float32](b.Bytes)[i] = float32(rnd.NormFloat64())
		}
	case backend.KVF16.Format:
		for i := range view[uint16](b.Bytes) {
			view[uint16](b.Bytes)[i] = quant.F32ToF16(float32(rnd.NormFloat64()))
		}
	default:
		for i := range view[uint32](b.Bytes) { // bytes, and as a scale a number between 2^-6 and 2^-4
			view[uint32](b.Bytes)[i] = rnd.Uint32()&0x00ffffff | 0x3c000000 | rnd.Uint32()&0x01000000
		}
	}
	return b
}

// spoil has a feature of a position's values be infinite, where a cache can hold that.
func spoil(h *kernel.Heads, values *vk.Buffer, block, position, feature int) {
	at := (block*h.KV*backend.BlockSize+position%backend.BlockSize)*h.ValueFeatures() + feature
	switch h.Format() {
	case backend.KVF32.Format:
		view[float32](values.Bytes)[at] = float32(math.Inf(1))
	case backend.KVF16.Format:
		view[uint16](values.Bytes)[at] = 0x7c00
	}
}

// TestRowAloneTogether: many rows at once have the bits of each row by itself, whatever lies among them.
func TestRowAloneTogether(t *testing.T) {
	g := open(t)
	for _, c := range []struct {
		h      kernel.Heads
		change func(*kernel.Attention)
	}{
		{kernel.Heads{Query: 8, KV: 2, Features: 128, Cache: backend.KVF32.Format}, func(*kernel.Attention) {}},
		{kernel.Heads{Query: 4, KV: 1, Features: 64, Cache: backend.KVF16.Format}, func(a *kernel.Attention) { a.Window = 77 }},
		{kernel.Heads{Query: 8, KV: 1, Features: 64, Cache: backend.KVQ8.Format}, func(a *kernel.Attention) { a.Cap = 3 }},
		{kernel.Heads{Query: 2, KV: 2, Features: 96, Values: 64, Cache: backend.KVF16.Format},
			func(a *kernel.Attention) { a.Window, a.Chunked = 40, true }},
		{kernel.Heads{Query: 2, KV: 1, Features: 32, Values: 128, Cache: backend.KVQ8.Format}, func(*kernel.Attention) {}},
		{kernel.Heads{Query: 16, KV: 1, Features: 64, Cache: backend.KVF32.Format}, func(*kernel.Attention) {}},
		{kernel.Heads{Query: 8, KV: 2, Features: 128, Cache: backend.KVF16.Format}, func(*kernel.Attention) {}},
		{kernel.Heads{Query: 2, KV: 2, Features: 256, Cache: backend.KVF16.Format}, func(a *kernel.Attention) {
			a.Cap,
				a.Window = 2, 90
		}},
	} {
		t.Run(fmt.Sprint(c.h), func(t *testing.T) {
			g := g.with(t)
			require.True(t, g.k.tiles(&c.h, &kernel.Attention{}) || c.h.Features > 128,
				"not everywhere is as much shared memory")
			rnd := rand.New(rand.NewPCG(7, 8))
			const first, second, third = 9, 3, 1 // blocks
			tables := []uint32{}
			for _, b := range rnd.Perm(first + second + third) {
				tables = append(tables, uint32(b))
			}
			var rows []kernel.Row
			for p := 495; p < 530; p++ { // where splits become longer
				rows = append(rows, kernel.Row{Position: uint32(p)})
			}
			for p := 60; p < 66; p++ {
				rows = append(rows, kernel.Row{Position: uint32(p), Table: first})
			}
			rows = append(rows, kernel.Row{Position: 0, Table: first + second}, kernel.Row{Position: 190, Table: first},
				kernel.Row{Position: 570},
				kernel.Row{Position: 1 << 20, Table: 1 << 20}) // not there
			keys, values := g.filled(&c.h, len(tables), rnd), g.room(c.h.ValueBytes(len(tables)))
			copy(values.Bytes, g.filled(&kernel.Heads{KV: c.h.KV, Features: c.h.ValueFeatures(), Cache: c.h.Cache},
				len(tables)+8, rnd).Bytes)
			for feature, p := range []int{515, 440} { // some rows end before the one, or their window begins behind the other
				spoil(&c.h, values, int(tables[p/64]), p, feature)
			}
			list := g.room(uint64(8 * len(rows)))
			copy(view[kernel.Row](list.Bytes), rows)
			out := c.h.Query * c.h.ValueFeatures()
			a := &kernel.Attention{X: g.floats(randomRow(len(rows)*c.h.Query*c.h.Features, 5)).Address, Keys: keys.Address,
				Values: values.Address, Parts: g.room(c.h.PartBytes(len(rows))).Address, Rows: list.Address,
				Tables: g.words(tables...).Address, XStride: c.h.Query * c.h.Features, YStride: out, N: len(rows),
				Scale: 0.1, Depth: 575, Count: g.words(uint32(len(rows) - 1)).Address}
			c.change(a)
			run := func(attend func(*vk.Recording, *kernel.Heads, *kernel.Attention) error, together bool) []uint32 {
				defer func(was bool) { g.k.together = was }(g.k.together)
				g.k.together = together
				y := g.room(uint64(4 * out * len(rows)))
				a.Y = y.Address
				g.run(func(r *vk.Recording) { require.NoError(t, attend(r, &c.h, a)) })
				return slices.Clone(view[uint32](y.Bytes))
			}
			alone := run(g.k.attendAny, false)
			require.NotZero(t, alone[0])
			ways := map[string][]uint32{"together": run(g.k.attendAny, true)} // or as before, if it is too large
			for name, all := range ways {
				for r := range len(rows) - 1 {
					require.Equal(t, alone[r*out:(r+1)*out], all[r*out:(r+1)*out], "row %d %s", r, name)
				}
			}
		})
	}
}
