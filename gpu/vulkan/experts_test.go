//go:build cgo && linux

package vulkan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// routed is the weights of all experts of a row, as cpu/ref has them: 0 for what is not chosen.
func routed(a *ir.RouteArgs, logits, bias []float32) []float64 {
	n := len(logits)
	scores, keys, weights := make([]float64, n), make([]float64, n), make([]float64, n)
	all := make([]int, n)
	total := 0.0
	for e, x := range logits {
		all[e], scores[e] = e, float64(x)
		total += math.Exp(float64(x))
	}
	for e := range scores {
		switch a.Scoring {
		case ir.SigmoidEach:
			scores[e] = 1 / (1 + math.Exp(-scores[e]))
		case ir.SoftmaxAll:
			scores[e] = math.Exp(scores[e]) / total
		}
		keys[e] = scores[e]
		if bias != nil {
			keys[e] += float64(bias[e])
		}
	}
	best := func(keys []float64, among []int, n int) []int {
		among = slices.Clone(among)
		slices.SortStableFunc(among, func(i, j int) int { return cmp.Compare(keys[j], keys[i]) })
		return among[:n]
	}
	if a.Groups > 0 {
		size := n / a.Groups
		teams, numbers := make([]float64, a.Groups), all[:a.Groups]
		for g := range teams {
			for _, e := range best(keys, all[g*size:][:size], min(a.GroupBest, size)) {
				teams[g] += keys[e]
			}
		}
		used := best(teams, numbers, a.GroupsUsed)
		all = slices.DeleteFunc(slices.Clone(all), func(e int) bool { return !slices.Contains(used, e/size) })
	}
	sum := 0.0
	chosen := best(keys, all, a.Used)
	if a.Scoring == ir.SparseMixer {
		return sparselyMixed(a, logits, chosen)
	}
	for _, e := range chosen {
		weights[e] = scores[e]
		if a.Scoring == ir.SoftmaxChosen {
			weights[e] = math.Exp(scores[e])
		}
		sum += weights[e]
	}
	for _, e := range chosen {
		if a.Normalise || a.Scoring == ir.SoftmaxChosen {
			weights[e] /= sum
		}
		weights[e] *= float64(a.Scale)
	}
	return weights
}

// sparselyMixed weighs each chosen expert among those that are left and about as good.
func sparselyMixed(a *ir.RouteArgs, logits []float32, chosen []int) []float64 {
	weights := make([]float64, len(logits))
	for i, best := range chosen {
		top, sum := float64(logits[best]), 0.0
		for e, x := range logits {
			if x := float64(x); !slices.Contains(chosen[:i], e) && (top-x)/max(math.Abs(x), top) <= ir.Near {
				sum += math.Exp(x - top)
			}
		}
		weights[best] = float64(a.Scale) / sum
	}
	return weights
}

