//go:build cgo && linux

package vulkan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// scene is some sequences with caches, and a row of each at its end, or several of one.
type scene struct {
	h             kernel.Heads
	rows          []kernel.Row
	tables        []uint32
	x             [][]float32
	keys, values  []uint16 // the whole caches, on the device's layout
	cap           float32
	window        int
	sinks         []float32
	gains         [2][]float32 // of norms of the heads of queries and keys, if there are any
	attended      [][]float64  // what must come out
	keysNow, vNow []uint16     // with the rows' own
}

// blocksOf is how many blocks hold positions up to one.
func blocksOf(position int) int { return position/64 + 1 }

// newScene makes rows at positions, each of a sequence of its own; with together, all of one sequence, ascending.
func newScene(h kernel.Heads, positions []int, together bool, seed uint64) *scene {
	rnd := rand.New(rand.NewPCG(seed, 3))
	s := &scene{h: h}
	last := 0
	for _, p := range positions {
		if together {
			s.rows = append(s.rows, kernel.Row{Position: uint32(p)})
			last = max(last, p)
			continue
		}
		s.rows = append(s.rows, kernel.Row{Position: uint32(p), Table: uint32(len(s.tables))})
		s.tables = append(s.tables, make([]uint32, blocksOf(p))...)
	}
	if together {
		s.tables = make([]uint32, blocksOf(last))
	}
	for i, b := range rnd.Perm(len(s.tables)) { // blocks lie anywhere
		s.tables[i] = uint32(b)
	}
	n := len(s.tables) * h.KV * 64 * h.Features
	s.keys, s.values = make([]uint16, n), make([]uint16, n)
	for i := range n {
		s.keys[i], s.values[i] = quant.F32ToF16(float32(rnd.NormFloat64())), quant.F32ToF16(float32(rnd.NormFloat64()))
	}
	for range s.rows {
		s.x = append(s.x, randomRow((h.Query+2*h.KV)*h.Features, rnd.Uint64()))
	}
	return s
}

func (s *scene) at(row kernel.Row, position, head int) int {
	block := int(s.tables[int(row.Table)+position/64])
	return ((block*s.h.KV+head)*64 + position%64) * s.h.Features
}

// angle of pair i at a position.
func (s *scene) angle(position uint32, i int) float64 {
	return float64(position) * math.Pow(10000, -2*float64(i)/float64(s.h.Dims))
}

func (s *scene) angles() []float32 {
	var all []float32
	for _, r := range s.rows {
		for i := range s.h.Dims / 2 {
			sin, cos := math.Sincos(s.angle(r.Position, i))
			all = append(all, float32(cos), float32(sin))
		}
	}
	return append(all, 0)
}

// turn rotates a head as cpu/ref does.
func (s *scene) turn(x []float32, position uint32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	for i := range s.h.Dims / 2 {
		a, b := i, i+s.h.Dims/2
		if s.h.Interleaved {
			a, b = 2*i, 2*i+1
		}
		sin, cos := math.Sincos(s.angle(position, i))
		y[a], y[b] = float64(x[a])*cos-float64(x[b])*sin, float64(x[a])*sin+float64(x[b])*cos
	}
	return y
}

// compute does it all in float64, with keys and values rounded to halves.
func (s *scene) compute() {
	f := s.h.Features
	s.keysNow, s.vNow = append([]uint16(nil), s.keys...), append([]uint16(nil), s.values...)
	for r, row := range s.rows {
		for head := range s.h.KV {
			at := s.at(row, int(row.Position), head)
			from := s.x[r][(s.h.Query+head)*f:]
			for i, v := range s.turn(from[:f], row.Position) {
				s.keysNow[at+i] = quant.F32ToF16(float32(v))
				s.vNow[at+i] = quant.F32ToF16(s.x[r][(s.h.Query+s.h.KV+head)*f+i])
			}
		}
	}
	s.attended = nil
	for r, row := range s.rows {
		var y []float64
		for head := range s.h.Query {
			y = append(y, s.attend(row, head, s.turn(s.x[r][head*f:(head+1)*f], row.Position))...)
		}
		s.attended = append(s.attended, y)
	}
}

