package ir

import (
	"math"
	"slices"
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
	n := b.RMSNorm(x, "ffn_norm", 1e-5)
	shared := b.GLU(Clamped, b.Linear(n, "ffn_gate_shexp", 8), b.Linear(n, "ffn_up_shexp", 8))
	shared = b.Mul(shared, b.Act(Sigmoid, b.Linear(n, "ffn_gate_inp_shexp", 1)))
	w := b.Route(b.Linear(n, "ffn_gate_inp", 6), "exp_probs_b",
		RouteArgs{Scoring: SigmoidEach, Used: 2, Groups: 3, GroupsUsed: 2, GroupBest: 2, Normalise: true, Scale: 2.5})
	y := b.Experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", 5, 2, Clamped)
	x = b.Add(x, b.Add(y, shared))
	b.Head(b.Rows(x), "output", "token_embd")
	p, err := b.Program(100)
	require.NoError(t, err)
	return p
}

func biased(name string) bool { return name == "blk.0.ffn_up_exps.bias" }

// TestTold: whatever a table of a file has names an expert that there is.
func TestTold(t *testing.T) {
	for x, want := range map[float32]int{0: 0, 1: 1, 4.9: 4, 5: 5, 6: 5, 1e30: 5, -1: 0, -1e30: 0,
		float32(math.Inf(1)): 5, float32(math.Inf(-1)): 0, float32(math.NaN()): 0} {
		require.Equal(t, want, Told(x, 6), "%v", x)
	}
}

func TestMixtureText(t *testing.T) {
	require.Equal(t, `test: width 8, vocab 20, context 100
embed
  %0[8] = embed  token_embd.weight
mix 0
  %1[8] = attend %0 %0 %0  blk.0.attn_sinks.weight  kv=0 heads=2/2 dims=4/4 scale=0.5 cap=0 window=0
  %2[8] = add %0 %1
route 0
  %3[8] = norm %2  blk.0.ffn_norm.weight  rms eps=1e-05 group=8
  %4[8] = linear %3  blk.0.ffn_gate_shexp.weight
  %5[8] = linear %3  blk.0.ffn_up_shexp.weight
  %6[8] = glu %4 %5  clamped
  %7[1] = linear %3  blk.0.ffn_gate_inp_shexp.weight
  %8[1] = glu %7  sigmoid
  %9[8] = mul %6 %8
  %10[6] = linear %3  blk.0.ffn_gate_inp.weight
  %11[6] = route %10  blk.0.exp_probs_b.bias  sigmoid used=2 groups=2/3 by 2 normalise=true scale=2.5
  carries %2 %3 %9 %11
experts 0
  %12[8] = experts %3 %11  blk.0.ffn_gate_exps.weight  blk.0.ffn_up_exps.weight  blk.0.ffn_down_exps.weight`+
		`  blk.0.ffn_up_exps.bias  clamped used=2
  %13[8] = add %12 %9
  %14[8] = add %2 %13
head
  %15[8] = rows %14
  %16[20] = linear %15  token_embd.weight
logits %16
`, mixture(t, biased).String())
}

