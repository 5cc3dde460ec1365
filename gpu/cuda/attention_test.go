//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// scene is some sequences with caches, and a row of each at its end, or several of one.
type scene struct {
	h         kernel.Heads
	positions []int
	together  bool
	window    int
	chunked   bool
	cap       float32
	sinks     bool
	norms     bool
	count     int // rows that are there; 0: all
}

// places are the rows of a scene, with block tables whose blocks lie anywhere.
func (s *scene) places() (rows []kernel.Row, tables []uint32) {
	last := 0
	for _, p := range s.positions {
		last = max(last, p)
		rows = append(rows, kernel.Row{Position: uint32(p), Table: uint32(len(tables))})
		if s.together {
			rows[len(rows)-1].Table = 0
			continue
		}
		tables = append(tables, make([]uint32, p/backend.BlockSize+1)...)
	}
	if s.together {
		tables = make([]uint32, last/backend.BlockSize+1)
	}
	for i, b := range rand.New(rand.NewPCG(7, 7)).Perm(len(tables)) {
		tables[i] = uint32(b)
	}
	return rows, tables
}

// filled is a cache of so many bytes, as keys and values lie there. Where nobody looks there are no numbers.
func (s *scene) filled(form backend.Form, features, blocks int, seed uint64) []byte {
	rows, tables := s.places()
	each := form.Bytes(features)
	all := make([]byte, blocks*s.h.KV*each)
	for i := range all {
		all[i] = 0xff
	}
	for i := range blocks * s.h.KV {
		form.Put(all[i*each:(i+1)*each], features, 0, some(seed+uint64(i), backend.BlockSize*features, 2))
		for _, r := range rows {
			last := int(r.Position) / backend.BlockSize
			if used := int(r.Position)%backend.BlockSize + 1; !s.together && int(tables[int(r.Table)+last]) == i/s.h.KV &&
				form == (backend.Half{}) {
				for j := 2 * used * features; j < each; j++ {
					all[i*each+j] = 0xff
				}
			}
		}
	}
	return all
}

// attention makes the launch of some of a scene's rows. X has key and value heads behind the queries, whoever takes
// them.
func (s *scene) attention(m *maker, from, to int) *kernel.Attend {
	rows, tables := s.places()
	h, n := s.h, to-from
	width := (h.Query+h.KV)*h.Features + h.KV*h.ValueFeatures()
	x := some(1, width*len(rows), 1)[from*width:][:n*width]
	a := &kernel.Attend{Heads: h, Attention: kernel.Attention{X: m.floats(x),
		Y:     m.result(4 * n * h.Query * h.ValueFeatures()),
		Parts: m.room(int(h.PartBytes(n))).Address, Tables: m.words(tables...), XStride: width,
		YStride: h.Query * h.ValueFeatures(), N: n, Scale: float32(1 / math.Sqrt(float64(h.Features))), Cap: s.cap,
		Window: s.window, Chunked: s.chunked}}
	var words []uint32
	var angles []float32
	for _, r := range rows[from:to] {
		words = append(words, r.Position, r.Table)
		a.Depth = max(a.Depth, int(r.Position))
		for i := range h.Dims / 2 {
			sin, cos := math.Sincos(float64(r.Position) * math.Pow(10000, -2*float64(i)/float64(h.Dims)))
			angles = append(angles, float32(cos), float32(sin))
		}
	}
	a.Rows, a.Angles = m.words(words...), m.floats(angles)
	f := h.Format()
	keys := s.filled(f.K.Kept(), h.Features, len(tables), 100)
	values := s.filled(f.V.Kept(), h.ValueFeatures(), len(tables), 200)
	kb, vb := m.room(len(keys)), m.room(len(values))
	copy(kb.Bytes, keys)
	copy(vb.Bytes, values)
	m.out = append(m.out, kb, vb)
	a.Keys, a.Values = kb.Address, vb.Address
	if s.sinks {
		a.Sinks = m.floats(some(3, h.Query, 1))
	}
	if s.norms {
		a.Normed, a.Eps, a.KeyGain = true, 1e-4, m.floats(some(4, h.Features, 1))
	}
	if s.count > 0 {
		a.Count = m.words(uint32(s.count))
	}
	return a
}

