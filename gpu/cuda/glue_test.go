//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile/tiletest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// layer is a pair of matrices, as one and each on its own, with biases and rows of activations.
type layer struct {
	c             *card
	typ           quant.Type
	pair, gate    kernel.Matrix
	up            kernel.Matrix
	bias, upBias  []float32
	rows, columns int
	x, y          *driver.Buffer
	halves        uint64
}

const layerRows, layerCols, layerStride = 300, 512, 512

func newLayer(c *card, typ quant.Type, columns int) *layer {
	l := &layer{c: c, typ: typ, rows: layerRows, columns: columns, bias: tiletest.RandomRow(layerRows, 80),
		upBias: tiletest.RandomRow(layerRows, 81)}
	l.pair, _, _ = c.matrixOf(typ, layerRows, layerCols, true, 1)
	l.gate, _, _ = c.matrixOf(typ, layerRows, layerCols, false, 1)
	l.up, _, _ = c.matrixOf(typ, layerRows, layerCols, false, 1001)
	l.x, _ = c.activations(typ, randomRows(columns, layerCols, 3)...)
	l.y = c.room(4 * layerStride * columns)
	return l
}

// product is of one matrix for all columns.
func (l *layer) product(w *kernel.Matrix, bias []float32) *kernel.MatVec {
	return &kernel.MatVec{W: w, Columns: l.columns, X: l.x.Address, XStride: layerCols, YStride: layerStride,
		Y: l.c.room(4 * layerStride * l.columns).Address, Bias: of(l.c, bias...).Address, Halves: l.halves}
}

// TestPair compares a pair of matrices with each on its own, whose activations are other kernels' work, by bits: few
// columns, and many.
func TestPair(t *testing.T) {
	all := open(t)
	for _, typ := range []quant.Type{quant.Q4_K, quant.F16, quant.Q3_K} {
		for _, columns := range []int{1, 3, 40} {
			for _, act := range []ir.Act{ir.SiLU, ir.GELUErf, ir.Clamped} {
				if act == ir.SiLU || columns == 3 && typ == quant.Q4_K {
					l := newLayer(all.with(t), typ, columns)
					l.testPair(act, columns != 40)
				}
			}
		}
	}
}

func (l *layer) testPair(act ir.Act, biased bool) {
	c, n := l.c, l.columns
	gate, up := l.product(&l.gate, l.bias), l.product(&l.up, l.upBias)
	pair := l.product(&l.pair, l.bias)
	pair.UpBias, pair.Glue, pair.Act, pair.Y = up.Bias, kernel.SwiGLU, act, l.y.Address
	if !biased {
		gate.Bias, up.Bias, pair.Bias, pair.UpBias = 0, 0, 0, 0
	}
	size := kernel.QuantisedBytes(layerRows)
	h, want, got := c.room(4*layerStride*n), c.room(n*size), c.room(n*size)
	bytes := *pair
	bytes.Glue, bytes.Y = kernel.SwiGLUToInt8, got.Address
	for i := range got.Bytes {
		got.Bytes[i] = 0xff // what was there before must not matter
	}
	c.run(gate, up, &kernel.Each{Formula: kernel.Gate, Act: act, A: gate.Y, B: up.Y, Y: h.Address, AStride: layerStride,
		BStride: layerStride, YStride: layerStride, Width: layerRows, Rows: n},
		&kernel.Norm{X: h.Address, Y: want.Address, Width: layerRows, XStride: layerStride, Rows: n, Quantise: true},
		pair, &bytes)
	require.True(c.t, sameBits(view[float32](h), view[float32](l.y)), "%s, %d columns, activation %d", l.typ, n, act)
	require.Equal(c.t, want.Bytes, got.Bytes, "%s, %d columns, activation %d", l.typ, n, act)
	require.NotZero(c.t, view[float32](h)[0])
}

// TestNormWithin compares a norm that is part of a product with one before it, and a bias and a residual with sums, by
// bits. A column that is not there stays as it is.
func TestNormWithin(t *testing.T) {
	all := open(t)
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q6_K, quant.BF16} {
		c := all.with(t)
		const columns, stride = 3, layerCols + 4
		l := newLayer(c, typ, columns)
		var rows []float32
		for _, x := range randomRows(columns, stride, 9) {
			rows = append(rows, x...)
		}
		x, gain := of(c, rows...), of(c, tiletest.RandomRow(layerCols, 5)...)
		norm := &kernel.Norm{X: x.Address, Gain: gain.Address, Width: layerCols, XStride: stride, Stride: layerCols,
			Rows: columns, Eps: 1e-5, Quantise: !l.gate.Float, Y: c.room(4 * layerCols * columns).Address}
		before := l.product(&l.gate, l.bias)
		before.X, before.Bias, before.Y = norm.Y, 0, l.y.Address
		residual, inside := tiletest.RandomRow(layerStride*columns, 6), l.product(&l.gate, l.bias)
		y := of(c, residual...)
		inside.X, inside.XStride, inside.Gain, inside.Eps = x.Address, stride, gain.Address, 1e-5
		whole := *inside
		whole.Y, whole.Residual, whole.Count = y.Address, y.Address, of[uint32](c, columns-1).Address
		inside.Bias = 0
		plain := c.room(4 * layerStride * columns)
		inside.Y = plain.Address
		c.run(norm, before, inside, &whole)
		require.True(t, sameBits(view[float32](l.y), view[float32](plain)), "%s", typ)
		for i, v := range view[float32](l.y) {
			want := residual[i]
			if o := i % layerStride; o < layerRows && i/layerStride < columns-1 {
				want = v + l.bias[o] + residual[i]
			}
			require.Equal(t, want, view[float32](y)[i], "%s, value %d", typ, i)
		}
	}
}

