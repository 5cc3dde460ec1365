package vec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTwinRecur: the state and what is read of it have the twin's bits, whatever the shape, and nothing is touched
// beyond them.
func TestTwinRecur(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, isa := range isas() {
		for range 60 {
			n, rows := Lanes*(1+r.IntN(9)), 1+r.IntN(70)
			stride := n + r.IntN(3)
			p := Recurrence{
				S: numbers(r, (rows-1)*stride+n), K: guarded(t, numbers(r, rows)), Q: guarded(t, numbers(r, rows)),
				W: guarded(t, numbers(r, n)), Y: make([]float32, n), Decay: number(r), N: n, Stride: stride,
			}
			twin := p
			twin.S, twin.Y = slices.Clone(p.S), make([]float32, n)
			p.S, p.Y = guarded(t, p.S), guarded(t, p.Y)
			Generic.Recur(&twin)
			isa.Recur(&p)
			require.Equal(t, bits(twin.S), bits(p.S))
			require.Equal(t, bits(twin.Y), bits(p.Y))
		}
	}
}

// TestRecurAgainstMath: the sums are those of the formula.
func TestRecurAgainstMath(t *testing.T) {
	p := Recurrence{S: make([]float32, 2*Lanes), K: []float32{2, 3}, Q: []float32{5, 7}, W: make([]float32, Lanes),
		Y: make([]float32, Lanes), Decay: 0.5, N: Lanes, Stride: Lanes}
	p.S[0], p.S[Lanes], p.W[0] = 4, 6, 10
	Best().Recur(&p)
	require.Equal(t, []float32{22, 33, 22*5 + 33*7, 0}, []float32{p.S[0], p.S[Lanes], p.Y[0], p.Y[1]})
	require.Panics(t, func() { p.N = 2 * Lanes; Best().Recur(&p) })
}

func BenchmarkRecur(b *testing.B) {
	for _, isa := range isas() {
		for _, n := range []int{64, 128} { // Mamba-2's heads, and those of gated delta networks
			b.Run(fmt.Sprintf("%s/%d", isaNames[isa], n), func(b *testing.B) {
				const k = 128
				p := Recurrence{S: make([]float32, k*n), K: make([]float32, k), Q: make([]float32, k), W: make([]float32, n),
					Y: make([]float32, n), Decay: 1, N: n, Stride: n}
				b.SetBytes(int64(4 * k * n))
				for b.Loop() {
					isa.Recur(&p)
				}
			})
		}
	}
}
