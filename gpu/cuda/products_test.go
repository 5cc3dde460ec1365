//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/gpu/tile/tiletest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// layouts are a type of each.
var layouts = []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.F16, quant.BF16, quant.F32, quant.Q3_K,
	quant.Q5_K}

// matrixOf makes random weights: the matrix, or pair, packed by a kernel; bytes of the file and values of the first.
func (c *card) matrixOf(t quant.Type, rows, cols int, pair bool, seed uint64) (m kernel.Matrix, file []byte,
	values []float32) {
	c.t.Helper()
	m, err := tile.Matrix(t, rows, cols, pair)
	require.NoError(c.t, err)
	m.Address = c.room(int(m.Bytes())).Address
	file, values = tiletest.RandomWeights(c.t, t, rows, cols, seed)
	c.run(&kernel.Pack{W: &m, File: of(c, tiletest.Recoded(c.t, t, cols, file)...).Address, Rows: rows})
	if pair {
		up, _ := tiletest.RandomWeights(c.t, t, rows, cols, seed+1000)
		c.run(&kernel.Pack{W: &m, File: of(c, tiletest.Recoded(c.t, t, cols, up)...).Address, Rows: rows, Up: true})
	}
	return m, file, values
}

// activations are rows as a type's mat-vec takes them, quantised or padded, and the bytes of each.
func (c *card) activations(t quant.Type, xs ...[]float32) (b *driver.Buffer, each uint64) {
	var all []byte
	for _, x := range xs {
		all = append(all, activationRow(t, x)...)
	}
	return of(c, all...), uint64(len(all) / len(xs))
}

func activationRow(t quant.Type, x []float32) (to []byte) {
	order, padded := binary.LittleEndian, make([]float32, kernel.PaddedWidth(len(x)))
	copy(padded, x)
	if tile.Of(t).Float() {
		for _, v := range padded {
			to = order.AppendUint32(to, math.Float32bits(v))
		}
		return to
	}
	var scales []byte
	for b := 0; b < len(padded); b += 32 {
		q, d, sums := tiletest.Quantised(padded[b : b+32])
		for _, v := range q {
			to = append(to, byte(v))
		}
		scales = order.AppendUint32(scales, math.Float32bits(d))
		scales = order.AppendUint32(scales, uint32(sums[0])&0xffff|uint32(sums[1])<<16)
	}
	return append(to, scales...)
}

func randomRows(n, width int, seed uint64) (xs [][]float32) {
	for i := range n {
		xs = append(xs, tiletest.RandomRow(width, seed+uint64(i)))
	}
	return xs
}

// TestMatVecTwin compares with the order of addition of matvec.cu in plain Go, by bits, and with exact sums.
func TestMatVecTwin(t *testing.T) {
	c := open(t)
	for _, typ := range quant.All() {
		if tile.Of(typ) == tile.None {
			continue
		}
		narrow := 352 / typ.Block() * typ.Block() // no whole tile, where blocks allow it
		for _, shape := range [][2]int{{37, 768}, {32, max(256, narrow-typ.Block())}, {33, 4096 + 256}} {
			own := tile.Of(typ).Recoded() == 0 || typ == quant.Q3_K || typ == quant.Q5_K
			if shape[0] == 37 || own && !testing.Short() {
				t.Run(fmt.Sprint(typ, shape), func(t *testing.T) { testMatVecTwin(c.with(t), typ, shape[0], shape[1]) })
			}
		}
	}
}

func testMatVecTwin(c *card, typ quant.Type, rows, cols int) {
	m, file, values := c.matrixOf(typ, rows, cols, false, 1)
	row := tiletest.RandomRow(cols, 3)
	x, _ := c.activations(typ, row)
	y := c.room(4 * rows)
	c.run(&kernel.MatVec{W: &m, Columns: 1, X: x.Address, Y: y.Address})
	got, want := view[float32](y), tiletest.MatVec(&m, file, row, tiletest.FMA32)
	require.True(c.t, sameBits(want, got), "%v, want %v", got[:4], want[:4])
	tiletest.Near(c.t, got, values, tiletest.RoundTrip(typ, row), 2e-7*float64(cols/32+1))
}

// TestRowAlone compares a column alone with the same column among others, by bits: whatever the number of columns, of
// tiles at once, and of blocks, and whether a block has memory for a copy of the activations.
func TestRowAlone(t *testing.T) {
	all := open(t)
	for _, typ := range layouts {
		t.Run(typ.String(), func(t *testing.T) {
			c := all.with(t)
			const rows, cols, stride = 70, 1280, 80
			m, _, _ := c.matrixOf(typ, rows, cols, false, 5)
			m.Segment = 2
			x, size := c.activations(typ, randomRows(19, cols, 7)...)
			var alone [19][]float32
			for i := range alone {
				y := c.room(4 * rows)
				c.run(&kernel.MatVec{W: &m, Columns: 1, X: x.Address + uint64(i)*size, Y: y.Address})
				alone[i] = view[float32](y)
			}
			most := c.d.c.Facts.Shared
			defer func() { c.d.c.Facts.Shared = most }()
			for _, s := range []struct{ columns, tiles, groups, shared int }{{1, 2, 1, most}, {1, 1, 2, 5 * 128},
				{2, 1, 0, most}, {3, 2, 1, most}, {5, 1, 2, 5 << 10}, {8, 3, 0, 20 << 10}, {19, 1, 0, 5 << 10}} {
				y := c.room(4 * stride * s.columns)
				c.d.c.Facts.Shared = s.shared
				c.run(&kernel.MatVec{W: &m, Columns: s.columns, X: x.Address, XStride: cols, Y: y.Address, YStride: stride,
					Tiles: s.tiles, Groups: s.groups})
				for i := range s.columns {
					require.True(t, sameBits(alone[i], view[float32](y)[i*stride:][:rows]), "%+v, column %d", s, i)
				}
			}
		})
	}
}