// compute runs attention of some rows on the card alone: all of a scene's are rotated and stored before where they are
// not alone.
func (s *scene) compute(c *card, alone bool, from, to int) (y []float32, keys, values []byte) {
	m := &maker{d: c.d, t: c.t}
	a := s.attention(m, from, to)
	a.Alone = alone
	launches := []kernel.Launch{a}
	if !alone {
		rotate := &kernel.Rotate{Heads: a.Heads, Attention: a.Attention}
		launches = []kernel.Launch{rotate, a}
		if s.norms {
			f, x := s.h.Features, a.X
			of := kernel.GroupNorm{Group: f, XStride: a.XStride, YStride: a.XStride, Rows: a.N, Eps: a.Eps}
			queries, heads := of, of
			queries.X, queries.Y, queries.Width = x, x, s.h.Query*f
			heads.X, heads.Y, heads.Width = x+uint64(4*s.h.Query*f), x+uint64(4*s.h.Query*f), s.h.KV*f
			heads.Gain = a.KeyGain
			launches = []kernel.Launch{&queries, &heads, rotate, a}
		}
	}
	c.run(launches...)
	return view[float32](m.out[0]), m.out[1].Bytes, m.out[2].Bytes
}

var scenes = map[string]scene{
	"alone":          {h: kernel.Heads{Query: 8, KV: 2, Features: 128, Dims: 128}, positions: []int{0, 63, 64, 65, 511, 700}},
	"window":         {h: kernel.Heads{Query: 4, KV: 1, Features: 64, Dims: 64}, positions: []int{3, 99, 100, 333}, window: 100},
	"chunks":         {h: kernel.Heads{Query: 4, KV: 2, Features: 32, Dims: 32}, positions: []int{3, 99, 100, 333}, window: 100, chunked: true},
	"cap and sinks":  {h: kernel.Heads{Query: 4, KV: 2, Features: 80, Dims: 80}, positions: []int{40, 600}, cap: 3, sinks: true},
	"interleaved":    {h: kernel.Heads{Query: 4, KV: 4, Features: 64, Dims: 32, Interleaved: true}, positions: []int{5, 130}},
	"no rotation":    {h: kernel.Heads{Query: 3, KV: 1, Features: 16}, positions: []int{100}},
	"wide":           {h: kernel.Heads{Query: 2, KV: 2, Features: 256, Dims: 256}, positions: []int{9, 130}},
	"many heads":     {h: kernel.Heads{Query: 40, KV: 1, Features: 64, Dims: 64}, positions: []int{70, 129}},
	"odd heads":      {h: kernel.Heads{Query: 14, KV: 2, Features: 96, Dims: 96}, positions: []int{7, 200}},
	"deep":           {h: kernel.Heads{Query: 4, KV: 2, Features: 16, Dims: 16}, positions: []int{1100, 2100}},
	"deep, window":   {h: kernel.Heads{Query: 2, KV: 1, Features: 64, Dims: 64}, positions: []int{2100}, window: 300},
	"norms":          {h: kernel.Heads{Query: 4, KV: 2, Features: 128, Dims: 128}, positions: []int{5, 64}, norms: true},
	"norms, no gain": {h: kernel.Heads{Query: 3, KV: 1, Features: 16, Dims: 8, Interleaved: true}, positions: []int{70}, norms: true},
}

