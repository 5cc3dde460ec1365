package vec

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

var isaNames = map[ISA]string{AVX2: "avx2", AVX512: "avx512", NEON: "neon"}

// BenchmarkRows reports bytes of float32 a second: those of one operand.
func BenchmarkRows(b *testing.B) {
	for _, isa := range isas() {
		for _, n := range []int{Block, 4096} {
			y, x, z := make([]float32, n), make([]float32, n), make([]float32, n)
			halves, bytes := make([]uint16, n), make([]int8, n)
			for i := range x {
				x[i], z[i] = rand.Float32(), 1 // ones, so that nothing grows or wanes from run to run
			}
			for _, c := range []struct {
				name string
				run  func()
			}{
				{"sum", func() { isa.Sum(x) }},
				{"sum of squares", func() { isa.SumSquares(x) }},
				{"largest", func() { isa.Largest(x) }},
				{"add", func() { isa.Add(y, x, z) }},
				{"scale", func() { isa.Scale(y, x, 1) }},
				{"divide", func() { isa.Divide(y, x, 1) }},
				{"merge", func() { isa.Merge(x, z, 1, 0) }},
				{"rotate", func() { isa.Rotate(x, y, z, z) }},
				{"rotate pairs", func() { isa.RotatePairs(y, x[n/2:], z[n/2:]) }},
				{"exp", func() { isa.Exp(y, x) }},
				{"silu", func() { isa.SiLU(y, x) }},
				{"soft cap", func() { isa.SoftCap(y, x, 30) }},
				{"soft max", func() { isa.SoftMax((*[Block]float32)(y)) }},
				{"halve", func() { isa.Halve(halves, x) }},
				{"widen", func() { isa.Widen(y, halves) }},
				{"bytes", func() { isa.Bytes(bytes, x, 1e-30) }},
				{"widen bytes", func() { isa.WidenBytes(y, bytes) }},
				{"mul rows", func() { isa.MulRows(y, (*[Block]float32)(z)) }},
				{"mul add rows", func() { isa.MulAddRows(y, x, (*[Block]float32)(z)) }},
			} {
				b.Run(fmt.Sprintf("%s/%s/%d", c.name, isaNames[isa], n), func(b *testing.B) {
					clear(y)
					b.SetBytes(int64(4 * n))
					for b.Loop() {
						c.run()
					}
				})
			}
		}
	}
}

func BenchmarkPanel(b *testing.B) {
	for _, isa := range isas() {
		for _, rows := range []int{1, 2, 4, 32} {
			p := Product{Rows: rows, K: 128, N: 64, AStride: 128, BStride: 64, CStride: 64}
			p.A, p.C = make([]float32, rows*128), make([]float32, rows*64)
			wide, halves, bytes := make([]float32, 128*64), make([]uint16, 128*64), make([]int8, 128*64)
			for _, c := range []struct {
				name string
				run  func()
			}{
				{"f32", func() { isa.Panel(&p, wide, nil) }},
				{"f16", func() { isa.PanelHalf(&p, halves, nil) }},
				{"i8", func() { isa.PanelByte(&p, bytes, nil) }},
			} {
				b.Run(fmt.Sprintf("%s/rows=%d/%s", isaNames[isa], rows, c.name), func(b *testing.B) {
					for b.Loop() {
						c.run()
					}
					b.ReportMetric(float64(b.N)*float64(rows)*128*64/1e9/b.Elapsed().Seconds(), "GMAC/s")
				})
			}
		}
	}
}

// BenchmarkFactors reports bytes of an adapter's factors a second, rank 16: A, whose rows are short, and B.
func BenchmarkFactors(b *testing.B) {
	const rank, wide = 16, 4096
	x, y, narrow := make([]float32, wide), make([]float32, wide), new([Lanes]float32)
	f := make([]uint16, rank*wide)
	for _, isa := range isas() {
		p := Product{A: x, C: y, Rows: 1, K: rank, N: wide, BStride: wide}
		for name, run := range map[string]func(){
			"A": func() { isa.NarrowHalf(narrow, x, f, rank) },
			"B": func() { isa.PanelHalf(&p, f, nil) },
		} {
			b.Run(isaNames[isa]+"/"+name, func(b *testing.B) {
				b.SetBytes(2 * rank * wide)
				for b.Loop() {
					run()
				}
			})
		}
	}
}
