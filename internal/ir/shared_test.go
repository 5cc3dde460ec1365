package ir

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// shared makes a legal program of two layers: the second attends to what the first stored, and both read what the embed
// segment left besides the stream.
func shared(t *testing.T) *Program {
	t.Helper()
	b := NewBuilder("test", nil)
	e := b.Embed("token_embd", 20, 8)
	beside := b.Lookup("others", 12)
	x := b.Scale(e, 2)
	a := AttendArgs{Heads: 2, KVHeads: 1, KDim: 4, VDim: 4, Scale: 0.5, Window: 7}
	b.Layer(0)
	filled := b.Attend(x, b.Slice(beside, 0, 4), b.Slice(beside, 4, 4), a)
	x = b.Add(x, filled)
	b.Layer(1)
	x = b.Add(x, b.AttendShared(x, filled, a))
	b.FFN()
	x = b.Add(x, b.Slice(beside, 4, 8))
	b.Head(b.Rows(x), "output", "token_embd")
	p, err := b.Program(100)
	require.NoError(t, err)
	return p
}

func TestSharedText(t *testing.T) {
	require.Equal(t, `test: width 8, vocab 20, context 100
embed
  %0[8] = embed  token_embd.weight
  %1[12] = embed  others.weight
  %2[8] = scale %0  2
  carries %1 %2
mix 0
  %3[4] = slice %1  from=0
  %4[4] = slice %1  from=4
  %5[8] = attend %2 %3 %4  kv=0 heads=2/1 dims=4/4 scale=0.5 cap=0 window=7
  %6[8] = add %2 %5
  carries %1 %6
mix 1
  %7[8] = attend %6  kv=0 heads=2/1 dims=4/4 scale=0.5 cap=0 window=7
  %8[8] = add %6 %7
  carries %1 %8
ffn 1
  %9[8] = slice %1  from=4
  %10[8] = add %8 %9
head
  %11[8] = rows %10
  %12[20] = linear %11  token_embd.weight
logits %12
`, shared(t).String())
}

// TestCheckFindsFaultsOfShared: a cache is filled once and before it is shared, and nothing that a layer computed goes
// on beside the stream.
func TestCheckFindsFaultsOfShared(t *testing.T) {
	for _, c := range []struct {
		name string
		edit func(p *Program)
		want string
	}{
		{"not filled", func(p *Program) { n := &p.Segments[1].Nodes[2]; n.In = n.In[:1] },
			"mix 0, node 2, attend: cache 0: filled before: false, filled here: false"},
		{"filled twice", func(p *Program) { n := &p.Segments[2].Nodes[0]; n.In = append(n.In, 6, 6) },
			"mix 1, node 0, attend: cache 0: filled before: true, filled here: true"},
		{"half of it", func(p *Program) { n := &p.Segments[1].Nodes[2]; n.In = n.In[:2] }, "attend: the output, q, k and v have"},
		{"another window", func(p *Program) { p.Segments[2].Nodes[0].Attend.Window = 8 }, "cache 0 is of class 0"},
		{"another size", func(p *Program) { p.Segments[2].Nodes[0].Attend.KDim = 2 }, "have [8 8] features, want [8 4"},
		{"not carried", func(p *Program) { p.Segments[2].Carries = []Value{8} }, "mix 1 carries %8, and later segments read %1 %8"},
		{"a layer's own", func(p *Program) {
			p.Segments[3].Nodes[1].In[1] = 7
			p.Segments[2].Carries = []Value{1, 7, 8}
		}, "mix 1 carries %1 %7 %8, want the residual stream, %8, and what embed wrote"},
	} {
		p := shared(t)
		c.edit(p)
		require.ErrorContains(t, Check(p), c.want, c.name)
	}
}

// TestJoinedExperts: of gate and up in one, the shape is that of both.
func TestJoinedExperts(t *testing.T) {
	b := NewBuilder("test", func(string) bool { return true })
	x := b.Embed("token_embd", 20, 8)
	b.Layer(0)
	b.FFN()
	w := b.RouteScaled(b.Linear(x, "ffn_gate_inp", 6), "ffn_down_exps.scale", RouteArgs{Scoring: SoftmaxAll, Used: 2, Scale: 1})
	x = b.Experts(x, w, "gate_up", "gate_up", "down", 5, 2, GELU)
	b.Head(b.Rows(x), "output", "token_embd")
	p, err := b.Program(100)
	require.NoError(t, err)
	n := &p.Segments[2].Nodes[0]
	require.True(t, n.Experts.Joined())
	require.Equal(t, []int{8, 10, 6}, p.Weights[n.Experts.Gate].Shape())
	require.Equal(t, []Ref{n.Experts.Gate, n.Experts.Down}, n.Matrices())
	p.Weights[n.Experts.Gate].Rows = 30
	require.ErrorContains(t, Check(p), "gate_up.weight is 30×8 of 6 experts, want 60×8 of 6")
}