func TestRoute(t *testing.T) {
	g := open(t)
	for _, c := range []struct {
		experts int
		bias    bool
		args    ir.RouteArgs
	}{
		{8, false, ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 2, Normalise: true, Scale: 1}},
		{128, false, ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 8, Scale: 2.5}},
		{32, false, ir.RouteArgs{Scoring: ir.SoftmaxChosen, Used: 4, Scale: 1}},
		{256, true, ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 8, Groups: 8, GroupsUsed: 4, GroupBest: 2, Normalise: true,
			Scale: 2.5}},
		{70, true, ir.RouteArgs{Scoring: ir.SigmoidEach, Used: 3, Scale: 1}},
		{5, true, ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 5, Groups: 5, GroupsUsed: 5, GroupBest: 2, Scale: 1}},
		{160, false, ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: 6, Groups: 8, GroupsUsed: 3, GroupBest: 1, Scale: 16}},
		{200, false, ir.RouteArgs{Scoring: ir.SparseMixer, Used: 3, Scale: 2}},
	} {
		t.Run(fmt.Sprintf("%d %+v", c.experts, c.args), func(t *testing.T) {
			g := g.with(t)
			const rows = 6
			stride := c.experts + 3
			logits := randomRow(stride*rows, 5)
			for e := range c.experts {
				logits[stride+e] = float32(e / 3) // equals, the lower number wins
				logits[2*stride+e] = 100 - float32(e)*20
				logits[3*stride+e] = 1 // groups are equal, too
			}
			r := kernel.Route{Args: &c.args, Experts: c.experts, Logits: g.floats(logits).Address, XStride: stride, Rows: rows,
				DenseStride: c.experts, Count: g.words(rows - 1).Address}
			var bias []float32
			if c.bias {
				bias = randomRow(c.experts, 6)
				r.Bias = g.floats(bias).Address
			}
			ids, weights := g.room(uint64(4*rows*c.args.Used)), g.room(uint64(4*rows*c.args.Used))
			dense := g.floats(slices.Repeat([]float32{9}, rows*c.experts))
			r.IDs, r.Weights, r.Dense = ids.Address, weights.Address, dense.Address
			g.run(func(rec *vk.Recording) { require.NoError(t, g.k.Route(rec, &r)) })
			checkRoutes(t, &r, logits, bias, view[uint32](ids.Bytes), floats(weights.Bytes), floats(dense.Bytes))
		})
	}
	require.ErrorContains(t, g.k.Route(nil, &kernel.Route{Args: &ir.RouteArgs{Used: 3}, Experts: 2}), "3 of 2 experts")
}

func checkRoutes(t *testing.T, r *kernel.Route, logits, bias []float32, ids []uint32, weights, dense []float32) {
	used := r.Args.Used
	for row := range r.Rows - 1 {
		want := routed(r.Args, logits[row*r.XStride:][:r.Experts], bias)
		chosen := ids[row*used:][:used]
		require.True(t, slices.IsSorted(chosen))
		for e, w := range want {
			near := 1e-6 + 1e-5*math.Abs(w)
			require.InDelta(t, w, dense[row*r.Experts+e], near, "row %d, expert %d", row, e)
			if i := slices.Index(chosen, uint32(e)); i >= 0 {
				require.InDelta(t, w, weights[row*used+i], near)
			} else {
				require.Zero(t, w, "row %d, expert %d is chosen", row, e)
			}
		}
	}
	require.Equal(t, slices.Repeat([]uint32{math.MaxUint32}, used), ids[(r.Rows-1)*used:], "a row that is not there")
	require.Equal(t, float32(9), dense[len(dense)-1])
}

// TestExperts computes rows by chosen experts, one by one and gathered, against plain mat-vecs: by bits. With -short,
// those of blocks: a processor compiles kernels of floats for long.
func TestExperts(t *testing.T) {
	g := open(t)
	all := []struct {
		typ  quant.Type
		act  ir.Act
		bias bool
	}{{quant.Q4_K, ir.SiLU, false}, {quant.MXFP4, ir.Clamped, true}, {quant.F16, ir.GELU, true}}
	if testing.Short() {
		all = all[:2]
	}
	for _, c := range all {
		t.Run(c.typ.String(), func(t *testing.T) { testExperts(g.with(t), c.typ, c.act, c.bias) })
	}
}

// mixture is a layer of experts with the rows that go through it.
type mixture struct {
	typ                  quant.Type
	act                  ir.Act
	experts, width, ffn  int
	rows, used           int
	gateUp, down         []kernel.Matrix
	gates, ups, downs    uint64 // biases, 0: none
	biases               [3][]float32
	ids                  []uint32
	x                    uint64
	weights              []float32
	gateTable, downTable uint64
}

