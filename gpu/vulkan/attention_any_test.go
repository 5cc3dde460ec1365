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

// anyScene is sequences of random keys and values, all appended, and rows that look at them.
type anyScene struct {
	h            kernel.Heads
	rows         []kernel.Row
	tables       []uint32
	q            [][]float32
	keys, values [][][]float32 // by sequence and position, all KV heads: as the cache must return them
	window       int
	cap          float32
	sinks        []float32
}

// cached is what a cache returns of a head's features.
func cached(t backend.Format, x []float32, grouped int) []float32 {
	y := make([]float32, len(x))
	for from := 0; from < len(x); from += grouped {
		group := x[from:min(from+grouped, len(x))]
		amax := float32(0)
		for _, v := range group {
			amax = max(amax, v, -v)
		}
		for i, v := range group {
			switch t {
			case backend.KVF32.Format:
				y[from+i] = v
			case backend.KVF16.Format:
				y[from+i] = quant.F16ToF32(quant.F32ToF16(v))
			case backend.KVQ8.Format:
				if amax >= backend.KVTiny {
					s := 127 / amax
					y[from+i] = float32(math.RoundToEven(float64(v*s))) * (1 / s)
				}
			}
		}
	}
	return y
}

// attend is a query head's result, in float64.
func (s *anyScene) attend(sequence, head int) []float64 {
	position := int(s.rows[sequence].Position)
	y := make([]float64, s.h.ValueFeatures())
	kv, from, total := head/(s.h.Query/s.h.KV), 0, 0.0
	if s.window > 0 {
		from = max(0, position+1-s.window)
	}
	if s.sinks != nil {
		total = math.Exp(float64(s.sinks[head]))
	}
	for p := from; p <= position; p++ {
		score := 0.0
		for i, k := range s.keys[sequence][p][kv*s.h.Features:][:s.h.Features] {
			score += float64(k) * float64(s.q[sequence][head*s.h.Features+i])
		}
		score *= 0.2
		if s.cap > 0 {
			score = float64(s.cap) * math.Tanh(score/float64(s.cap))
		}
		w := math.Exp(score)
		total += w
		for i, v := range s.values[sequence][p][kv*s.h.ValueFeatures():][:s.h.ValueFeatures()] {
			y[i] += w * float64(v)
		}
	}
	for i := range y {
		y[i] /= total
	}
	return y
}

// build appends random keys and values of all positions up to the rows', a sequence a dispatch, and returns the caches.
func (s *anyScene) build(g *gpu, positions []int) (keys, values, tables *vk.Buffer) {
	rnd := rand.New(rand.NewPCG(4, 4))
	for _, p := range positions {
		s.rows = append(s.rows, kernel.Row{Position: uint32(p), Table: uint32(len(s.tables))})
		s.tables = append(s.tables, make([]uint32, blocksOf(p))...)
		s.q = append(s.q, randomRow(s.h.Query*s.h.Features, rnd.Uint64()))
	}
	for i, b := range rnd.Perm(len(s.tables)) {
		s.tables[i] = uint32(b)
	}
	keys, values = g.room(s.h.KeyBytes(len(s.tables))), g.room(s.h.ValueBytes(len(s.tables)))
	for i := range keys.Bytes {
		keys.Bytes[i] = 0xff // NaN, where nothing is written
	}
	tables = g.words(s.tables...)
	for i, p := range positions {
		var rows []kernel.Row
		var k, v []float32
		var kept, vept [][]float32
		for at := range p + 1 {
			rows = append(rows, kernel.Row{Position: uint32(at), Table: s.rows[i].Table})
			var kr, vr []float32
			for range s.h.KV {
				a, b := randomRow(s.h.Features, rnd.Uint64()), randomRow(s.h.ValueFeatures(), rnd.Uint64())
				k, v = append(k, a...), append(v, b...)
				kr = append(kr, cached(s.h.Format(), a, backend.KVScaled)...)
				vr = append(vr, cached(s.h.Format(), b, len(b))...)
			}
			kept, vept = append(kept, kr), append(vept, vr)
		}
		s.keys, s.values = append(s.keys, kept), append(s.values, vept)
		list := g.room(uint64(8 * len(rows)))
		copy(view[kernel.Row](list.Bytes), rows)
		kb, vb := g.floats(k), g.floats(v)
		g.run(func(r *vk.Recording) {
			require.NoError(g.t, g.k.Append(r, &kernel.Append{Heads: s.h, K: kb.Address, V: vb.Address,
				KStride: s.h.KV * s.h.Features,
				VStride: s.h.KV * s.h.ValueFeatures(), Keys: keys.Address, Values: values.Address, Rows: list.Address,
				Tables: tables.Address, N: len(rows)}))
		})
	}
	return keys, values, tables
}

