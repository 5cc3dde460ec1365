package vec

import (
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/system"
)

// isas are the instruction sets under test.
func isas() (all []ISA) {
	if Best() == NEON {
		return []ISA{NEON}
	}
	for isa := AVX2; isa <= Best(); isa++ {
		all = append(all, isa)
	}
	return all
}

// guarded copies x to the end of a page that nothing follows, so that a routine that reads on dies.
func guarded[T float32 | uint16 | int8 | byte](t testing.TB, x []T) []T {
	page := os.Getpagesize()
	size := len(x) * int(unsafe.Sizeof(x[0]))
	room := (size + page - 1) / page * page
	area, err := system.MapMemory(room + page)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, system.UnmapMemory(area)) })
	require.NoError(t, system.ForbidMemory(area[room:]))
	y := unsafe.Slice((*T)(unsafe.Pointer(&area[room-size])), len(x))
	copy(y, x)
	return y
}

// number draws from everything: ordinary values, all bit patterns (no NaN: payloads are not part of the law), edges.
func number(r *rand.Rand) float32 {
	switch r.IntN(8) {
	case 0:
		edges := []float32{0, float32(math.Copysign(0, -1)), 1, -1, expLow, expHigh, -87.5, 89, 65504, 65520, 6e-8,
			math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126, float32(math.Inf(1)), float32(math.Inf(-1))}
		return edges[r.IntN(len(edges))]
	case 1:
		if f := math.Float32frombits(r.Uint32()); f == f {
			return f
		}
	}
	return float32(r.NormFloat64() * math.Exp(4*r.NormFloat64()))
}

func numbers(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = number(r)
	}
	return x
}

// bits makes every NaN the same.
func bits(x []float32) []uint32 {
	b := make([]uint32, len(x))
	for i, v := range x {
		if b[i] = math.Float32bits(v); v != v {
			b[i] = 0x7fc00000
		}
	}
	return b
}

// routines run one routine on x (n values), y and z (n values), writing the result to y.
var routines = []struct {
	name string
	run  func(isa ISA, y, x, z []float32)
}{
	{"sum", func(isa ISA, y, x, _ []float32) { y[0] = isa.Sum(x) }},
	{"sum of squares", func(isa ISA, y, x, _ []float32) { y[0] = isa.SumSquares(x) }},
	{"largest", func(isa ISA, y, x, _ []float32) {
		if y[0] = isa.Largest(x); y[0] != y[0] {
			y[0] = -1 // which NaN is not promised
		}
	}},
	{"add", func(isa ISA, y, x, z []float32) { isa.Add(y, x, z) }},
	{"mul", func(isa ISA, y, x, z []float32) { isa.Mul(y, x, z) }},
	{"divide", func(isa ISA, y, x, z []float32) { isa.Divide(y, x, z[0]) }},
	{"scale", func(isa ISA, y, x, z []float32) { isa.Scale(y, x, z[0]) }},
	{"merge", func(isa ISA, y, x, z []float32) { isa.Merge(y, x, z[0], z[len(z)-1]) }},
	{"rotate", func(isa ISA, y, x, z []float32) {
		isa.Rotate(y[:len(y)/2], y[len(y)-len(y)/2:], x[:len(y)/2], z[:len(y)/2])
	}},
	{"rotate pairs", func(isa ISA, y, x, z []float32) {
		isa.RotatePairs(y[:len(y)&^1], x[:len(x)/2], z[:len(x)/2])
	}},
	{"exp", func(isa ISA, y, x, _ []float32) { isa.Exp(y, x) }},
	{"silu", func(isa ISA, y, x, _ []float32) { isa.SiLU(y, x) }},
	{"gelu", func(isa ISA, y, x, _ []float32) { isa.GELU(y, x) }},
	{"gelu erf", func(isa ISA, y, x, _ []float32) { isa.GELUErf(y, x) }},
	{"soft cap", func(isa ISA, y, x, _ []float32) { isa.SoftCap(y, x, 30) }},
	{"halves", func(isa ISA, y, x, _ []float32) {
		h := make([]uint16, len(x))
		isa.Halve(h, x)
		isa.Widen(y, h)
	}},
	{"bytes", func(isa ISA, y, x, _ []float32) {
		x = slices.Clone(x)
		for i, v := range x {
			if math.IsInf(float64(v), 0) {
				x[i] = 0
			}
		}
		b := make([]int8, len(x))
		d := isa.Bytes(b, x, 1e-30)
		isa.WidenBytes(y, b)
		isa.Scale(y, y, d)
	}},
	{"rows", func(isa ISA, y, x, z []float32) {
		if len(z) >= Block {
			isa.MulRows(x[:len(x)/Block*Block], (*[Block]float32)(z))
			isa.MulAddRows(y[:len(x)/Block*Block], x, (*[Block]float32)(z))
		}
	}},
}