// TestAttend compares attention that rotates and stores with gpu/null's, and by bits with rotation and norms before it.
func TestAttend(t *testing.T) {
	c := open(t)
	for name, s := range scenes {
		t.Run(name, func(t *testing.T) {
			c := c.with(t)
			if testing.Short() && s.h.Features > 64 && name != "norms" {
				t.Skip("-short: heads of other sizes")
			}
			ours, plain := c.both(func(m *maker) kernel.Launch {
				a := s.attention(m, 0, len(s.positions))
				a.Alone = true
				return a
			})
			requireNear(t, plain[0], ours[0], 2e-3)
			for i := 1; i < 3; i++ {
				for j, v := range view[uint16](plain[i]) { // a half may be rounded the other way
					require.InDelta(t, quant.F16ToF32(v), quant.F16ToF32(view[uint16](ours[i])[j]), 2e-3, "cache %d", i)
				}
			}
			y, keys, values := s.compute(c, false, 0, len(s.positions))
			require.True(t, sameBits(view[float32](ours[0]), y), "rotation within attention and before it have the same bits")
			require.Equal(t, ours[1].Bytes, keys)
			require.Equal(t, ours[2].Bytes, values)
		})
	}
}

// requireNear compares rows of float32 with what must come out, but for rounding to halves.
func requireNear(t testing.TB, want, got *driver.Buffer, delta float64) {
	t.Helper()
	for i, v := range view[float32](want) {
		require.InDelta(t, v, view[float32](got)[i], delta*(1+math.Abs(float64(v))), "value %d", i)
	}
}

// TestAttendRows: rows have the same bits among any others as alone, where they are of one sequence or of many, where
// the length of splits changes, and where a window begins among them. Rows that are not there leave nothing.
func TestAttendRows(t *testing.T) {
	c := open(t)
	all := []struct {
		features, first, window int
		together                bool
	}{{64, 495, 0, true}, {16, 2040, 0, true}, {64, 2040, 0, true}, {64, 495, 100, false},
		{16, 495, 100, true}, {32, 45, 0, true}, {128, 45, 0, true}, {80, 45, 0, true}, {96, 100, 0, false},
		{256, 45, 30, true}}
	if testing.Short() {
		all = all[:2]
	}
	for _, x := range all {
		s := scene{h: kernel.Heads{Query: 6, KV: 2, Features: x.features, Dims: x.features}, window: x.window,
			together: x.together}
		for p := range 33 {
			s.positions = append(s.positions, x.first+p)
		}
		many, _, _ := s.compute(c, false, 0, len(s.positions))
		width := s.h.Query * s.h.Features
		for _, i := range []int{0, 9, 15, 16, 17, 32} { // 9: the last of a block
			m := &maker{d: c.d, t: t}
			a := s.attention(m, i, i+1)
			later := s.attention(m, 0, len(s.positions)) // whose rotation stores what all see
			a.Keys, a.Values = later.Keys, later.Values
			c.run(&kernel.Rotate{Heads: s.h, Attention: later.Attention}, &kernel.Rotate{Heads: s.h, Attention: a.Attention}, a)
			require.True(t, sameBits(many[i*width:(i+1)*width], view[float32](m.out[0])), "row %d of %+v", i, x)
		}
		s.count = 20
		few, _, _ := s.compute(c, false, 0, len(s.positions))
		require.True(t, sameBits(many[:20*width], few[:20*width]))
		require.Equal(t, make([]float32, 13*width), few[20*width:])
	}
}

// TestAttendShapes: bits do not depend on how much memory a block has.
func TestAttendShapes(t *testing.T) {
	c := open(t)
	s := scene{h: kernel.Heads{Query: 20, KV: 1, Features: 128, Dims: 128}, together: true}
	for p := range 12 {
		s.positions = append(s.positions, 250+p)
	}
	f, most := &c.d.c.Facts, c.d.c.Facts.Shared
	defer func() { f.Shared = most }()
	var first []float32
	shapes := map[attendShape]bool{}
	for _, shared := range []int{220 << 10, 100 << 10, 80 << 10, 60 << 10, 44 << 10} {
		f.Shared = min(shared, most)
		shape, err := c.d.kernels.attendShape(&s.h, len(s.positions))
		require.NoError(t, err)
		if shapes[shape] {
			continue
		}
		shapes[shape] = true
		y, _, _ := s.compute(c, false, 0, len(s.positions))
		if first == nil {
			first = y
		}
		require.True(t, sameBits(first, y), "%+v", shape)
	}
	require.Greater(t, len(shapes), 2)
	f.Shared = 30 << 10
	require.False(t, c.d.kernels.Fused(&s.h))
}