func newMixture(g *gpu, typ quant.Type, act ir.Act, bias bool) *mixture {
	m := &mixture{typ: typ, act: act, experts: 3, width: 256, ffn: 288, rows: 11, used: 2}
	if typ.Block() == 256 {
		m.ffn = 512
	}
	for e := range m.experts {
		pair, err := NewMatrix(typ, m.ffn, m.width, true)
		require.NoError(g.t, err)
		pair.Address = g.room(pair.Bytes()).Address
		gate, _ := randomWeights(g.t, typ, m.ffn, m.width, uint64(e))
		up, _ := randomWeights(g.t, typ, m.ffn, m.width, uint64(10+e))
		g.run(func(r *vk.Recording) {
			for i, rows := range [][]byte{gate, up} {
				file := g.bytes(recoded(g.t, typ, m.width, rows)).Address
				require.NoError(g.t, g.k.Pack(r, &kernel.Pack{W: &pair, File: file, Rows: m.ffn, Up: i == 1}))
			}
		})
		down, _, _ := g.matrixOf(typ, m.width, m.ffn, uint64(20+e))
		m.gateUp, m.down = append(m.gateUp, pair), append(m.down, down)
	}
	m.gateTable, m.downTable = g.addresses(m.gateUp), g.addresses(m.down)
	if bias {
		for i, n := range []int{m.ffn, m.ffn, m.width} {
			m.biases[i] = randomRow(m.experts*n, uint64(30+i))
		}
		m.gates, m.ups, m.downs = g.floats(m.biases[0]).Address, g.floats(m.biases[1]).Address, g.floats(m.biases[2]).Address
	}
	var xs [][]float32
	for r := range m.rows {
		xs = append(xs, randomRow(m.width, uint64(40+r)))
		first := uint32(r % 2 * (r % 3 / 2))
		m.ids = append(m.ids, first, first+1)
	}
	m.ids[2*m.rows-2], m.ids[2*m.rows-1] = math.MaxUint32, math.MaxUint32 // the last row is not there
	m.x = g.activations(typ, xs).Address
	m.weights = randomRow(m.rows*m.used, 50)
	return m
}

// addresses is a table of where matrices are.
func (g *gpu) addresses(all []kernel.Matrix) uint64 {
	table := g.room(uint64(8 * len(all)))
	for i := range all {
		view[uint64](table.Bytes)[i] = all[i].Address
	}
	return table.Address
}

// glue is what an expert's gate and up become.
func (m *mixture) glue() kernel.Glue {
	if formats[m.typ].float {
		return kernel.SwiGLU
	}
	return kernel.SwiGLUToInt8
}

// activationBytes is a row of activations of so many values.
func (m *mixture) activationBytes(width int) uint64 {
	if formats[m.typ].float {
		return uint64(4 * kernel.PaddedWidth(width))
	}
	return uint64(kernel.QuantisedBytes(width))
}

// run computes all pairs' results, and the sums of rows.
func (m *mixture) run(g *gpu, size int) (pairs, sums []float32) {
	n := m.rows * m.used
	c := kernel.Choice{List: g.words(m.ids...).Address, Entries: n, Share: m.used}
	v := kernel.MatVec{Columns: 1, XStride: kernel.PaddedWidth(m.width), Glue: m.glue(), Act: m.act,
		YStride: kernel.PaddedWidth(m.ffn), X: m.x,
		Bias: m.gates, UpBias: m.ups, Experts: &c}
	hidden := g.room(m.activationBytes(m.ffn) * uint64(n))
	if m.glue() == kernel.SwiGLUToInt8 {
		for i := range hidden.Bytes {
			hidden.Bytes[i] = 0xff // what was there before must not matter
		}
	}
	y, out := g.room(uint64(4*m.width*n)), g.room(uint64(4*m.width*m.rows))
	g.run(func(r *vk.Recording) {
		if size > 0 {
			ids := c.List
			c.List = g.room(kernel.GroupBytes(m.experts, n, size)).Address
			require.NoError(g.t, g.k.Group(r, &kernel.Group{IDs: ids, Entries: c.List, Experts: m.experts, Pairs: n,
				Size: size}))
			r.Barrier()
			c.Grouped, c.Entries, v.Columns = size, kernel.GroupEntries(m.experts, n, size), size
		}
		pair := m.gateUp[0]
		pair.Address, v.Y, v.W = m.gateTable, hidden.Address, &pair
		require.NoError(g.t, g.k.MatVec(r, &v))
		r.Barrier()
		down, second := m.down[0], c
		second.Share, down.Address = 1, m.downTable
		require.NoError(g.t, g.k.MatVec(r, &kernel.MatVec{W: &down, Columns: v.Columns, X: hidden.Address, XStride: v.YStride,
			Y: y.Address, YStride: m.width, Bias: m.downs, Experts: &second}))
		r.Barrier()
		require.NoError(g.t, g.k.Combine(r, &kernel.Combine{X: y.Address, Weights: g.floats(m.weights).Address,
			Y:       out.Address,
			XStride: m.width, YStride: m.width, Width: m.width, Used: m.used, Rows: m.rows,
			Count: g.words(uint32(m.rows - 1)).Address}))
	})
	return floats(y.Bytes), floats(out.Bytes)
}