func (s *scene) attend(row kernel.Row, head int, q []float64) []float64 {
	y := make([]float64, s.h.Features)
	from, total := 0, 0.0
	if s.window > 0 {
		from = max(0, int(row.Position)+1-s.window)
	}
	if s.sinks != nil {
		total = math.Exp(float64(s.sinks[head]))
	}
	for p := from; p <= int(row.Position); p++ {
		at := s.at(row, p, head/(s.h.Query/s.h.KV))
		score := 0.0
		for i, v := range q {
			score += v * float64(quant.F16ToF32(s.keysNow[at+i]))
		}
		score /= math.Sqrt(float64(s.h.Features))
		if s.cap > 0 {
			score = float64(s.cap) * math.Tanh(score/float64(s.cap))
		}
		w := math.Exp(score)
		total += w
		for i := range y {
			y[i] += w * float64(quant.F16ToF32(s.vNow[at+i]))
		}
	}
	for i := range y {
		y[i] /= total
	}
	return y
}

// placed is a scene on the device: what its kernels take, and where the rows and the caches lie.
type placed struct {
	*scene
	a                   *kernel.Attention
	x, to, keys, values *vk.Buffer
}

func (s *scene) on(g *gpu, alone bool) *placed {
	width := (s.h.Query + 2*s.h.KV) * s.h.Features
	x := g.floats(slices.Concat(s.x...))
	rows := g.room(uint64(8 * len(s.rows)))
	copy(view[kernel.Row](rows.Bytes), s.rows)
	kb, vb := g.room(uint64(2*len(s.keys))), g.room(uint64(2*len(s.values)))
	copy(view[uint16](kb.Bytes), s.keys)
	copy(view[uint16](vb.Bytes), s.values)
	out := s.h.Query * s.h.Features
	to := g.room(uint64(4 * out * len(s.rows)))
	a := &kernel.Attention{X: x.Address, Y: to.Address, Keys: kb.Address, Values: vb.Address,
		Parts: g.room(s.h.PartBytes(len(s.rows))).Address, Rows: rows.Address, Tables: g.words(s.tables...).Address,
		Angles: g.floats(s.angles()).Address, XStride: width, YStride: out, N: len(s.rows), Alone: alone,
		Scale: float32(1 / math.Sqrt(float64(s.h.Features))), Cap: s.cap, Window: s.window}
	for _, r := range s.rows {
		a.Depth = max(a.Depth, int(r.Position))
	}
	if s.sinks != nil {
		scaled := make([]float32, len(s.sinks))
		for i, v := range s.sinks {
			scaled[i] = v * math.Log2E
		}
		a.Sinks = g.floats(scaled).Address
	}
	for i, to := range []*uint64{&a.QueryGain, &a.KeyGain} {
		if x := s.gains[i]; x != nil {
			a.Normed, a.Eps, *to = true, 1e-4, g.floats(x).Address
		}
	}
	return &placed{s, a, x, to, kb, vb}
}

// row is one row alone, as it was before kernels turned it. What it becomes comes first.
func (p *placed) row(i int) *placed {
	one := *p.a
	copy(view[float32](p.x.Bytes)[i*one.XStride:], p.scene.x[i])
	one.X += uint64(4 * i * one.XStride)
	one.Rows += uint64(8 * i)
	one.Angles += uint64(4 * i * p.h.Dims)
	one.N, one.Depth = 1, int(p.rows[i].Position)
	return &placed{p.scene, &one, p.x, p.to, p.keys, p.values}
}

// run has the kernels run.
func (p *placed) run(g *gpu) {
	a, h := p.a, &p.h
	g.run(func(r *vk.Recording) {
		if a.Normed && !a.Alone {
			for i, gain := range []uint64{a.QueryGain, a.KeyGain} {
				heads, x := []int{h.Query, h.KV}[i], a.X+uint64(4*i*h.Query*h.Features)
				require.NoError(g.t, g.k.GroupNorm(r, &kernel.GroupNorm{X: x, Y: x, Gain: gain, Width: heads * h.Features,
					Group: h.Features, XStride: a.XStride, YStride: a.XStride, Rows: a.N, Eps: a.Eps}))
			}
			r.Barrier()
		}
		if !a.Alone {
			require.NoError(g.t, g.k.Rotate(r, h, a))
			r.Barrier()
		}
		require.NoError(g.t, g.k.Attend(r, h, a))
	})
}

// run computes the scene on the device: rows of float32, and the caches afterwards.
func (s *scene) run(g *gpu, alone bool) (y []float32, keys, values []uint16) {
	p := s.on(g, alone)
	p.run(g)
	return floats(p.to.Bytes), slices.Clone(view[uint16](p.keys.Bytes)), slices.Clone(view[uint16](p.values.Bytes))
}