func TestTwin(t *testing.T) {
	for n := 1; n < 200; n += 1 + n/40 {
		twins(t, uint64(n), n)
	}
}

func FuzzTwin(f *testing.F) {
	f.Add(uint64(1), uint16(17))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) { twins(t, seed, 1+int(n)%600) })
}

// twins holds all routines to their twins, on n random values.
func twins(t *testing.T, seed uint64, n int) {
	r := rand.New(rand.NewPCG(seed, 2))
	for _, isa := range isas() {
		for _, routine := range routines {
			x, z, want := numbers(r, n), numbers(r, n), numbers(r, n)
			got, x2, z2 := guarded(t, want), guarded(t, x), guarded(t, z)
			routine.run(Generic, want, x, z)
			routine.run(isa, got, x2, z2)
			require.Equal(t, bits(want), bits(got), "%s of %d values, set %d, x %v z %v", routine.name, n, isa, x, z)
			require.Equal(t, bits(x), bits(x2), "%s: x", routine.name)
		}
	}
}

func TestTwinSoftMax(t *testing.T) {
	for _, isa := range isas() {
		r := rand.New(rand.NewPCG(3, 4))
		for range 500 {
			var x [Block]float32
			for i := range x {
				x[i] = float32(r.NormFloat64() * 20)
				if r.IntN(5) == 0 {
					x[i] = float32(math.Inf(-1))
				}
			}
			x[r.IntN(Block)] = 1
			y := guarded(t, x[:])
			top, sum := Generic.SoftMax(&x)
			top2, sum2 := isa.SoftMax((*[Block]float32)(y))
			require.Equal(t, bits([]float32{top, sum}), bits([]float32{top2, sum2}))
			require.Equal(t, bits(x[:]), bits(y))
		}
	}
}

func TestTwinPanel(t *testing.T) {
	for _, isa := range isas() {
		rapid.Check(t, func(rt *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
			p := Product{
				Rows: rapid.IntRange(1, 9).Draw(rt, "rows"),
				K:    rapid.IntRange(0, 40).Draw(rt, "k"),
				N:    Lanes * rapid.IntRange(1, 9).Draw(rt, "n/16"),
			}
			p.AStride = p.K + rapid.IntRange(0, 5).Draw(rt, "a gap")
			p.BStride = p.N + rapid.IntRange(0, 20).Draw(rt, "b gap")
			p.CStride = p.N + rapid.IntRange(0, 5).Draw(rt, "c gap")
			p.A = guarded(t, numbers(r, max(1, (p.Rows-1)*p.AStride+p.K)))
			b := guarded(t, numbers(r, max(1, (p.K-1)*p.BStride+p.N)))
			want, got := p, p
			want.C = make([]float32, (p.Rows-1)*p.CStride+p.N)
			got.C = guarded(t, want.C)
			Generic.Panel(&want, b, nil)
			isa.Panel(&got, b, want.C)
			require.Equal(rt, bits(want.C), bits(got.C))

			h := make([]uint16, len(b))
			Generic.Halve(h, b)
			Generic.PanelHalf(&want, h, nil)
			isa.PanelHalf(&got, guarded(t, h), h)
			require.Equal(rt, bits(want.C), bits(got.C))

			w := make([]int8, len(b))
			for i := range w {
				w[i] = int8(r.Uint32())
			}
			Generic.PanelByte(&want, w, nil)
			isa.PanelByte(&got, guarded(t, w), w)
			require.Equal(rt, bits(want.C), bits(got.C))
		})
	}
}