// alone computes one pair by the experts' matrices on their own.
func (m *mixture) alone(g *gpu, pair int) []float32 {
	e, row := m.ids[pair], pair/m.used
	hidden, y := g.room(m.activationBytes(m.ffn)), g.room(uint64(4*m.width))
	first := kernel.MatVec{W: &m.gateUp[e], Columns: 1, X: m.x + uint64(row)*m.activationBytes(m.width),
		XStride: kernel.PaddedWidth(m.width), Y: hidden.Address, YStride: kernel.PaddedWidth(m.ffn), Glue: m.glue(),
		Act: m.act}
	second := kernel.MatVec{W: &m.down[e], Columns: 1, X: hidden.Address, XStride: kernel.PaddedWidth(m.ffn), Y: y.Address,
		YStride: m.width}
	if m.gates != 0 {
		first.Bias, first.UpBias = m.gates+uint64(4*m.ffn)*uint64(e), m.ups+uint64(4*m.ffn)*uint64(e)
		second.Bias = m.downs + uint64(4*m.width)*uint64(e)
	}
	g.run(func(r *vk.Recording) {
		require.NoError(g.t, g.k.MatVec(r, &first))
		r.Barrier()
		require.NoError(g.t, g.k.MatVec(r, &second))
	})
	return floats(y.Bytes)
}

func testExperts(g *gpu, typ quant.Type, act ir.Act, bias bool) {
	m := newMixture(g, typ, act, bias)
	pairs, sums := m.run(g, 0)
	for p := range (m.rows - 1) * m.used {
		require.True(g.t, g.sameBits(m.alone(g, p), pairs[p*m.width:][:m.width]), "pair %d", p)
	}
	require.Equal(g.t, make([]float32, m.used*m.width), pairs[(m.rows-1)*m.used*m.width:], "the last row is not there")
	for r := range m.rows {
		for i := range m.width {
			want, size := 0.0, 0.0
			for s := range m.used {
				if r < m.rows-1 {
					v := float64(m.weights[r*m.used+s]) * float64(pairs[(r*m.used+s)*m.width+i])
					want, size = want+v, size+math.Abs(v)
				}
			}
			require.InDelta(g.t, want, sums[r*m.width+i], 2e-7*size, "row %d, value %d", r, i)
		}
	}
	sizes := []int{kernel.MaxColumns}
	if size := g.k.Gathers(&m.down[0], m.downs != 0); size == min(size, g.k.Gathers(&m.gateUp[0], m.gates != 0)) {
		sizes = append(sizes, size)
	}
	require.Equal(g.t, typ == quant.Q4_K, slices.Contains(sizes, kernel.GroupedColumns))
	for _, size := range sizes {
		again, sumsAgain := m.run(g, size)
		require.True(g.t, g.sameBits(pairs, again), "one by one and gathered by %d", size)
		require.True(g.t, g.sameBits(sums, sumsAgain))
	}
	m.testSummed(g)
}

