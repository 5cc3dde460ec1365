package ir

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestActivations has the values of the definitions, from tables of erf, tanh and exp.
func TestActivations(t *testing.T) {
	for _, c := range []struct {
		act     Act
		x, want float64
	}{
		{SiLU, 1, 0.7310585786300049}, {SiLU, -800, 0}, {SiLU, 800, 800},
		{GELU, 1, 0.8411919906082768}, {GELU, -30, 0}, {GELU, 30, 30},
		{GELUErf, 1, 0.8413447460685429}, {GELUErf, -1, -0.15865525393145707},
		{ReLU2, 3, 9}, {ReLU2, -3, 0},
		{Sigmoid, 0, 0.5}, {Sigmoid, 2, 0.8807970779778823}, {Sigmoid, -800, 0},
		{Root, 9, 3}, {Root, -0.25, -0.5}, {Root, 0, 0}, {Root, 1e-9, 1e-3}, {Root, -1e-30, -1e-3},
		{Softplus, 0, math.Ln2}, {Softplus, 800, 800}, {Softplus, -800, 0},
	} {
		require.InDelta(t, c.want, c.act.Of(c.x), 1e-15, "%s(%v)", c.act, c.x)
	}
	require.InDelta(t, 5*0.9640275800758169, Cap(10, 5), 1e-6)
	for _, c := range []struct{ x, up, want float64 }{
		{1, 2, 2.537387297798464}, {9, 9, 55.99962502642654}, {-800, -9, 0}, {0.5, -9, -2.102330619638281},
	} {
		require.InDelta(t, c.want, Clamped.Gate(c.x, c.up), 1e-12, "clamped %v, %v", c.x, c.up)
	}
	for _, c := range []struct {
		act         Act
		x, up, want float64
	}{
		{SiLUClipped, 0.5, 2, 0.5 * 0.7 / (1 + math.Exp(-0.5))}, {SiLUClipped, 1, 2, 0.49}, {SiLUClipped, 800, -2, -0.49}, {SiLUClipped, -800, 0.5, 0},
		{ClippedSiLU, 800, 2, 0.7 * 0.7 / (1 + math.Exp(-0.7))}, {ClippedSiLU, -1, -0.5, 0.5 / (1 + math.E)},
	} {
		n := Node{Act: c.act, Factor: 0.7}
		require.InDelta(t, c.want, n.gate(c.x, c.up), 1e-7, "%s %v, %v", c.act, c.x, c.up)
	}
}

// TestRoute has choices and weights worked out by hand: e⁰ = 1, and logits are logarithms.
func TestRoute(t *testing.T) {
	log := func(x float64) float32 { return float32(math.Log(x)) }
	logits := []float32{log(1), log(4), log(2), log(4), log(3), log(2)}
	for _, c := range []struct {
		name string
		args RouteArgs
		bias []float32
		want []float32
	}{
		{"all", RouteArgs{Scoring: SoftmaxAll, Used: 2, Scale: 1}, nil, []float32{0, 0.25, 0, 0.25, 0, 0}},
		{"normalised", RouteArgs{Scoring: SoftmaxAll, Used: 3, Normalise: true, Scale: 11}, nil,
			[]float32{0, 4, 0, 4, 3, 0}},
		{"chosen", RouteArgs{Scoring: SoftmaxChosen, Used: 3, Scale: 1}, nil,
			[]float32{0, 4. / 11, 0, 4. / 11, 3. / 11, 0}},
		{"first of equal ones", RouteArgs{Scoring: SoftmaxAll, Used: 4, Scale: 16}, nil,
			[]float32{0, 4, 2, 4, 3, 0}},
		{"sigmoid", RouteArgs{Scoring: SigmoidEach, Used: 1, Scale: 1}, nil, []float32{0, 0.8, 0, 0, 0, 0}},
		{"bias", RouteArgs{Scoring: SigmoidEach, Used: 2, Scale: 2}, []float32{1, 0, 0, 0, 0, 0},
			[]float32{1, 1.6, 0, 0, 0, 0}},
		{"groups", RouteArgs{Scoring: SoftmaxAll, Used: 2, Groups: 3, GroupsUsed: 1, GroupBest: 2, Scale: 16}, nil,
			[]float32{0, 0, 2, 4, 0, 0}},
		{"groups of many", RouteArgs{Scoring: SoftmaxAll, Used: 2, Groups: 2, GroupsUsed: 1, GroupBest: 2, Scale: 16}, nil,
			[]float32{0, 0, 0, 4, 3, 0}},
		{"groups by their best", RouteArgs{Scoring: SoftmaxAll, Used: 2, Groups: 2, GroupsUsed: 1, GroupBest: 1, Scale: 16}, nil,
			[]float32{0, 4, 2, 0, 0, 0}},
		{"mixer", RouteArgs{Scoring: SparseMixer, Used: 3, Scale: 6}, nil, []float32{0, 3, 0, 6, 6, 0}},
	} {
		bias := make([]float32, len(logits))
		copy(bias, c.bias)
		got := make([]float32, len(logits))
		chosen, weights := c.args.Choose(logits, bias)
		for j, e := range chosen {
			got[e] = float32(weights[j])
		}
		require.InDeltaSlice(t, c.want, got, 1e-6, c.name)
	}
}