func TestTwinNarrow(t *testing.T) {
	for _, isa := range isas() {
		rapid.Check(t, func(rt *rapid.T) {
			r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
			k, stride := rapid.IntRange(0, 40).Draw(rt, "k"), Lanes+rapid.IntRange(0, 20).Draw(rt, "gap")
			x, b := guarded(t, numbers(r, k)), guarded(t, numbers(r, max(0, (k-1)*stride+Lanes)))
			var want, got [Lanes]float32
			Generic.Narrow(&want, x, b, stride)
			isa.Narrow(&got, x, b, stride)
			require.Equal(rt, bits(want[:]), bits(got[:]))
			h := make([]uint16, len(b))
			Generic.Halve(h, b)
			Generic.NarrowHalf(&want, x, h, stride)
			isa.NarrowHalf(&got, x, guarded(t, h), stride)
			require.Equal(rt, bits(want[:]), bits(got[:]))
			require.Panics(rt, func() { isa.Narrow(&got, append(x[:k:k], 1), b, stride) })
		})
	}
}

// TestNarrow compares with sums in double precision.
func TestNarrow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for k := range 33 {
		const stride = Lanes + 3
		x, b := make([]float32, k), make([]float32, k*stride)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		for i := range b {
			b[i] = float32(r.NormFloat64())
		}
		var got [Lanes]float32
		Best().Narrow(&got, x, b, stride)
		for j := range got {
			want := 0.0
			for i := range x {
				want += float64(x[i]) * float64(b[i*stride+j])
			}
			require.InDelta(t, want, got[j], 1e-5, "%d rows", k)
		}
	}
}

// TestPanelShowsNoShape: an element's bits are the same in a product of any shape.
func TestPanelShowsNoShape(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	whole := Product{Rows: 7, K: 33, N: 112, AStride: 33, BStride: 112, CStride: 112}
	whole.A, whole.C = make([]float32, 7*33), make([]float32, 7*112)
	b := make([]float32, 33*112)
	for i := range whole.A {
		whole.A[i] = float32(r.NormFloat64())
	}
	for i := range b {
		b[i] = float32(r.NormFloat64())
	}
	isa := Best()
	isa.Panel(&whole, b, nil)
	for row := range whole.Rows {
		for j := 0; j < whole.N; j += Lanes {
			one := whole
			one.Rows, one.N, one.A, one.C = 1, Lanes, whole.A[row*33:], make([]float32, Lanes)
			isa.Panel(&one, b[j:], nil)
			require.Equal(t, bits(one.C), bits(whole.C[row*112+j:][:Lanes]))
		}
	}
}

// TestFMA compares with exact arithmetic.
func TestFMA(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 200_000 {
		x, y, z := number(r), number(r), number(r)
		if r.IntN(2) == 0 { // near cancellation
			z = -float32(x*y) * (1 + float32(r.IntN(5)-2)*0x1p-23)
		}
		if math.IsInf(float64(x), 0) || math.IsInf(float64(y), 0) || math.IsInf(float64(z), 0) || z != z {
			continue
		}
		exact := new(big.Float).SetPrec(2000).SetFloat64(float64(x))
		exact.Mul(exact, new(big.Float).SetFloat64(float64(y)))
		exact.Add(exact, new(big.Float).SetFloat64(float64(z)))
		want, _ := exact.Float32()
		require.Equal(t, want, FMA(x, y, z), "%g·%g+%g", x, y, z)
	}
}

func TestFunctionsAgainstMath(t *testing.T) {
	for x := float32(-86); x < 88; x += 0.0137 {
		want := math.Exp(float64(x))
		require.InEpsilon(t, want, exp(x), 0x1p-23, "exp %g", x)
	}
	require.Zero(t, exp(-1e30))
	require.True(t, math.IsNaN(float64(exp(float32(math.NaN())))))
	isa := Best()
	for x := float32(-30); x < 30; x += 0.0131 {
		in, y := []float32{x}, make([]float32, 1)
		X := float64(x)
		isa.SiLU(y, in)
		require.InDelta(t, X/(1+math.Exp(-X)), y[0], 3e-7*math.Abs(X)+1e-12, "silu %g", x)
		isa.GELU(y, in)
		gelu := 0.5 * X * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(X+0.044715*X*X*X)))
		require.InDelta(t, gelu, y[0], 5e-7*math.Abs(X)+1e-12, "gelu %g", x)
		isa.GELUErf(y, in)
		gauss := 0.5 * X * math.Erfc(-X/math.Sqrt2)
		require.InDelta(t, gauss, y[0], math.Abs(gauss)*(1e-6+X*X*0x1p-24)+1e-37, "gelu erf %g", x)
		isa.SoftCap(y, in, 5)
		require.InDelta(t, 5*math.Tanh(X/5), y[0], 5*0x1p-22, "soft cap %g", x)
	}
}