// testSummed compares what down and the sum leave as one kernel with what they leave apart, with a residual and
// without, by bits.
func (m *mixture) testSummed(g *gpu) {
	size := m.activationBytes(m.ffn) * uint64(m.rows*m.used)
	hidden := g.activations(m.typ, m.hiddenRows())
	require.Equal(g.t, size, hidden.Size)
	stream := randomRow(m.width*m.rows, 60)
	for _, residual := range []uint64{0, g.floats(stream).Address} {
		c := kernel.Choice{List: g.words(m.ids...).Address, Entries: m.rows * m.used, Share: 1}
		down := m.down[0]
		down.Address = m.downTable
		v := kernel.MatVec{W: &down, Columns: 1, X: hidden.Address, XStride: kernel.PaddedWidth(m.ffn), YStride: m.width,
			Bias:    m.downs,
			Experts: &c}
		sums := uint64(4 * m.width * m.rows)
		y, apart, one := g.room(sums*uint64(m.used)), g.room(sums), g.room(sums)
		weights := g.floats(m.weights).Address
		g.run(func(r *vk.Recording) {
			v.Y = y.Address
			require.NoError(g.t, g.k.MatVec(r, &v))
			r.Barrier()
			require.NoError(g.t, g.k.Combine(r, &kernel.Combine{X: y.Address, Weights: weights, Residual: residual,
				Y:       apart.Address,
				XStride: m.width, YStride: m.width, Width: m.width, Used: m.used, Rows: m.rows,
				Count: g.words(uint32(m.rows - 1)).Address}))
			v.Y, v.Residual = one.Address, residual
			v.Experts = &kernel.Choice{List: c.List, Entries: m.rows, Share: m.used, Shares: weights}
			require.True(g.t, g.k.Fits(&v))
			require.NoError(g.t, g.k.MatVec(r, &v))
		})
		require.True(g.t, g.sameBits(floats(apart.Bytes), floats(one.Bytes)), "residual at %d", residual)
		require.NotZero(g.t, floats(one.Bytes)[0])
	}
	require.ErrorContains(g.t, g.k.MatVec(nil, &kernel.MatVec{W: &m.down[0], Columns: 1, Gain: 1,
		Experts: &kernel.Choice{Share: m.used, Shares: 1}}), "row by row, without a norm")
}

// hiddenRows are what experts' last matrices take.
func (m *mixture) hiddenRows() (rows [][]float32) {
	for p := range m.rows * m.used {
		rows = append(rows, randomRow(m.ffn, uint64(70+p)))
	}
	return rows
}

// TestExpertsNormalise compares experts that normalise their input with a norm before them, by bits.
func TestExpertsNormalise(t *testing.T) {
	g := open(t)
	for _, typ := range []quant.Type{quant.Q4_K, quant.F16} {
		g := g.with(t)
		m := newMixture(g, typ, ir.SiLU, false)
		stride, gain := m.width+4, g.floats(randomRow(m.width, 80)).Address
		x, normed := g.floats(randomRow(stride*m.rows, 81)).Address, g.room(m.activationBytes(m.width)*uint64(m.rows))
		size := m.activationBytes(m.ffn) * uint64(m.rows*m.used)
		before, inside := g.room(size), g.room(size)
		pair := m.gateUp[0]
		pair.Address = m.gateTable
		c := kernel.Choice{List: g.words(m.ids...).Address, Entries: m.rows * m.used, Share: m.used}
		v := kernel.MatVec{W: &pair, Columns: 1, XStride: kernel.PaddedWidth(m.width), Glue: m.glue(), Act: m.act,
			X: normed.Address,
			Y: before.Address, YStride: kernel.PaddedWidth(m.ffn), Experts: &c}
		g.run(func(r *vk.Recording) {
			require.NoError(t, g.k.Norm(r, &kernel.Norm{X: x, Y: normed.Address, Gain: gain, Width: m.width, XStride: stride,
				Stride: kernel.PaddedWidth(m.width), Rows: m.rows, Eps: 1e-5, Quantise: !formats[typ].float}))
			r.Barrier()
			require.NoError(t, g.k.MatVec(r, &v))
			v.X, v.XStride, v.Gain, v.Eps, v.Y = x, stride, gain, 1e-5, inside.Address
			require.NoError(t, g.k.MatVec(r, &v))
		})
		require.Equal(t, before.Bytes, inside.Bytes, "%s", typ)
		require.NotEqual(t, make([]byte, 64), before.Bytes[:64])
	}
}

