package ir

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
)

// mixture makes a legal program whose only layer has 6 experts of 5 features beside a gated one that all rows share.
func mixture(t *testing.T, has func(string) bool) *Program {
	t.Helper()
	b := NewBuilder("test", has)
	x := b.Embed("token_embd", 20, 8)
	b.Layer(0)
	o := b.AttendSinks(x, x, x, "attn_sinks", AttendArgs{Heads: 2, KVHeads: 2, KDim: 4, VDim: 4, Scale: 0.5})
	x = b.Add(x, o)
	b.FFN()
	w := b.Route(b.Linear(x, "ffn_gate_inp", 6), "exp_probs_b",
		RouteArgs{Scoring: SigmoidEach, Used: 2, Groups: 3, GroupsUsed: 2, Normalise: true, Scale: 2.5})
	y := b.Experts(x, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", 5, 2, Clamped)
	shared := b.GLU(Clamped, b.Linear(x, "ffn_gate_shexp", 8), b.Linear(x, "ffn_up_shexp", 8))
	x = b.Add(y, b.Mul(shared, b.Act(Sigmoid, b.Linear(x, "ffn_gate_inp_shexp", 1))))
	b.Head(b.Rows(x), "output", "token_embd")
	p, err := b.Program(100)
	require.NoError(t, err)
	return p
}

func biased(name string) bool { return name == "blk.0.ffn_up_exps.bias" }

func TestMixtureText(t *testing.T) {
	require.Equal(t, `test: width 8, vocab 20, context 100
embed
  %0[8] = embed  token_embd.weight
mix 0
  %1[8] = attend %0 %0 %0  blk.0.attn_sinks.weight  kv=0 heads=2/2 dims=4/4 scale=0.5 cap=0 window=0
  %2[8] = add %0 %1
ffn 0
  %3[6] = linear %2  blk.0.ffn_gate_inp.weight
  %4[6] = route %3  blk.0.exp_probs_b.bias  sigmoid used=2 groups=2/3 normalise=true scale=2.5
  %5[8] = experts %2 %4  blk.0.ffn_gate_exps.weight  blk.0.ffn_up_exps.weight  blk.0.ffn_down_exps.weight`+
		`  blk.0.ffn_up_exps.bias  clamped used=2
  %6[8] = linear %2  blk.0.ffn_gate_shexp.weight
  %7[8] = linear %2  blk.0.ffn_up_shexp.weight
  %8[8] = glu %6 %7  clamped
  %9[1] = linear %2  blk.0.ffn_gate_inp_shexp.weight
  %10[1] = glu %9  sigmoid
  %11[8] = mul %8 %10
  %12[8] = add %5 %11
head
  %13[8] = rows %12
  %14[20] = linear %13  token_embd.weight
logits %14
`, mixture(t, biased).String())
}

func TestCheckFindsFaultsOfMixtures(t *testing.T) {
	const route, experts, glu, mul = 1, 2, 5, 8
	for _, c := range []struct {
		name string
		edit func(p *Program, nodes []Node)
		want string
	}{
		{"sinks", func(p *Program, _ []Node) { p.Weights[1].Cols = 3 }, "attn_sinks.weight is 1×3, want a vector of 2"},
		{"no route", func(_ *Program, n []Node) { n[route].Route = nil }, "no arguments"},
		{"scoring", func(_ *Program, n []Node) { n[route].Route.Scoring = 9 }, "scoring 9"},
		{"groups", func(_ *Program, n []Node) { n[route].Route.Groups = 4 }, "2 of 4 groups of 6 experts"},
		{"no groups", func(_ *Program, n []Node) { n[route].Route.GroupsUsed = 0 }, "0 of 3 groups of 6 experts"},
		{"too few", func(_ *Program, n []Node) { n[route].Route.Used = 5 }, "5 experts used of 4"},
		{"scale", func(_ *Program, n []Node) { n[route].Route.Scale = float32(math.NaN()) }, "scale is NaN"},
		{"bias", func(p *Program, _ []Node) { p.Weights[3].Cols = 5 }, "exp_probs_b.bias is 1×5, want a vector of 6"},
		{"no experts", func(_ *Program, n []Node) { n[experts].Experts = nil }, "experts, and only experts, have"},
		{"experts", func(_ *Program, n []Node) { n[glu].Experts = n[experts].Experts }, "experts, and only experts, have"},
		{"no matrix", func(_ *Program, n []Node) { n[experts].Experts.Gate = NoRef }, "a weight is missing"},
		{"used", func(_ *Program, n []Node) { n[experts].Experts.Used = 7 }, "7 experts used of 6"},
		{"act", func(_ *Program, n []Node) { n[experts].Act = 0 }, "activation 0"},
		{"count", func(p *Program, n []Node) { p.Weights[n[experts].Experts.Up].Experts = 5 },
			"ffn_up_exps.weight is 30×8 of 5 experts, want 30×8 of 6"},
		{"rows", func(p *Program, n []Node) { p.Weights[n[experts].Experts.Down].Rows = 40 },
			"ffn_down_exps.weight is 40×5 of 6 experts, want 48×5 of 6"},
		{"expert bias", func(p *Program, n []Node) { p.Weights[n[experts].Experts.UpBias].Cols = 4 },
			"ffn_up_exps.bias is 6×4, want 6×5"},
		{"one input", func(_ *Program, n []Node) { n[glu].In = n[glu].In[:1] }, "activation 6 of 1 inputs"},
		{"factor", func(_ *Program, n []Node) { n[mul].In[1] = 4 }, "input of 6 features, output of 8"},
	} {
		p := mixture(t, biased)
		c.edit(p, p.Segments[2].Nodes)
		require.ErrorContains(t, Check(p), c.want, c.name)
	}
}

// TestGroupsOfExperts: one group for what is dense, biases of experts included, then one for each expert.
func TestGroupsOfExperts(t *testing.T) {
	p := mixture(t, biased)
	tensors := file(p, quant.F16)
	require.Contains(t, tensors, Tensor{Name: "blk.0.ffn_down_exps.weight", Type: quant.F16, Shape: []int{5, 8, 6}})
	require.Contains(t, tensors, Tensor{Name: "blk.0.ffn_up_exps.bias", Type: quant.F16, Shape: []int{5, 6}})
	b, err := Bind(p, tensors)
	require.NoError(t, err)
	require.Len(t, b.Groups, 4+6)
	dense := b.Groups[2]
	require.Equal(t, Dense, dense.Expert)
	require.EqualValues(t, 2*(6*8+6+6*5+8*8+8*8+8), dense.Bytes)
	rows := make(map[Ref]int)
	for e, g := range b.Groups[3:9] {
		require.Equal(t, 2, g.Segment)
		require.Equal(t, e, g.Expert)
		require.EqualValues(t, 2*3*5*8, g.Bytes)
		for _, r := range g.Weights {
			from, to := g.Rows(&p.Weights[r])
			require.Equal(t, rows[r], from)
			rows[r] = to
		}
	}
	require.Len(t, rows, 3)
	for r, n := range rows {
		require.Equal(t, p.Weights[r].Rows, n)
	}
	require.Equal(t, Dense, b.Groups[9].Expert)

	tensors[p.Segments[2].Nodes[2].Experts.Gate].Shape = []int{8, 30}
	_, err = Bind(p, tensors)
	require.ErrorContains(t, err, `"blk.0.ffn_gate_exps.weight" is 8×30, want 8×5×6`)
}