// TestExperts computes rows by chosen experts, one by one, gathered, and summed, against the experts' own products, by
// bits. One entry is of no expert.
func TestExperts(t *testing.T) {
	all := open(t)
	for _, typ := range []quant.Type{quant.Q4_K, quant.MXFP4, quant.F16} {
		t.Run(typ.String(), func(t *testing.T) { testExperts(all.with(t), typ) })
	}
}

func testExperts(c *card, typ quant.Type) {
	const experts, rows, cols, n, used = 3, 70, 768, 8, 2
	var table []uint64
	var matrices []kernel.Matrix
	for e := range experts {
		m, _, _ := c.matrixOf(typ, rows, cols, false, uint64(10*e))
		table, matrices = append(table, m.Address), append(matrices, m)
	}
	x, size := c.activations(typ, randomRows(n*used, cols, 3)...)
	bias := tiletest.RandomRow(experts*rows, 5)
	biases := of(c, bias...)
	alone := func(expert, row int) []float32 {
		y := c.room(4 * rows)
		c.run(&kernel.MatVec{W: &matrices[expert], Columns: 1, X: x.Address + uint64(row)*size, Y: y.Address})
		for i := range rows {
			view[float32](y)[i] += bias[expert*rows+i]
		}
		return view[float32](y)
	}
	w := matrices[0]
	w.Address = of(c, table...).Address
	none := uint32(kernel.NoExpert)
	ids := []uint32{0, 2, 1, 2, 0, 1, none, none} // of four rows
	list := of(c, ids...)
	v := kernel.MatVec{W: &w, Columns: 1, X: x.Address, XStride: cols, YStride: rows, Bias: biases.Address,
		Experts: &kernel.Choice{List: list.Address, Entries: n, Pairs: n, Share: used}}
	y := c.room(4 * rows * n)
	v.Y = y.Address
	c.run(&v)
	for p, e := range ids {
		want := make([]float32, rows)
		if e != none {
			want = alone(int(e), p/used)
		}
		require.True(c.t, sameBits(want, view[float32](y)[p*rows:][:rows]), "pair %d", p)
	}
	for _, entry := range []int{kernel.MaxColumns, c.d.kernels.Gathers(&w, true)} {
		testGathered(c, v, view[float32](y), entry)
	}
	testSummed(c, v, ids, bias, alone)
}

// testGathered compares pairs that are gathered by experts with those that were computed one by one.
func testGathered(c *card, v kernel.MatVec, want []float32, size int) {
	entry := func(expert uint32, pairs ...uint32) []uint32 {
		for len(pairs) < size {
			pairs = append(pairs, kernel.NoExpert)
		}
		return append([]uint32{expert}, pairs...)
	}
	none := uint32(kernel.NoExpert)
	list := append(append(entry(0, 0, 4), entry(1, 2, 5)...), append(entry(none), entry(2, 1, 3)...)...)
	y := c.room(4 * len(want))
	v.Columns, v.Y = size, y.Address
	v.Experts = &kernel.Choice{List: of(c, list...).Address, Entries: 4, Pairs: v.Experts.Pairs, Grouped: size,
		Share: v.Experts.Share}
	c.run(&v)
	require.True(c.t, sameBits(want, view[float32](y)), "by %d", size)
}

// testSummed compares the sums of rows' experts with sums in plain Go, in their order.
func testSummed(c *card, v kernel.MatVec, ids []uint32, bias []float32, alone func(expert, row int) []float32) {
	const used = 2
	rows, entries := v.W.Rows, len(ids)/used-1
	shares, residual := tiletest.RandomRow(len(ids), 50), tiletest.RandomRow(rows*entries, 51)
	for _, with := range []uint64{0, of(c, residual...).Address} {
		y := c.room(4 * rows * entries)
		v.Y, v.Residual = y.Address, with
		v.Experts = &kernel.Choice{List: v.Experts.List, Entries: entries, Share: used, Shares: of(c, shares...).Address}
		require.True(c.t, c.d.kernels.Fits(&v))
		c.run(&v)
		for r := range entries {
			want := make([]float32, rows)
			for s := range used {
				for i, each := range alone(int(ids[r*used+s]), r*used+s) {
					want[i] = tiletest.FMA32(shares[r*used+s], each, want[i])
				}
			}
			for i := range want {
				if with != 0 {
					want[i] += residual[r*rows+i]
				}
			}
			require.True(c.t, sameBits(want, view[float32](y)[r*rows:][:rows]), "row %d, residual at %d", r, with)
		}
	}
	require.ErrorContains(c.t, c.d.kernels.matVec(nil, &kernel.MatVec{W: v.W, Columns: 1, Gain: 1,
		Experts: &kernel.Choice{Share: used, Shares: 1}}), "row by row, without a norm")
}
