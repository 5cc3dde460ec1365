//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile"
	"github.com/sluice-ai/sluice/internal/quant"
)

// own is memory of the card, until the benchmark's end.
func (c *card) own(n uint64) uint64 {
	c.t.Helper()
	b, err := c.d.Allocate(driver.Local, n)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { c.d.Free(b) })
	c.record(0, func(r driver.Recording) { r.Fill(b, 0) })
	return b.Address
}

// benchProducts times products by as many matrices, one after the other, as no cache holds; on the fake card by one
// small one.
func (c *card) benchProducts(b *testing.B, typ quant.Type, rows, cols, columns int, change func(*kernel.MatVec)) (
	r driver.Recording, m kernel.Matrix, n int) {
	if c.d.facts.Software {
		rows, cols, columns = 128, 512, min(columns, 40)
	}
	m, err := tile.Matrix(typ, rows, cols, false)
	require.NoError(b, err)
	n = 1
	if !c.d.facts.Software {
		n = int(max(1, 256<<20/m.Bytes()))
	}
	weights := c.own(m.Bytes() * uint64(n))
	x := c.own(uint64(4 * columns * kernel.PaddedWidth(cols)))
	y := c.own(uint64(4 * columns * rows))
	halves := c.own(uint64(columns * kernel.HalfBytes(cols)))
	return c.recorded(driver.Compute, func(r driver.Recording) {
		for i := range n {
			w := m
			w.Address = weights + uint64(i)*m.Bytes()
			v := kernel.MatVec{W: &w, Columns: columns, X: x, XStride: kernel.PaddedWidth(cols), Y: y, YStride: rows,
				Halves: halves}
			change(&v)
			require.NoError(b, c.d.kernels.Launch(r, &v))
			r.Barrier()
		}
	}), m, n
}

// BenchmarkMatVec is products by matrices of a model of 8 B, each read once.
func BenchmarkMatVec(b *testing.B) {
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.F16} {
		for _, s := range [][3]int{{4096, 4096, 1}, {14336, 4096, 1}, {4096, 14336, 1}, {14336, 4096, 4}, {14336, 4096, 8}} {
			b.Run(fmt.Sprintf("%s/%dx%d/%d", typ, s[0], s[1], s[2]), func(b *testing.B) {
				c := open(b)
				r, m, n := c.benchProducts(b, typ, s[0], s[1], s[2], func(v *kernel.MatVec) { v.Halves = 0 })
				c.timed(b, r, float64(m.Bytes())*float64(n), "GB/s")
			})
		}
	}
}

// BenchmarkMatMul is products of a prompt's rows.
func BenchmarkMatMul(b *testing.B) {
	for _, typ := range []quant.Type{quant.Q4_0, quant.Q8_0, quant.Q4_K, quant.Q6_K, quant.Q5_K, quant.F16} {
		for _, s := range [][3]int{{14336, 4096, 512}, {4096, 4096, 512}, {14336, 4096, 32}} {
			b.Run(fmt.Sprintf("%s/%dx%d/%d", typ, s[0], s[1], s[2]), func(b *testing.B) {
				c := open(b)
				r, m, n := c.benchProducts(b, typ, s[0], s[1], s[2], func(v *kernel.MatVec) {
					if !v.W.Float {
						v.Halves = 0
					}
				})
				c.timed(b, r, 2*float64(m.Rows)*float64(m.Cols)*float64(s[2])*float64(n)/1000, "TOP/s")
			})
		}
	}
}