func (s *anyScene) run(g *gpu, positions []int) []float32 {
	keys, values, tables := s.build(g, positions)
	rows := g.room(uint64(8 * len(s.rows)))
	copy(view[kernel.Row](rows.Bytes), s.rows)
	var q []float32
	for _, x := range s.q {
		q = append(q, x...)
	}
	out := s.h.Query * s.h.ValueFeatures()
	y := g.room(uint64(4 * out * len(s.rows)))
	a := &kernel.Attention{X: g.floats(q).Address, Y: y.Address, Keys: keys.Address, Values: values.Address,
		Parts: g.room(s.h.PartBytes(len(s.rows))).Address, Rows: rows.Address, Tables: tables.Address,
		XStride: s.h.Query * s.h.Features, YStride: out, N: len(s.rows), Scale: 0.2, Cap: s.cap, Window: s.window}
	for _, p := range positions {
		a.Depth = max(a.Depth, p)
	}
	if s.sinks != nil {
		scaled := make([]float32, len(s.sinks))
		for i, v := range s.sinks {
			scaled[i] = v * math.Log2E
		}
		a.Sinks = g.floats(scaled).Address
	}
	g.run(func(r *vk.Recording) { require.NoError(g.t, g.k.Attend(r, &s.h, a)) })
	return floats(y.Bytes)
}

// TestAttentionAny takes heads of shapes that have no kernel of their own, all types of caches, and shapes that do have
// one, whose cache is the same. Squares of halves have a test of their own.
func TestAttentionAny(t *testing.T) {
	g := open(t)
	g.k.attendSquares = false
	for _, c := range []struct {
		h         kernel.Heads
		fused     bool
		positions []int
		change    func(*anyScene)
	}{
		{kernel.Heads{Query: 4, KV: 2, Features: 128}, true, []int{0, 130}, nil},
		{kernel.Heads{Query: 2, KV: 1, Features: 80}, true, []int{5, 200}, nil},
		{kernel.Heads{Query: 3, KV: 3, Features: 96}, true, []int{70}, nil},
		{kernel.Heads{Query: 2, KV: 2, Features: 8}, true, []int{66}, nil},
		{kernel.Heads{Query: 1, KV: 1, Features: 112}, true, []int{66}, nil},
		{kernel.Heads{Query: 2, KV: 1, Features: 192}, true, []int{66}, nil},
		{kernel.Heads{Query: 4, KV: 2, Features: 20, Values: 12}, false, []int{0, 1, 63, 64, 140}, nil},
		{kernel.Heads{Query: 2, KV: 1, Features: 192, Values: 128, Cache: backend.KVF32.Format}, false, []int{3, 100}, nil},
		{kernel.Heads{Query: 4, KV: 1, Features: 64, Cache: backend.KVQ8.Format}, false, []int{600}, nil},
		{kernel.Heads{Query: 2, KV: 2, Features: 33, Values: 70, Cache: backend.KVQ8.Format}, false, []int{90, 3}, nil},
		{kernel.Heads{Query: 2, KV: 1, Features: 256, Cache: backend.KVF32.Format}, false, []int{300},
			func(s *anyScene) { s.window, s.cap, s.sinks = 77, 2, []float32{0.5, -3} }},
		// So many rows that heads share what they read.
		{kernel.Heads{Query: 8, KV: 1, Features: 20, Values: 70}, false, slices.Repeat([]int{3, 90, 70, 64}, 16), nil},
		{kernel.Heads{Query: 8, KV: 2, Features: 36, Values: 20, Cache: backend.KVQ8.Format}, false, slices.Repeat([]int{3, 70},
			20), nil},
		{kernel.Heads{Query: 4, KV: 2, Features: 20, Values: 4, Cache: backend.KVF32.Format}, false, slices.Repeat([]int{3, 70}, 20),
			func(s *anyScene) { s.window, s.cap, s.sinks = 40, 2, []float32{0.5, -3, 0, 1} }},
		{kernel.Heads{Query: 2, KV: 1, Features: 7, Values: 3}, false, []int{530},
			func(s *anyScene) { s.window, s.sinks = 64, []float32{2, 1} }},
	} {
		t.Run(fmt.Sprint(c.h), func(t *testing.T) {
			g := g.with(t)
			s := &anyScene{h: c.h}
			if c.change != nil {
				c.change(s)
			}
			if g.d.Facts.Subgroup.Min >= 8 {
				require.Equal(t, c.fused, g.k.Fused(&s.h))
			}
			y := s.run(g, c.positions)
			width := s.h.Query * s.h.ValueFeatures()
			for r := range c.positions {
				for head := range s.h.Query {
					for i, v := range s.attend(r, head) {
						require.InDelta(t, v, y[r*width+head*s.h.ValueFeatures()+i], 4e-5, "row %d, head %d, feature %d", r, head, i)
					}
				}
			}
		})
	}
	h := kernel.Heads{Query: 4, KV: 2, Features: 20}
	require.ErrorContains(t, g.k.Rotate(nil, &h, &kernel.Attention{}), "want Turn and Append")
	require.ErrorContains(t, g.k.Attend(nil, &h, &kernel.Attention{Alone: true}), "see Fused")
	h.Query = 3
	require.ErrorContains(t, g.k.Attend(nil, &h, &kernel.Attention{}), "3 query heads, 2 KV heads")
}
