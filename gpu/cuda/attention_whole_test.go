//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// TestAttendWhole compares attention to keys and values in bytes with gpu/null's, and by bits with that of a row alone,
// of several in a block, and of one head at a time.
func TestAttendWhole(t *testing.T) {
	c := open(t)
	heads := func(query, kv, features, values int) kernel.Heads {
		return kernel.Heads{Query: query, KV: kv, Features: features, Values: values, Cache: backend.KVQ8.Format}
	}
	for _, s := range []scene{
		{h: heads(8, 2, 128, 0), positions: []int{0, 63, 64, 1200}},
		{h: heads(5, 1, 96, 32), positions: []int{99, 100, 333}, window: 100, cap: 3, sinks: true},
		{h: heads(2, 1, 64, 64), positions: []int{190, 191, 192, 193, 255, 256, 257, 258}, together: true, window: 65},
		{h: heads(2, 2, 32, 160), positions: []int{3, 99, 100}, together: true, window: 50, chunked: true},
		{h: heads(1, 1, 256, 0), positions: []int{4200}},
	} {
		t.Run(fmt.Sprintf("%d %d", s.h.Features, s.positions[0]), func(t *testing.T) {
			c, k := c.with(t), c.d.kernels
			n, few := len(s.positions), k.fewRows
			ours, plain := c.both(func(m *maker) kernel.Launch { return s.attention(m, 0, n) })
			requireNear(t, plain[0], ours[0], 1e-5)
			got, width := view[float32](ours[0]), s.h.Query*s.h.ValueFeatures()
			again := func(from, to int) []float32 {
				m := &maker{d: c.d, t: t}
				c.run(s.attention(m, from, to))
				return view[float32](m.out[0])
			}
			for i := range s.positions {
				require.True(t, sameBits(got[i*width:(i+1)*width], again(i, i+1)), "row %d alone", i)
			}
			f, shared := &c.d.c.Facts, c.d.c.Facts.Shared
			defer func() { f.Shared, k.fewRows = shared, few }()
			k.fewRows = 0
			shape, ok := k.wholeShape(&s.h, n)
			require.True(t, ok)
			require.Equal(t, n > 1, shape.each > 1)
			require.True(t, sameBits(got, again(0, n)), "several rows in a block")
			f.Shared = wholeShared(&s.h, 1) + 1<<10
			shape, _ = k.wholeShape(&s.h, n)
			require.Equal(t, 1, shape.once)
			require.True(t, sameBits(got, again(0, n)), "a head at a time")
		})
	}
}

// TestAttendWholeUnseen: what is seen by no row may be anything, and what is no number stays none.
func TestAttendWholeUnseen(t *testing.T) {
	c := open(t)
	const features, last = 32, 70
	s := scene{h: kernel.Heads{Query: 1, KV: 1, Features: features, Cache: backend.KVQ8.Format}, positions: []int{last}}
	for _, x := range []struct {
		keys bool // whose scale is no number, or values'
		at   int
		nan  bool
	}{{true, last + 1, false}, {false, last + 1, false}, {true, last, true}, {false, 3, true}} {
		m := &maker{d: c.d, t: t}
		a := s.attention(m, 0, 1)
		cache, form := m.out[2], s.h.Format().V.Open
		if x.keys {
			cache, form = m.out[1], s.h.Format().K.Open
		}
		_, tables := s.places()
		run := int(tables[x.at/backend.BlockSize]) * form.Bytes(features)
		scale := run + backend.BlockSize*features + 4*(x.at%backend.BlockSize)
		copy(cache.Bytes[scale:], []byte{0, 0, 0xc0, 0x7f})
		c.run(a)
		for _, v := range view[float32](m.out[0]) {
			require.Equal(t, x.nan, math.IsNaN(float64(v)), "%+v", x)
		}
	}
}