// TestEmbed looks up rows of all layouts, those of the step before, too.
func TestEmbed(t *testing.T) {
	all := open(t)
	for _, typ := range layouts {
		t.Run(typ.String(), func(t *testing.T) {
			c := all.with(t)
			const rows, cols, stride = 70, 512, 520
			m, _, values := c.matrixOf(typ, rows, cols, false, 5)
			ids := []int{0, 69, 31, 7}
			y := c.room(4 * stride * len(ids))
			c.run(&kernel.Embed{W: &m, IDs: of[int32](c, 0, 69, 31, -2).Address, Drawn: of[uint32](c, 3, 7).Address,
				Y: y.Address, YStride: stride, Rows: len(ids)})
			for i, id := range ids {
				got := view[float32](y)[i*stride:][:stride]
				require.Equal(t, values[id*cols:][:cols], got[:cols], "row %d", i)
				require.Equal(t, make([]float32, stride-cols), got[cols:])
			}
		})
	}
}

// TestHeadLinear multiplies by weights of all layouts, heads that end within a tile, and compares with exact sums. Rows
// beyond the count stay as they are, and a row alone has the bits that it has among others.
func TestHeadLinear(t *testing.T) {
	const heads, each, cols, rows, there, out = 3, 21, 512, 16, 11, 3 * 21
	all := open(t)
	for _, typ := range layouts {
		t.Run(typ.String(), func(t *testing.T) {
			c := all.with(t)
			m, _, values := c.matrixOf(typ, out, cols, false, 1)
			x := tiletest.RandomRow(heads*cols*rows, 2)
			in, many, one := of(c, x...), c.room(4*out*rows), c.room(4*out)
			l := kernel.HeadLinear{W: &m, X: in.Address, Y: many.Address, Heads: heads, XStride: heads * cols, YStride: out,
				Rows: rows, Count: of[uint32](c, there).Address}
			single := l
			single.X, single.Y, single.Rows, single.Count = in.Address+4*heads*cols*9, one.Address, 1, 0
			c.run(&l, &single)
			y := view[float32](many)
			tiletest.NearHeads(t, y, values, x, heads, each, cols, there)
			require.True(t, sameBits(y[9*out:10*out], view[float32](one)), "a row alone")
		})
	}
}

// TestHeadCopy copies the middle of heads into wider ones, of the rows that are there.
func TestHeadCopy(t *testing.T) {
	c := open(t)
	const heads, width, xHead, yHead, rows, there = 3, 20, 50, 32, 4, 3
	x := tiletest.RandomRow(heads*xHead*rows, 1)
	y := c.room(4 * heads * yHead * rows)
	c.run(&kernel.HeadCopy{X: of(c, x...).Address + 4*5, Y: y.Address + 4*2, Heads: heads, Width: width, XHead: xHead,
		YHead: yHead, XStride: heads * xHead, YStride: heads * yHead, N: rows, Count: of[uint32](c, there).Address})
	for i, got := range view[float32](y) {
		r, head, at := i/(heads*yHead), i/yHead%heads, i%yHead-2
		want := float32(0)
		if r < there && at >= 0 && at < width {
			want = x[(r*heads+head)*xHead+5+at]
		}
		require.Equal(t, want, got, "value %d", i)
	}
}

// TestMatMul compares many columns with groups of a few, by bits, with all that may follow a product: blocks of every
// width, and what is not there.
func TestMatMul(t *testing.T) {
	all := open(t)
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.Q3_K, quant.Q5_K} {
		for _, s := range []struct{ rows, cols, columns, processors int }{{300, 768, 17, 1}, {130, 256, 70, 1},
			{70, 512, 33, 1}, {300, 512, 70, 9}} {
			if s.columns == 17 || !testing.Short() || typ == quant.Q4_K {
				t.Run(fmt.Sprint(typ, s), func(t *testing.T) {
					c := all.with(t)
					defer func(n int) { c.d.c.Facts.Processors = n }(c.d.c.Facts.Processors)
					c.d.c.Facts.Processors = s.processors
					testMatMul(c, typ, s.rows, s.cols, s.columns)
				})
			}
		}
	}
}