// TestGram has hashes worked out by hand, in 64 bits: of the last two tokens, and of three. What lies before the text
// or an end counts as one; a token that is an end itself does not cut what came before.
func TestGram(t *testing.T) {
	a := GramArgs{Factors: []uint64{3, 5, 1 << 63}, Each: 2, Sizes: []uint64{7, 10, 1000, 64},
		Firsts: []uint64{0, 7, 20, 2000}, End: 4}
	for _, c := range []struct {
		name   string
		tokens []float32 // as Token has them: plus 1
		want   [4]int
	}{
		// 6·3 = 18; 18 ^ 9·5 = 63, 63 ^ 2⁶³ = 9223372036854775871
		{"three", []float32{7, 10, 2}, [4]int{63 % 7, 3 + 7, 871 + 20, 63 + 2000}},
		{"even factor", []float32{7, 10, 3}, [4]int{0, 10, 63 + 20, 63 + 2000}}, // 2·2⁶³ is 0
		// 18 ^ 4·5 = 6, and 4·2⁶³ is 0
		{"first of a text", []float32{7, 0, 0}, [4]int{6 % 7, 6 + 7, 6 + 20, 6 + 2000}},
		{"behind an end", []float32{7, 5, 2}, [4]int{6, 13, 26, 2006}},
		{"an end two before", []float32{7, 10, 5}, [4]int{0, 10, 83, 2063}},
		{"is an end", []float32{5, 10, 2}, [4]int{33 % 7, 3 + 7, 841 + 20, 33 + 2000}}, // 12 ^ 45 = 33
	} {
		for h, want := range c.want {
			require.Equal(t, want, a.Row(c.tokens, h), "%s, hash %d", c.name, h)
		}
	}
}

// TestSlopes: the rates of heads halve as ALiBi's do.
func TestSlopes(t *testing.T) {
	a := ScanArgs{Heads: 8, Slopes: 2}
	for h := range 8 {
		require.InDelta(t, -2/math.Exp2(float64(h+1)), a.Slope(h), 1e-15)
	}
	a.Heads = 16
	require.InDelta(t, -2/math.Sqrt2, a.Slope(0), 1e-15)
}

// TestConvolve reads every so many positions, the oldest first.
func TestConvolve(t *testing.T) {
	y := make([]float32, 2)
	Convolve(y, []float32{1, 2, 30, 40, 500, 600}, []float32{7, 1, -1, 3}, []float32{0, 9000}, 2)
	require.Equal(t, []float32{507, 10798}, y)
	Convolve(y, []float32{1, 2, 30, 40}, []float32{7, 1, -1, 3}, []float32{0, 0}, 1)
	require.Equal(t, []float32{37, 118}, y)
}