func (s *scene) check(g *gpu, y []float32, keys, values []uint16) {
	g.t.Helper()
	delta, of := 3e-5, 0.0
	if g.k.bySquares(&s.h) { // queries and weights are halves
		delta, of = 2e-3, 1e-3
	}
	for r, want := range s.attended {
		for i, v := range want {
			require.InDelta(g.t, v, y[r*len(want)+i], delta+of*math.Abs(v), "row %d, feature %d", r, i)
		}
	}
	require.Equal(g.t, s.vNow, values, "values")
	for i, k := range keys { // rotation is float32 here: a half may round the other way
		require.InDelta(g.t, quant.F16ToF32(s.keysNow[i]), quant.F16ToF32(k), 2e-2, "key %d", i)
	}
}

// ways runs a test with each of the ways in which caches of halves are attended to.
func ways(t *testing.T, test func(t *testing.T, g *gpu)) {
	g := open(t)
	defer func(was bool) { g.k.attendSquares = was }(g.k.attendSquares)
	for name, squares := range map[string]bool{"groups": false, "squares": true} {
		g.k.attendSquares = squares
		t.Run(name, func(t *testing.T) { test(t, g.with(t)) })
	}
}

// TestAttention: with -short, heads of one shape: a processor compiles the kernels of each for seconds.
func TestAttention(t *testing.T) {
	scenes := append(slices.Clone(usualScenes), oddScenes...)
	if testing.Short() {
		scenes = usualScenes
	}
	ways(t, func(t *testing.T, g *gpu) {
		for _, c := range scenes {
			t.Run(c.name, func(t *testing.T) { c.test(g.with(t)) })
		}
	})
}

// sceneCase is a scene to be made: rows at positions of a sequence each, or together of one.
type sceneCase struct {
	name      string
	h         kernel.Heads
	positions []int
	together  bool
	change    func(*scene)
}

var (
	llamaHeads  = kernel.Heads{Query: 8, KV: 2, Features: 128, Dims: 128}
	usualScenes = []sceneCase{
		{"alone", llamaHeads, []int{0, 1, 63, 64, 65, 200, 511, 512, 700}, false, nil},
		{"together", llamaHeads, []int{70, 71, 72, 73}, true, nil},
		{"window", llamaHeads, []int{3, 99, 100, 101, 777}, false, func(s *scene) { s.window = 100 }},
		{"cap and sinks", llamaHeads, []int{40, 600}, false, func(s *scene) { s.cap, s.sinks = 3, randomRow(8, 4) }},
	}
	oddScenes = []sceneCase{
		{"deep", kernel.Heads{Query: 2, KV: 1, Features: 128, Dims: 128}, []int{2047, 2048, 4200}, false, nil},
		{"interleaved, partial", kernel.Heads{Query: 4, KV: 4, Features: 64, Dims: 32, Interleaved: true}, []int{5, 130}, false, nil},
		{"no rotation", kernel.Heads{Query: 3, KV: 1, Features: 128}, []int{100}, false, nil},
		{"wide", kernel.Heads{Query: 2, KV: 2, Features: 256, Dims: 256}, []int{9, 300}, false, nil},
		{"many heads", kernel.Heads{Query: 20, KV: 1, Features: 64, Dims: 64}, []int{70, 129}, false, nil},
		{"odd heads", kernel.Heads{Query: 14, KV: 2, Features: 64, Dims: 64}, []int{7, 300}, false, nil},
		{"odd features", kernel.Heads{Query: 6, KV: 2, Features: 96, Dims: 96}, []int{200}, false, nil},
	}
)

// test compares what the device attends to with float64, and rotation within attention with rotation before it.
func (c *sceneCase) test(g *gpu) {
	s := newScene(c.h, c.positions, c.together, 11)
	if c.change != nil {
		c.change(s)
	}
	s.compute()
	y, keys, values := s.run(g, !c.together)
	s.check(g, y, keys, values)
	if !c.together {
		z, keys2, values2 := s.run(g, false)
		require.True(g.t, g.sameBits(y, z), "rotation within attention and before it have the same bits")
		require.Equal(g.t, keys, keys2)
		require.Equal(g.t, values, values2)
	}
}