// TestPairGlues compares a pair's activations and biases with the formulas.
func TestPairGlues(t *testing.T) {
	g := open(t)
	const rows, width = 45, 256
	gate, up := newFile(t, quant.Q8_0, rows, width, 1), newFile(t, quant.Q8_0, rows, width, 2)
	m, err := NewMatrix(quant.Q8_0, rows, width, true)
	require.NoError(t, err)
	m.Address = g.room(m.Bytes()).Address
	one := m
	one.Pair, one.Address = false, g.room(m.Bytes()).Address
	x := g.activations(quant.Q8_0, [][]float32{randomRow(width, 3)})
	ga, ua, h := g.room(4*rows), g.room(4*rows), g.room(4*rows)
	gb, ub := randomRow(rows, 4), randomRow(rows, 5)
	g.run(func(r *vk.Recording) {
		gf, uf := g.bytes(gate).Address, g.bytes(up).Address
		require.NoError(t, g.k.Pack(r, &kernel.Pack{W: &m, File: gf, Rows: rows}))
		require.NoError(t, g.k.Pack(r, &kernel.Pack{W: &m, File: uf, Rows: rows, Up: true}))
		for i, f := range []uint64{gf, uf} {
			require.NoError(t, g.k.Pack(r, &kernel.Pack{W: &one, File: f, Rows: rows}))
			r.Barrier()
			require.NoError(t, g.k.MatVec(r, &kernel.MatVec{W: &one, Columns: 1, X: x.Address, Y: []uint64{ga.Address,
				ua.Address}[i]}))
			r.Barrier()
		}
	})
	for a := ir.SiLU; a <= ir.Clamped; a++ {
		v := kernel.MatVec{W: &m, Columns: 1, X: x.Address, Y: h.Address, Glue: kernel.SwiGLU, Act: a,
			Bias: g.floats(gb).Address}
		require.ErrorContains(t, g.k.MatVec(nil, &v), "two biases or none")
		v.UpBias = g.floats(ub).Address
		g.run(func(r *vk.Recording) { require.NoError(t, g.k.MatVec(r, &v)) })
		for i, got := range floats(h.Bytes) {
			want := gatedTwin(a, float64(floats(ga.Bytes)[i]+gb[i]), float64(floats(ua.Bytes)[i]+ub[i]))
			require.InDelta(t, want, got, 1e-5*(1+math.Abs(want)), "%s, output %d", a, i)
		}
	}
}

// TestManyColumns compares more columns than a workgroup takes with each alone, by bits.
func TestManyColumns(t *testing.T) {
	g := open(t)
	for _, typ := range []quant.Type{quant.Q4_0, quant.BF16} {
		const rows, cols, columns = 70, 512, 13
		m, _, _ := g.with(t).matrixOf(typ, rows, cols, 5)
		var xs [][]float32
		for c := range uint64(columns) {
			xs = append(xs, randomRow(cols, 7+c))
		}
		x, y := g.activations(typ, xs), g.room(4*columns*rows)
		v := kernel.MatVec{W: &m, Columns: columns, X: x.Address, XStride: cols, Y: y.Address, YStride: rows,
			Count: g.words(columns - 1).Address}
		g.run(func(r *vk.Recording) { require.NoError(t, g.k.MatVec(r, &v)) })
		all := floats(y.Bytes)
		size := uint64(kernel.QuantisedBytes(cols))
		if formats[typ].float {
			size = 4 * cols
		}
		for c := range columns {
			one := g.room(4 * rows)
			v.Columns, v.X, v.Y, v.Count = 1, x.Address+uint64(c)*size, one.Address, 0
			if c == columns-1 {
				clear(view[float32](one.Bytes))
				require.Equal(t, floats(one.Bytes), all[c*rows:], "the last is not there")
				break
			}
			g.run(func(r *vk.Recording) { require.NoError(t, g.k.MatVec(r, &v)) })
			require.True(t, g.sameBits(floats(one.Bytes), all[c*rows:(c+1)*rows]), "%s, column %d", typ, c)
		}
	}
}