// TestAttendJoins: blocks that take all splits of their rows leave the bits of splits that merge.cu joins, where rows
// are of several sequences, lengths of splits change, windows begin, and where there are sinks.
func TestAttendJoins(t *testing.T) {
	c := open(t)
	defer func(n int) { c.d.kernels.joinFrom = n }(c.d.kernels.joinFrom)
	for _, x := range []struct {
		features, first, window int
		together, sinks         bool
	}{{64, 495, 0, true, false}, {128, 500, 0, true, true}, {64, 2040, 300, true, false}, {96, 130, 100, false, false},
		{96, 45, 0, true, false}, {256, 110, 70, true, true}} {
		if testing.Short() && x.features > 64 {
			continue
		}
		s := scene{h: kernel.Heads{Query: 6, KV: 2, Features: x.features, Dims: x.features}, window: x.window,
			together: x.together, sinks: x.sinks}
		for p := range 21 {
			s.positions = append(s.positions, x.first+p)
		}
		c.d.kernels.joinFrom = 1 << 20
		split, _, _ := s.compute(c, false, 0, len(s.positions))
		c.d.kernels.joinFrom = 1
		_, joins := c.d.kernels.joinShape(&s.h, len(s.positions))
		require.True(t, joins)
		joined, _, _ := s.compute(c, false, 0, len(s.positions))
		require.True(t, sameBits(split, joined), "%+v", x)
	}
}

// TestAttendQuantised: what attention quantises is what it stores, quantised.
func TestAttendQuantised(t *testing.T) {
	c := open(t)
	s := scene{h: kernel.Heads{Query: 3, KV: 1, Features: 16, Dims: 16}, positions: []int{5, 70}}
	want, _, _ := s.compute(c, false, 0, 2)
	m := &maker{d: c.d, t: t}
	a := s.attention(m, 0, 2)
	size := kernel.QuantisedBytes(48)
	a.Y, a.Quantise = m.result(2*size), true
	norm := &kernel.Norm{X: m.floats(want), Y: m.result(2 * size), Width: 48, XStride: 48, Rows: 2, Quantise: true}
	c.run(&kernel.Rotate{Heads: s.h, Attention: a.Attention}, a, norm)
	require.Equal(t, m.out[4].Bytes, m.out[3].Bytes)
}

// TestAppend: caches of any type hold what internal/backend says, to the bit.
func TestAppend(t *testing.T) {
	c := open(t)
	for _, kv := range []backend.KV{backend.KVF16, backend.KVF32, backend.KVQ8} {
		h := kernel.Heads{Query: 2, KV: 2, Features: 40, Values: 24, Cache: kv.Format}
		s := scene{h: h, positions: []int{3, 64, 200}}
		ours, plain := c.both(func(m *maker) kernel.Launch {
			a := s.attention(m, 0, 3)
			k := some(9, 3*100, 1)
			k[40], k[41], k[100] = 0, 1e-38, 65520
			clear(k[:40])
			return &kernel.Append{Heads: h, K: m.floats(k), V: m.floats(some(10, 3*60, 1)), KStride: 100, VStride: 60,
				Keys: a.Keys, Values: a.Values, Rows: a.Rows, Tables: a.Tables, N: 3, Count: m.words(2)}
		})
		require.Equal(t, plain[1].Bytes, ours[1].Bytes, "%s: keys", kv.Name)
		require.Equal(t, plain[2].Bytes, ours[2].Bytes, "%s: values", kv.Name)
	}
}

