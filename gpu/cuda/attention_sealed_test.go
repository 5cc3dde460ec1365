//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// sealed makes the launches that seal the full blocks of a scene, and compute attention of some of its rows.
func (s *scene) sealed(m *maker, from, to int) []kernel.Launch {
	rows, tables := s.places()
	open := *s
	open.h = *s.h.Recent()
	a := open.attention(m, from, to) // whose caches are the open blocks
	a.Heads = s.h
	a.Recent = kernel.Recent{Keys: a.Keys, Values: a.Values, Rows: a.Rows}
	a.Keys, a.Values = m.result(int(s.h.KeyBytes(len(tables)))), m.result(int(s.h.ValueBytes(len(tables))))
	a.Parts = m.room(int(s.h.PartBytes(to - from))).Address
	var ends []uint32
	for _, r := range rows {
		for p := uint32(62); p < r.Position; p += backend.BlockSize { // a row before each that fills a block
			ends = append(ends, p, r.Table, p+1, r.Table)
		}
	}
	seal := &kernel.Seal{Heads: s.h, Keys: a.Keys, Values: a.Values, Recent: a.Recent, Tables: a.Tables, N: len(ends) / 2}
	seal.Rows = m.words(ends...)
	seal.Recent.Rows = seal.Rows
	return []kernel.Launch{seal, a}
}

// TestAttendSealed compares attention to sealed blocks with gpu/null's, which has them as forms do, and by bits with
// that of a row alone, and of one head at a time.
func TestAttendSealed(t *testing.T) {
	c := open(t)
	for _, x := range []struct {
		k, v string
		s    scene
	}{
		{"tq4", "tq4", scene{h: kernel.Heads{Query: 4, KV: 2, Features: 64}, positions: []int{530, 63, 64}}},
		{"q4", "tq3", scene{h: kernel.Heads{Query: 2, KV: 1, Features: 80, Values: 40}, positions: []int{300, 5}, window: 77}},
		{"q5", "q4", scene{h: kernel.Heads{Query: 2, KV: 1, Features: 36, Values: 24}, positions: []int{200}, sinks: true}},
		{"tq3", "q5", scene{h: kernel.Heads{Query: 2, KV: 1, Features: 48, Values: 72}, positions: []int{200}, cap: 3}},
		{"q8", "tq2", scene{h: kernel.Heads{Query: 2, KV: 1, Features: 40, Values: 18}, positions: []int{4200}}}, // splits of several turns
		{"q4", "q4", scene{h: kernel.Heads{Query: 8, KV: 2, Features: 128}, positions: []int{1200, 1152, 70}}},
		{"q5", "q5", scene{h: kernel.Heads{Query: 3, KV: 1, Features: 64, Values: 96}, positions: []int{400, 333}, window: 100, sinks: true}},
		{"tq3", "tq3", scene{h: kernel.Heads{Query: 12, KV: 1, Features: 96}, positions: []int{300}, cap: 3}},
		{"q8", "tq2", scene{h: kernel.Heads{Query: 2, KV: 1, Features: 32, Values: 64}, positions: []int{4200, 31}}},
		{"tq4", "q8", scene{h: kernel.Heads{Query: 2, KV: 1, Features: 160, Values: 256}, positions: []int{700}}},
		{"tq4", "f32", scene{h: kernel.Heads{Query: 2, KV: 1, Features: 16}, positions: []int{140}}},
		{"f16", "q4", scene{h: kernel.Heads{Query: 1, KV: 1, Features: 16, Values: 160}, positions: []int{140}}},
	} {
		t.Run(x.k+" "+x.v, func(t *testing.T) {
			c, s := c.with(t), x.s
			kv, err := backend.MixKV(x.k, x.v)
			require.NoError(t, err)
			s.h.Cache = kv.Format
			ours, plain := c.bothAll(func(m *maker) []kernel.Launch { return s.sealed(m, 0, len(s.positions)) })
			got, apart, whole := view[float32](ours[0]), 0.0, 0.0
			for i, v := range view[float32](plain[0]) {
				require.False(t, math.IsNaN(float64(got[i])), "value %d", i)
				apart, whole = apart+math.Pow(float64(got[i]-v), 2), whole+float64(v*v)
			}
			require.Less(t, math.Sqrt(apart/whole), 0.015) // queries are rounded to bytes
			width := s.h.Query * s.h.ValueFeatures()
			for i := range s.positions {
				m := &maker{d: c.d, t: t}
				c.run(s.sealed(m, i, i+1)...)
				require.True(t, sameBits(got[i*width:(i+1)*width], view[float32](m.out[0])), "row %d alone", i)
			}
			f, shared := &c.d.c.Facts, c.d.c.Facts.Shared
			defer func() { f.Shared = shared }()
			small := codedShared(&s.h, 1)
			if _, warps, _, _ := c.d.kernels.bytesShape(&s.h); warps > 0 {
				small = bytesShared(&s.h, warps, 1) + 1<<10
			}
			f.Shared = small
			m := &maker{d: c.d, t: t}
			c.run(s.sealed(m, 0, len(s.positions))...)
			require.True(t, sameBits(got, view[float32](m.out[0])), "a head at a time")
		})
	}
}
