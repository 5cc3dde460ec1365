package kernels

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/quant"
)

// touched is memory for a benchmark, present in huge pages where the system has them.
func touched(b *testing.B, size int) []byte {
	const page = 4096
	region, err := mem.Alloc(int64(size))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, mem.Free(region)) })
	for at := 0; at < size; at += page {
		region[at] = 1
	}
	return region
}

// filling is a matrix of as many whole tiles as memory has room for.
func filling(b *testing.B, t quant.Type, cols int, memory []byte) *Matrix {
	row, err := t.RowBytes(cols)
	require.NoError(b, err)
	rows := len(memory) / row / TileRows * TileRows
	m, err := NewMatrix(t, rows, cols, memory[:rows*row])
	require.NoError(b, err)
	return m
}

// BenchmarkMemory multiplies a matrix of 1 GiB, far beyond every cache, by few rows: what decoding does.
func BenchmarkMemory(b *testing.B) {
	const size, cols = 1 << 30, 4096
	region := touched(b, size)
	for _, typ := range types {
		m := filling(b, typ, cols, region)
		rows := m.Rows
		for _, n := range []int{1, 2, 4} {
			out := make([]float32, n*rows)
			for _, s := range Sets()[1:] {
				x := prepared(b, s, typ, n, cols, make([]float32, n*cols))
				b.Run(fmt.Sprintf("%s/%s/rows=%d", typ, s.Name, n), func(b *testing.B) {
					b.SetBytes(int64(len(m.Data)))
					for b.Loop() {
						s.MatMul(out, rows, m, nil, 0, m.Tiles(), x)
					}
				})
			}
		}
	}
}

// BenchmarkOrders multiplies matrices by one row on two threads, in turns: packed, as groups that stay; in file order,
// as dense groups that stream; packed where they lie, as experts that come. Of the passes the best tenth counts.
func BenchmarkOrders(b *testing.B) {
	const size, shares, cols, threads = 512 << 20, 63, 4096, 2 // a pass takes a share: nobody may disturb it
	region := touched(b, size)
	sets := Sets()
	s := sets[len(sets)-1]
	for _, typ := range []quant.Type{quant.Q4_K, quant.Q6_K, quant.Q8_0, quant.Q4_0, quant.F16} {
		m := filling(b, typ, cols, region)
		file := *m
		file.FileOrder = true
		keep := file
		keep.Packed = make([]bool, m.Tiles())
		x, out := prepared(b, s, typ, 1, cols, make([]float32, cols)), make([]float32, m.Rows)
		at, each := 0, m.Tiles()/shares
		pass := func(m *Matrix) float64 {
			at = (at + each) % (each * shares)
			var running sync.WaitGroup
			began := time.Now()
			for i := range threads {
				running.Go(func() {
					strips := NewStrips(make([]byte, StripsBytes(m.rowBytes())))
					strips.MatMul(s, out, m.Rows, m, nil, at+i*each/threads, at+(i+1)*each/threads, x)
				})
			}
			running.Wait()
			return float64(each*m.StripBytes()) / time.Since(began).Seconds() / 1e9
		}
		b.Run(typ.String(), func(b *testing.B) {
			var packed, ordered, kept []float64
			for b.Loop() {
				packed, ordered = append(packed, pass(m)), append(ordered, pass(&file))
				clear(keep.Packed)
				kept = append(kept, pass(&keep))
			}
			b.ReportMetric(best(packed), "packed-GB/s")
			b.ReportMetric(best(ordered), "file-GB/s")
			b.ReportMetric(best(kept), "kept-GB/s")
		})
	}
}

// best is what a tenth of the values reach.
func best(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)-1-len(values)/10]
}

// BenchmarkPackMemory packs a matrix of 256 MiB into another: what loading does.
func BenchmarkPackMemory(b *testing.B) {
	const size, cols = 256 << 20, 4096
	from, to := touched(b, size), touched(b, size)
	sets := Sets()
	s := sets[len(sets)-1]
	for _, typ := range types {
		m := filling(b, typ, cols, to)
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(int64(len(m.Data)))
			for b.Loop() {
				require.NoError(b, s.Pack(m, 0, from[:len(m.Data)]))
			}
		})
	}
}
