package plan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// sizes are those of a dense program with biases.
type sizes struct{ kv, each, head, ffn, vocab int }

// dense is a program of one layer whose head is tied.
func dense(s sizes, t quant.Type) (*ir.Bound, error) {
	b := ir.NewBuilder("dense", func(name string) bool { return name != "token_embd.bias" })
	x := b.Embed("token_embd", s.vocab, 256)
	b.Layer(0)
	n := b.RMSNorm(x, "attn_norm", 1e-5)
	q := ir.CaseRope(b, b.Linear(n, "attn_q", s.kv*s.each*s.head), s.head, s.head, false, "")
	k := ir.CaseRope(b, b.Linear(n, "attn_k", s.kv*s.head), s.head, s.head, false, "")
	o := b.Attend(q, k, b.Linear(n, "attn_v", s.kv*s.head),
		ir.AttendArgs{Heads: s.kv * s.each, KVHeads: s.kv, KDim: s.head, VDim: s.head, Scale: 1})
	x = b.Add(x, b.Linear(o, "attn_output", 256))
	b.FFN()
	n = b.RMSNorm(x, "ffn_norm", 1e-5)
	x = b.Add(x, b.Linear(b.SwiGLU(b.Linear(n, "ffn_gate", s.ffn), b.Linear(n, "ffn_up", s.ffn)), "ffn_down", 256))
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	p, err := b.Program(64)
	if err != nil {
		return nil, err
	}
	bound := &ir.Bound{Program: p, Types: make([]quant.Type, len(p.Weights)), Tensors: make([]int, len(p.Weights))}
	for r := range bound.Types {
		if bound.Types[r] = t; p.Weights[r].Use&ir.Vector != 0 {
			bound.Types[r] = quant.F32
		}
	}
	return bound, nil
}

// TestDivide: each matrix that is divided lies with the cards once, whole rows or whole columns of it; what is added is
// added once; widths fit the matrices, and pieces begin where devices take rows and where blocks of a type do.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sizes{rapid.IntRange(1, 8).Draw(t, "kv"), rapid.IntRange(1, 4).Draw(t, "each"),
			rapid.SampledFrom([]int{32, 64, 128}).Draw(t, "head"), 256 * rapid.IntRange(1, 9).Draw(t, "ffn"),
			rapid.SampledFrom([]int{300, 384, 512}).Draw(t, "vocab")}
		typ := rapid.SampledFrom([]quant.Type{quant.F16, quant.Q8_0, quant.Q4_K}).Draw(t, "type")
		if s.kv*s.each*s.head%typ.Block() != 0 {
			return // no file has such rows
		}
		members := rapid.IntRange(2, 4).Draw(t, "members")
		p, err := dense(s, typ)
		require.NoError(t, err)
		parts, err := plan.Divide(p, members)
		if err != nil {
			require.ErrorIs(t, err, plan.ErrWhole)
			for unit := 1; unit*members <= s.kv; unit++ {
				require.False(t, s.kv%unit == 0 && unit*s.each*s.head%typ.Block() == 0, "%d heads of %d", unit, s.kv)
			}
			return
		}
		for r := range p.Weights {
			covered(t, p, parts, ir.Ref(r))
		}
		for m, x := range parts {
			require.Equal(t, m, x.Team.Member)
			require.Len(t, x.Team.Sums, map[bool]int{true: 2, false: 1}[s.ffn/max(32, typ.Block()) >= members])
			fits(t, x, m)
		}
	})
}

// covered checks where the values of a weight are.
func covered(t *rapid.T, p *ir.Bound, parts []*plan.Part, r ir.Ref) {
	w := &p.Weights[r]
	times := make([]int, w.Rows*w.Cols)
	for _, x := range parts {
		for _, piece := range x.Pieces[r] {
			require.Zero(t, piece.Row%32, w.Name)
			require.Zero(t, piece.Col%p.Types[r].Block(), w.Name)
			require.True(t, piece.Rows == w.Rows || piece.Cols == w.Cols, w.Name)
			require.Equal(t, [2]int{piece.Rows, piece.Cols}, [2]int{x.Weights[piece.To].Rows, x.Weights[piece.To].Cols}, w.Name)
			if piece.Rows == w.Rows && piece.Cols == w.Cols {
				continue // each card has all of it
			}
			for i := range piece.Rows {
				for j := range piece.Cols {
					times[(piece.Row+i)*w.Cols+piece.Col+j]++
				}
			}
		}
	}
	if i := slices.IndexFunc(times, func(n int) bool { return n != times[0] }); i >= 0 {
		t.Fatalf("%s: value %d is there %d times, the first one %d times", w.Name, i, times[i], times[0])
	}
	require.LessOrEqual(t, times[0], 1, w.Name)
	if name := w.Name; times[0] == 0 && (name == "blk.0.attn_output.bias" || name == "blk.0.ffn_down.bias") {
		whole := 0
		for _, x := range parts {
			whole += len(x.Pieces[r])
		}
		require.Contains(t, []int{1, len(parts)}, whole, name)
	}
}

// fits checks a part's nodes against its weights.
func fits(t *rapid.T, x *plan.Part, member int) {
	for s := range x.Segments {
		for i := range x.Segments[s].Nodes {
			n := &x.Segments[s].Nodes[i]
			switch n.Op {
			case ir.Linear:
				w, out := x.Weights[n.W], x.Widths[n.Out]
				require.Equal(t, x.Widths[n.In[0]], w.Cols, w.Name)
				if from, joined := x.Team.Joins[n.Out]; joined {
					require.Equal(t, member*w.Rows, from)
					require.Equal(t, x.Vocab, out)
					continue
				}
				require.Equal(t, out, w.Rows, w.Name)
				require.False(t, x.Team.Sums[n.Out] && member > 0 && n.B != ir.NoRef, "a bias is added once")
			case ir.Attend:
				a := n.Attend
				require.Equal(t, []int{a.Heads * a.KDim, a.KVHeads * a.KDim, a.KVHeads * a.VDim, a.Heads * a.VDim},
					[]int{x.Widths[n.In[0]], x.Widths[n.In[1]], x.Widths[n.In[2]], x.Widths[n.Out]})
				require.Equal(t, a.KVHeads, x.KV[a.KV].KVHeads)
				require.Positive(t, a.KVHeads)
			case ir.RoPE:
				require.Equal(t, x.Widths[n.Out], n.RoPE.Heads*n.RoPE.HeadDim)
			}
		}
	}
}

// TestDivideWhole: what is made of a program's parts leaves the program as it was.
func TestDivideWhole(t *testing.T) {
	p, err := dense(sizes{4, 2, 64, 512, 512}, quant.Q8_0)
	require.NoError(t, err)
	before := fmt.Sprint(p.String(), p.Weights, p.Widths, p.KV)
	_, err = plan.Divide(p, 2)
	require.NoError(t, err)
	require.Equal(t, before, fmt.Sprint(p.String(), p.Weights, p.Widths, p.KV))
}