// TestHeadNorms compares heads that attention normalises with norms before it, by bits. With -short, one shape.
func TestHeadNorms(t *testing.T) {
	shapes := []kernel.Heads{{Query: 4, KV: 4, Features: 64, Dims: 32, Interleaved: true}, llamaHeads,
		{Query: 2, KV: 2, Features: 256}}
	if testing.Short() {
		shapes = shapes[:1]
	}
	ways(t, func(t *testing.T, g *gpu) { testHeadNorms(t, g, shapes) })
}

func testHeadNorms(t *testing.T, g *gpu, shapes []kernel.Heads) {
	for _, h := range shapes {
		s := newScene(h, []int{5, 64, 600}, false, 41)
		plain, _, _ := s.run(g, true)
		s.gains = [2][]float32{nil, randomRow(h.Features, 42)}
		for range 2 {
			y, keys, values := s.run(g, true)
			z, keys2, values2 := s.run(g, false)
			require.True(t, g.sameBits(y, z), "%+v", h)
			require.Equal(t, keys, keys2)
			require.Equal(t, values, values2)
			require.False(t, g.sameBits(plain, y))
			s.gains[0] = randomRow(h.Features, 43)
		}
	}
}

// TestFewLanes takes the path of devices whose subgroups have eight lanes, and that of small workgroups.
func TestFewLanes(t *testing.T) {
	g := open(t)
	lanes, threads := g.d.Facts.Subgroup.Min, g.d.Facts.Invocations
	defer func() { g.d.Facts.Subgroup.Min, g.d.Facts.Invocations = lanes, threads }()
	g.d.Facts.Subgroup.Min, g.d.Facts.Invocations = 8, 128
	s := newScene(kernel.Heads{Query: 4, KV: 2, Features: 128, Dims: 128}, []int{9, 640}, false, 31)
	s.compute()
	y, keys, values := s.run(g, true)
	s.check(g, y, keys, values)
}

// TestRowAloneAttention compares a row alone with the same row among others, by bits.
func TestRowAloneAttention(t *testing.T) { ways(t, testRowAloneAttention) }

func testRowAloneAttention(t *testing.T, g *gpu) {
	h := kernel.Heads{Query: 4, KV: 2, Features: 128, Dims: 128}
	positions := []int{3, 64, 300, 2100}
	s := newScene(h, positions, false, 21)
	scene := s.on(g, true)
	scene.run(g)
	all := floats(scene.to.Bytes)
	for i := range positions {
		clear(scene.to.Bytes)
		scene.row(i).run(g)
		require.True(t, g.sameBits(all[i*512:(i+1)*512], floats(scene.to.Bytes[:4*512])), "row %d", i)
	}
}

func TestSplits(t *testing.T) {
	for _, c := range [][2]int{
		{0, 1}, {63, 1}, {64, 2}, {511, 8}, {512, 5}, {1023, 8}, {1024, 9}, {2047, 16}, {2048, 9}, {1 << 20, 9},
	} {
		require.Equal(t, c[1], kernel.Splits(c[0]), "position %d", c[0])
	}
}

// TestManyRowsAttention compares rows that a workgroup takes one after another with some of them alone, by bits: of one
// sequence, where the length of splits changes, and of many. These are the first and last of a workgroup, and those on
// both sides of where a split or a block begins.
func TestManyRowsAttention(t *testing.T) { ways(t, testManyRowsAttention) }

func testManyRowsAttention(t *testing.T, g *gpu) {
	h := kernel.Heads{Query: 4, KV: 2, Features: 64, Dims: 64}
	for _, c := range []struct {
		first, window int
		together      bool
	}{{495, 0, true}, {495, 0, false}, {495, 100, true}, {495, 100, false}, {45, 0, true}, {45, 0, false}} {
		var positions []int // the rows of a group do not begin a split together
		for p := range 35 {
			positions = append(positions, c.first+p)
		}
		s := newScene(h, positions, c.together, 51)
		s.window = c.window
		scene := s.on(g, false)
		scene.run(g)
		all := floats(scene.to.Bytes)
		require.Greater(t, len(s.rows), kernel.FewColumns)
		out := h.Query * h.Features
		for _, i := range []int{0, 15, 16, 17, 18, 19, 31, 32, 34} {
			clear(scene.to.Bytes)
			scene.row(i).run(g)
			require.True(t, g.sameBits(all[i*out:(i+1)*out], floats(scene.to.Bytes[:4*out])), "row %d of %+v", i, c)
		}
	}
}