func TestCheckFindsFaultsOfMixtures(t *testing.T) {
	const glu, route, experts, sum = 3, 8, 9, 10
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
		{"best of groups", func(_ *Program, n []Node) { n[route].Route.GroupBest = 3 }, "groups as good as their 3 best"},
		{"mixer", func(_ *Program, n []Node) { n[route].Route.Scoring = SparseMixer }, "a sparse mixer has no groups"},
		{"too few", func(_ *Program, n []Node) { n[route].Route.Used = 5 }, "5 experts used of 4"},
		{"scale", func(_ *Program, n []Node) { n[route].Route.Scale = float32(math.NaN()) }, "scale is NaN"},
		{"bias", func(p *Program, n []Node) { p.Weights[n[route].B].Cols = 5 }, "exp_probs_b.bias is 1×5, want a vector of 6"},
		{"no experts", func(_ *Program, n []Node) { n[experts].Experts = nil }, "no arguments"},
		{"experts of glu", func(_ *Program, n []Node) { n[glu].Experts = n[experts].Experts }, "has arguments of experts"},
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
		{"factor", func(p *Program, _ []Node) { p.Widths[8] = 6 }, "inputs of 8 and 6 features, output of 8"},
		{"no router", func(_ *Program, n []Node) { n[experts].In[1] = 3 }, "takes its weights from value 3, which no"},
		{"shared late", func(_ *Program, n []Node) { n[sum].In[0] = 9 }, "add: does not need the experts: record it before"},
		{"experts late", func(_ *Program, n []Node) { n[experts], n[sum] = n[sum], n[experts] },
			"a segment of experts, and only that, starts with experts"},
		{"carries nothing", func(p *Program, _ []Node) { p.Segments[2].Carries = nil },
			"route 0 carries, and later segments read %2 %3 %9 %11"},
		{"carries too little", func(p *Program, _ []Node) { p.Segments[2].Carries = []Value{2, 3, 11} },
			"experts 0, node 1, add: reads value 9, which route 0 does not carry"},
		{"carries too much", func(p *Program, _ []Node) { p.Segments[2].Carries = []Value{2, 3, 4, 9, 11} },
			"route 0 carries %2 %3 %4 %9 %11, and later segments read %2 %3 %9 %11"},
		{"carries twice", func(p *Program, _ []Node) { p.Segments[2].Carries = []Value{2, 3, 3, 9, 11} },
			"route 0 carries %2 %3 %3 %9 %11, and later segments read %2 %3 %9 %11"},
		{"carries an older value", func(p *Program, n []Node) { n[sum].In[1], p.Segments[2].Carries = 1, []Value{1, 2, 3, 11} },
			"route 0 carries value 1, which it neither takes nor writes"},
		{"mix carries too much", func(p *Program, _ []Node) { p.Segments[1].Carries = []Value{2, 1} },
			"mix 0 carries %2 %1, want the residual stream, %2, and what embed wrote"},
		{"mix carries another value", func(p *Program, _ []Node) { p.Segments[1].Carries = []Value{1} },
			"mix 0 carries %1, want the residual stream, %2"},
		{"narrow stream", func(p *Program, _ []Node) { p.Widths[14] = 7 }, "experts 0 ends with 7 features, want 8"},
		{"head carries", func(p *Program, _ []Node) { p.Segments[4].Carries = []Value{16} },
			"head carries %16, and later segments read"},
		{"head of all rows", func(p *Program, _ []Node) { p.Segments[4].Nodes[1].In[0] = 14 }, "reads value 14 of all rows"},
		{"no route", func(p *Program, _ []Node) { p.Segments[2].Kind = SegFFN }, "experts 0 cannot follow ffn 0"},
		{"no experts", func(p *Program, _ []Node) { p.Segments[3].Kind = SegFFN }, "ffn 0 cannot follow route 0"},
		{"others' experts", func(p *Program, _ []Node) { p.Segments[3].Layer = 1 }, "experts 1 cannot follow route 0"},
	} {
		p := mixture(t, biased)
		nodes := slices.Concat(p.Segments[2].Nodes, p.Segments[3].Nodes)
		c.edit(p, nodes)
		n := copy(p.Segments[2].Nodes, nodes)
		copy(p.Segments[3].Nodes, nodes[n:])
		require.ErrorContains(t, Check(p), c.want, c.name)
	}
}

// TestGroupsOfExperts: vectors, biases of experts included, then what is dense, and one group for each expert.
func TestGroupsOfExperts(t *testing.T) {
	p := mixture(t, biased)
	tensors := file(p, quant.F16)
	require.Contains(t, tensors, Tensor{Name: "blk.0.ffn_down_exps.weight", Type: quant.F16, Shape: []int{5, 8, 6}})
	require.Contains(t, tensors, Tensor{Name: "blk.0.ffn_up_exps.bias", Type: quant.F16, Shape: []int{5, 6}})
	b, err := Bind(p, tensors)
	require.NoError(t, err)
	groups := b.On([]int{2, 3})
	require.Len(t, groups, 2+1+6)
	norm, biases, route := groups[0], groups[1], groups[2]
	require.Equal(t, []int{2, 3, 2}, []int{norm.Segment, biases.Segment, route.Segment})
	require.Equal(t, []Use{Vector, Vector, Matrix}, []Use{norm.Use, biases.Use, route.Use})
	require.EqualValues(t, 2*(8+6), norm.Bytes)
	require.EqualValues(t, 2*6*5, biases.Bytes)
	require.EqualValues(t, 2*(8*8+8*8+8+6*8), route.Bytes)
	rows := make(map[Ref]int)
	for e, g := range groups[3:] {
		require.Equal(t, 3, g.Segment)
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

	tensors[p.Segments[3].Nodes[0].Experts.Gate].Shape = []int{8, 30}
	_, err = Bind(p, tensors)
	require.ErrorContains(t, err, `"blk.0.ffn_gate_exps.weight" is 8×30, want 8×5×6`)
}
