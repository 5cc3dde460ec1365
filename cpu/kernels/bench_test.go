package kernels

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Two matrices are beyond L2 at most, one with rows of activations that fill it soon; the third is read from memory, if
// the last-level cache is shared.
var benchShapes = []struct{ rows, cols int }{{2048, 2048}, {2048, 8192}, {8192, 8192}}

func benchMatMul(b *testing.B, n int) {
	for _, typ := range types {
		b.Run(typ.String(), func(b *testing.B) {
			for _, shape := range benchShapes {
				b.Run(fmt.Sprintf("%dx%d", shape.rows, shape.cols), func(b *testing.B) {
					benchSets(b, typ, shape.rows, shape.cols, n)
				})
			}
		})
	}
}

func benchSets(b *testing.B, typ quant.Type, rows, cols, n int) {
	rng := rand.New(rand.NewPCG(1, 1))
	m := packed(b, typ, rows, cols, nil)
	strip := packed(b, typ, 256, cols, randomRows(rng, typ, 256, cols, tame)).Data
	for at := 0; at < len(m.Data); at += len(strip) {
		copy(m.Data[at:], strip)
	}
	values := randomValues(rng, n*cols, tame)
	out := make([]float32, n*rows)
	for _, s := range Sets() {
		x := prepared(b, s, typ, n, cols, values)
		b.Run(s.Name, func(b *testing.B) {
			b.SetBytes(int64(len(m.Data)))
			for b.Loop() {
				s.MatMul(out, rows, m, nil, 0, m.Tiles(), x)
			}
			macs := float64(n) * float64(rows) * float64(cols) * float64(b.N)
			b.ReportMetric(macs/b.Elapsed().Seconds()/1e9, "GMAC/s")
		})
	}
}

func BenchmarkDecode(b *testing.B)  { benchMatMul(b, 1) }
func BenchmarkFour(b *testing.B)    { benchMatMul(b, 4) }
func BenchmarkEight(b *testing.B)   { benchMatMul(b, 8) }
func BenchmarkPrefill(b *testing.B) { benchMatMul(b, 512) }

func BenchmarkQuantize(b *testing.B) {
	values := randomValues(rand.New(rand.NewPCG(1, 1)), 4096, tame)
	for _, typ := range []quant.Type{quant.Q8_0, quant.Q4_K} {
		for _, s := range Sets() {
			x := prepared(b, s, typ, 1, len(values), values)
			b.Run(fmt.Sprint(typ, "/", s.Name), func(b *testing.B) {
				b.SetBytes(int64(4 * len(values)))
				for b.Loop() {
					if err := s.Quantize(x, 0, values); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkPack(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	sets := Sets()
	for _, typ := range types {
		data := randomRows(rng, typ, 1024, 2048, tame)
		m := packed(b, typ, 1024, 2048, data)
		for _, s := range []*Set{sets[0], sets[len(sets)-1]} {
			b.Run(fmt.Sprint(typ, "/", s.Name), func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				for b.Loop() {
					if err := s.Pack(m, 0, data); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRow(b *testing.B) {
	for _, typ := range types {
		m := packed(b, typ, 16, 2048, randomRows(rand.New(rand.NewPCG(1, 1)), typ, 16, 2048, tame))
		dst := make([]float32, 2048)
		b.Run(typ.String(), func(b *testing.B) {
			b.SetBytes(int64(len(m.Data) / 16))
			for b.Loop() {
				m.Row(dst, 5, new(RowBuffer))
			}
		})
	}
}