// TestAttendAny compares attention of heads of any size over caches of all types with gpu/null's, and by bits with that
// of any number of heads at once.
func TestAttendAny(t *testing.T) {
	c := open(t)
	f, processors := &c.d.c.Facts, c.d.c.Facts.Processors
	defer func() { f.Processors = processors }()
	for i, s := range []scene{
		{h: kernel.Heads{Query: 4, KV: 2, Features: 40, Values: 24}, positions: []int{0, 63, 64, 300}},
		{h: kernel.Heads{Query: 8, KV: 1, Features: 72, Values: 100, Cache: backend.KVQ8.Format}, positions: []int{40, 333}, window: 100},
		{h: kernel.Heads{Query: 2, KV: 2, Features: 33, Cache: backend.KVF32.Format}, positions: []int{140}, cap: 3, sinks: true},
	} {
		require.False(t, c.d.kernels.Fused(&s.h))
		build := func(m *maker) kernel.Launch { return s.attention(m, 0, len(s.positions)) }
		var first []float32
		for _, f.Processors = range []int{1 << 20, 1} {
			ours, plain := c.both(build)
			requireNear(t, plain[0], ours[0], 2e-5)
			if first == nil {
				first = view[float32](ours[0])
			}
			require.True(t, sameBits(first, view[float32](ours[0])), fmt.Sprint("scene ", i))
		}
	}
}

// TestAttendRowsAny: many rows over caches of any type have the bits of each by itself.
func TestAttendRowsAny(t *testing.T) {
	c := open(t)
	for _, x := range []struct {
		h      kernel.Heads
		first  int
		window int
		apart  bool
	}{
		{h: kernel.Heads{Query: 8, KV: 2, Features: 64, Cache: backend.KVQ8.Format}, first: 500},
		{h: kernel.Heads{Query: 2, KV: 1, Features: 128, Cache: backend.KVQ8.Format}, first: 60},
		{h: kernel.Heads{Query: 2, KV: 1, Features: 96, Values: 128}, first: 60, window: 70},
		{h: kernel.Heads{Query: 2, KV: 1, Features: 32, Values: 64}, first: 1030},
		{h: kernel.Heads{Query: 2, KV: 2, Features: 32, Values: 64, Cache: backend.KVF32.Format}, first: 60, apart: true},
		{h: kernel.Heads{Query: 4, KV: 1, Features: 64, Values: 512}, first: 40},
		{h: kernel.Heads{Query: 1, KV: 1, Features: 64, Values: 256, Cache: backend.KVQ8.Format}, first: 120, window: 3},
	} {
		if testing.Short() && x.h.ValueFeatures() > 128 {
			continue
		}
		s := scene{h: x.h, together: !x.apart, window: x.window, count: 18, sinks: x.apart}
		for p := range 19 {
			s.positions = append(s.positions, x.first+p)
		}
		var results [2][]float32
		for i := range results {
			if c.d.kernels.fewRows = 16; i == 1 {
				c.d.kernels.fewRows = 1 << 20
			}
			m := &maker{d: c.d, t: t}
			a := s.attention(m, 0, len(s.positions))
			require.True(t, takesRows(&x.h, &a.Attention))
			c.run(a)
			results[i] = view[float32](m.out[0])
		}
		require.True(t, sameBits(results[0], results[1]), "%+v", x)
		require.NotZero(t, results[0][17*x.h.Query*x.h.ValueFeatures()])
	}
}

// TestCaches: a format whose forms kernels do not know is refused by name.
func TestCaches(t *testing.T) {
	for _, key := range backend.KVNames() {
		for _, value := range backend.KVNamesOfV() {
			kv, err := backend.MixKV(key, value)
			require.NoError(t, err)
			require.NoError(t, (&Kernels{}).Caches(kv.Format), kv)
		}
	}
	toy := backendtest.Toy().Format
	require.ErrorContains(t, (&Kernels{}).Caches(toy), "have no kernels on CUDA: keep them in f32, f16, q8, q5, q4, tq4 or tq3")
}