func testMatMul(c *card, typ quant.Type, rows, cols, columns int) {
	m, _, _ := c.matrixOf(typ, rows, cols, false, 1)
	if cols == 768 {
		m.Segment = 2
	}
	stride := kernel.PaddedWidth(rows)
	x, _ := c.activations(typ, randomRows(columns, cols, 7)...)
	v := kernel.MatVec{W: &m, Columns: columns, X: x.Address, XStride: kernel.PaddedWidth(cols), YStride: stride,
		Count: of(c, uint32(columns-1)).Address, Bias: of(c, tiletest.RandomRow(rows, 90)...).Address,
		Residual: of(c, tiletest.RandomRow(stride*columns, 91)...).Address, Y: c.room(4 * stride * columns).Address}
	want, got, few := c.room(4*stride*columns), c.room(4*stride*columns), v
	require.Positive(c.t, c.d.kernels.wideOf(&v))
	few.Groups = 1 << 20 // not by matmul.cu
	few.Y, v.Y = want.Address, got.Address
	require.Zero(c.t, c.d.kernels.wideOf(&few))
	c.run(&few, &v)
	require.True(c.t, sameBits(view[float32](want), view[float32](got)))
	require.NotZero(c.t, view[float32](want)[0])
}

// TestMatMulHalves compares with sums in float64 of what is rounded to half precision, columns alone with all by bits,
// and pairs with each matrix on its own.
func TestMatMulHalves(t *testing.T) {
	all := open(t)
	for _, typ := range []quant.Type{quant.F16, quant.BF16} {
		for _, s := range [][3]int{{140, 256, 37}, {70, 101, 3}, {130, 512, 130}} {
			if s[2] != 130 || !testing.Short() {
				t.Run(fmt.Sprint(typ, s), func(t *testing.T) { testMatMulHalves(all.with(t), typ, s[0], s[1], s[2]) })
			}
		}
	}
	for _, s := range [][3]int{{140, 256, 37}, {70, 512, 100}, {260, 512, 130}, {70, 768, 260}} {
		if s[2] == 37 || !testing.Short() {
			t.Run(fmt.Sprint("Hopper", s), func(t *testing.T) {
				c := all.with(t).hopper()
				require.True(t, c.d.kernels.grouped(quant.F16))
				testMatMulHalves(c, quant.F16, s[0], s[1], s[2])
			})
		}
	}
	t.Run("Hopper pair", func(t *testing.T) {
		c := all.with(t).hopper()
		l := newLayer(c, quant.F16, 70)
		l.halves = c.room(70 * kernel.HalfBytes(layerCols)).Address
		l.testPair(ir.GELU, false)
	})
	for _, columns := range []int{3, 70} {
		if columns > 3 && testing.Short() {
			continue // the fake card takes seconds
		}
		l := newLayer(all.with(t), quant.BF16, columns)
		l.halves = all.room(columns * kernel.HalfBytes(layerCols)).Address
		l.testPair(ir.GELU, false)
	}
}

// hopper has the fake card be one of compute capability 9.0; on another card the test is skipped.
func (c *card) hopper() *card {
	f := &c.d.c.Facts
	if c.d.facts.Software {
		major := f.Major
		c.t.Cleanup(func() { f.Major = major })
		f.Major = 9
	}
	if f.Major != 9 || f.Minor != 0 {
		c.t.Skip("the card is no Hopper")
	}
	return c
}

func testMatMulHalves(c *card, typ quant.Type, rows, cols, columns int) {
	defer func(n int) { c.d.c.Facts.Processors = n }(c.d.c.Facts.Processors)
	c.d.c.Facts.Processors = 1
	m, _, values := c.matrixOf(typ, rows, cols, false, 1)
	xs := randomRows(columns, cols, 7)
	for k := range cols { // what halves do not reach, of both kinds
		xs[0][k] *= 1e-3
		xs[1][k] *= 3e7
	}
	xs[2][cols-1] *= 3e7
	x, size := c.activations(typ, xs...)
	bias, residual := tiletest.RandomRow(rows, 90), tiletest.RandomRow(rows*columns, 91)
	y, one := c.room(4*rows*columns), c.room(4*rows)
	v := kernel.MatVec{W: &m, Columns: columns, X: x.Address, XStride: kernel.PaddedWidth(cols), Y: y.Address,
		YStride: rows, Bias: of(c, bias...).Address, Residual: of(c, residual...).Address,
		Halves: c.room(columns * kernel.HalfBytes(cols)).Address}
	require.Positive(c.t, c.d.kernels.halfWideOf(&v))
	alone := v
	alone.Columns, alone.Y, alone.X = 1, one.Address, v.X+uint64(columns-1)*size
	alone.Residual += uint64(4 * (columns - 1) * rows)
	c.run(&v, &alone)
	got := view[float32](y)
	require.True(c.t, sameBits(got[(columns-1)*rows:], view[float32](one)), "the last column alone")
	for i, v := range got {
		r, o := i/rows, i%rows
		sum, size := tiletest.HalfDot(values[o*cols:][:cols], xs[r])
		require.InDelta(c.t, sum+float64(bias[o])+float64(residual[i]), v, 1e-5*(1+size), "column %d, output %d", r, o)
	}
}
