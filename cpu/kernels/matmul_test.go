package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// The product differs from the exact one by the rounding of activations and of float32 sums only.
func TestMatMulNearExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, typ := range types {
		for _, s := range Sets() {
			t.Run(fmt.Sprint(typ, "/", s.Name), func(t *testing.T) {
				const rows, n = 35, 5
				cols := 768
				data := randomRows(rng, typ, rows, cols, tame)
				values := randomValues(rng, n*cols, tame)
				m := packed(t, typ, rows, cols, data)
				out := make([]float32, n*rows)
				s.MatMul(out, rows, m, nil, 0, m.Tiles(), prepared(t, s, typ, n, cols, values))
				for r := range n {
					for o := range rows {
						want, bound := exact(typ, data[o*len(data)/rows:][:len(data)/rows], values[r*cols:][:cols])
						require.InDelta(t, want, out[r*rows+o], bound, "row %d, output %d", r, o)
					}
				}
			})
		}
	}
}

// exact is Σ w·x in float64, and how far a kernel may be from it: half a step of each activation's rounding, and
// for float32 sums one rounding of the growing sum for each product.
func exact(typ quant.Type, w []byte, x []float32) (sum, bound float64) {
	weights := make([]float32, len(x))
	if err := quant.Dequantize(typ, weights, w); err != nil {
		panic(err)
	}
	block := map[Form]int{Plain: len(x), By32: 32, By256: 256}[FormOf(typ)]
	var total float64
	for from := 0; from < len(x); from += block {
		var amax, magnitude float64
		for i := from; i < from+block; i++ {
			p := float64(weights[i]) * float64(x[i])
			sum += p
			total += math.Abs(p)
			amax = max(amax, math.Abs(float64(x[i])))
			magnitude += math.Abs(float64(weights[i]))
		}
		if FormOf(typ) != Plain {
			bound += magnitude * amax / 127 * 0.5001
		}
	}
	return sum, bound + total*float64(len(x))*0x1p-23
}

// Law RowAlone: a row's bits do not depend on the rows beside it, nor on the split into tiles.
func TestRowAlone(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, typ := range types {
		for _, s := range Sets() {
			const rows, n = 70, 11
			cols := 512
			m := packed(t, typ, rows, cols, randomRows(rng, typ, rows, cols, tame))
			values := randomValues(rng, n*cols, tame)
			all := make([]float32, n*rows)
			s.MatMul(all, rows, m, nil, 0, m.Tiles(), prepared(t, s, typ, n, cols, values))
			for r := range n {
				alone := make([]float32, rows)
				x := prepared(t, s, typ, 1, cols, values[r*cols:][:cols])
				for tile := range m.Tiles() {
					s.MatMul(alone, rows, m, nil, tile, tile+1, x)
				}
				require.NoError(t, sameBits(all[r*rows:][:rows], alone), "%s, %s, row %d", typ, s.Name, r)
			}
		}
	}
}

// TestBias: biases are added to what each row has alone, in whatever groups rows are multiplied, wherever weights lie.
func TestBias(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const rows, cols = 70, 256
	bias := randomValues(rng, rows, tame)
	for _, typ := range []quant.Type{quant.F16, quant.F32, quant.Q4_K} {
		data := randomRows(rng, typ, rows, cols, tame)
		m := packed(t, typ, rows, cols, data)
		file, err := InFileOrder(typ, rows, cols, data)
		require.NoError(t, err)
		for _, s := range Sets() {
			strips := NewStrips(make([]byte, StripsBytes(m.rowBytes())))
			for _, n := range []int{1, 5, 32, 83} {
				values := randomValues(rng, n*cols, tame)
				want, x := make([]float32, n*rows), prepared(t, s, typ, n, cols, values)
				for r := range n {
					alone := want[r*rows:][:rows]
					s.MatMul(alone, rows, m, nil, 0, m.Tiles(), prepared(t, s, typ, 1, cols, values[r*cols:][:cols]))
					for o := range alone {
						alone[o] += bias[o]
					}
				}
				for _, w := range []*Matrix{m, file} {
					got := make([]float32, n*rows)
					strips.MatMul(s, got, rows, w, bias, 0, 2, x)
					strips.MatMul(s, got, rows, w, bias, 2, w.Tiles(), x)
					require.NoError(t, sameBits(want, got), "%s, %s, %d rows, file order: %t", typ, s.Name, n, w.FileOrder)
				}
			}
			require.Panics(t, func() {
				x := prepared(t, s, typ, 1, cols, randomValues(rng, cols, tame))
				s.MatMul(make([]float32, rows), rows, m, bias[1:], 0, 1, x)
			})
		}
	}
}

func TestMatMulAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for _, typ := range types {
		for _, s := range Sets() {
			m := packed(t, typ, 20, 256, randomRows(rng, typ, 20, 256, tame))
			values := randomValues(rng, 5*256, tame)
			x, out := prepared(t, s, typ, 5, 256, values), make([]float32, 100)
			n := testing.AllocsPerRun(10, func() {
				if err := s.Quantize(x, 0, values[:256]); err != nil {
					panic(err)
				}
				s.MatMul(out, 20, m, nil, 0, 2, x)
			})
			require.Zero(t, n, "%s, %s", typ, s.Name)
		}
	}
}

func TestQuantizeRefusesWhatIsNotFinite(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, s := range Sets() {
		for _, typ := range []quant.Type{quant.Q8_0, quant.Q4_K} {
			for _, bad := range []float32{inf, -inf, float32(math.NaN()), math.Float32frombits(0xffffffff)} {
				for _, at := range []int{0, 31, 255, 511} {
					values := make([]float32, 512)
					values[at] = bad
					a := &Acts{Form: FormOf(typ), Rows: 4, Cols: 512}
					a.Blocks = make([]byte, 4*a.Form.RowBytes(512))
					want := fmt.Sprintf("activation %d of row 3 is %v: the weights or an earlier result are broken", at, bad)
					require.EqualError(t, s.Quantize(a, 3, values), want, s.Name)
				}
			}
		}
	}
}

func TestSetsAreComplete(t *testing.T) {
	for _, s := range Sets()[1:] {
		for _, typ := range types {
			require.True(t, s.Has(typ), "%s has no kernel for %s", s.Name, typ)
		}
	}
}

func TestBest(t *testing.T) {
	s, err := Best("generic")
	require.NoError(t, err)
	require.Equal(t, "generic", s.Name)
	_, err = Best("sse9")
	require.ErrorContains(t, err, `there are no CPU kernels "sse9" here: this machine can run generic`)
	best, err := Best("")
	require.NoError(t, err)
	again, err := Best(best.Name)
	require.NoError(t, err)
	require.Equal(t, best.Name, again.Name)
}
