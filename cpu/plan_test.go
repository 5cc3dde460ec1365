package cpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
	"github.com/sluice-ai/sluice/internal/quant"
)

// layer is a program of one layer with head norms and a fused gate and up, all Q8_0.
func layer(t *testing.T) *ir.Bound {
	const width, heads, dim, ffn = 64, 2, 32, 96
	b := ir.NewBuilder("layer", func(string) bool { return false })
	rope := ir.RoPEArgs{HeadDim: dim, Dims: dim, Freq: make([]float64, dim/2), Mscale: 1}
	x := b.Embed("token_embd", 100, width)
	b.Layer(0)
	n := b.RMSNorm(x, "attn_norm", 1e-5)
	q := b.Rope(b.HeadNorm(b.Linear(n, "attn_q", width), "attn_q_norm", dim, 1e-5), rope, "")
	k := b.Rope(b.Linear(n, "attn_k", width), rope, "")
	a := ir.AttendArgs{Heads: heads, KVHeads: heads, KDim: dim, VDim: dim, Scale: 1}
	x = b.Add(x, b.Linear(b.Attend(q, k, b.Linear(n, "attn_v", width), a), "attn_output", width))
	b.FFN()
	both := b.Linear(b.RMSNorm(x, "ffn_norm", 1e-5), "ffn_up", 2*ffn)
	x = b.Add(x, b.Linear(b.SwiGLU(b.Slice(both, 0, ffn), b.Slice(both, ffn, ffn)), "ffn_down", width))
	b.Logits(b.SoftCap(b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd"), 30))
	return bind(t, b)
}

// bind gives matrices and tables the type Q8_0.
func bind(t *testing.T, b *ir.Builder) *ir.Bound {
	t.Helper()
	p, err := b.Program(1000)
	require.NoError(t, err)
	bound := &ir.Bound{Program: p, Types: make([]quant.Type, len(p.Weights))}
	for r, w := range p.Weights {
		if w.Use != ir.Vector {
			bound.Types[r] = quant.Q8_0
		}
	}
	return bound
}

// routedLayer has 8 experts, of which rows use 3, and, if asked, one that all rows share. The router is float32,
// what it chooses among is Q8_0 but for one matrix.
func routedLayer(t *testing.T, shared bool) *ir.Bound {
	const width, experts, used, ffn = 64, 8, 3, 32
	b := ir.NewBuilder("routed", func(string) bool { return false })
	x := b.Embed("token_embd", 100, width)
	b.Layer(0)
	a := ir.AttendArgs{Heads: 2, KVHeads: 2, KDim: 32, VDim: 32, Scale: 1}
	x = b.Add(x, b.AttendSinks(x, x, x, "attn_sinks", a))
	b.FFN()
	n := b.RMSNorm(x, "ffn_norm", 1e-5)
	both := n
	if shared {
		g := b.SwiGLU(b.Linear(n, "ffn_gate_shexp", ffn), b.Linear(n, "ffn_up_shexp", ffn))
		both = b.Linear(g, "ffn_down_shexp", width)
	}
	w := b.Route(b.Linear(n, "ffn_gate_inp", experts), "", ir.RouteArgs{Scoring: ir.SoftmaxAll, Used: used, Scale: 1})
	y := b.Experts(n, w, "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps", ffn, used, ir.SiLU)
	x = b.Add(x, b.Add(y, both))
	b.Head(b.RMSNorm(b.Rows(x), "output_norm", 1e-5), "output", "token_embd")
	p := bind(t, b)
	for r, w := range p.Weights {
		if w.Name == "blk.0.ffn_gate_inp.weight" || w.Name == "blk.0.ffn_up_exps.weight" {
			p.Types[r] = quant.F32
		}
	}
	return p
}

func planned(p *ir.Bound, tiled, parts bool) (*layout, [][]live.Phase) {
	c := backend.Config{KV: backend.KVF16, Blocks: slices.Repeat([]int{1}, len(p.Classes)), MaxRows: 7, MaxWanted: 3}
	rules := rulesOf(p, false, parts)
	phases := live.Order(p.Program, rules)
	return newLayout(p, live.Lifetimes(p.Program, rules, phases), c, tiled), phases
}

// TestLayout: buffers that live at the same time do not overlap, what can be done in place is, and logits lie where the
// caller wants them.
func TestLayout(t *testing.T) {
	p := layer(t)
	l, phases := planned(p, false, false)
	apart(t, l)
	require.True(t, l.place(p.Output).logits)
	require.True(t, l.place(p.Segments[3].Nodes[2].Out).logits, "the product that the soft cap reads")
	slice := p.Segments[2].Nodes[3]
	require.Equal(t, ir.Slice, slice.Op)
	require.Equal(t, l.place(slice.In[0]).off+slice.From, l.place(slice.Out).off)
	add := p.Segments[2].Nodes[len(p.Segments[2].Nodes)-1]
	require.Equal(t, l.place(add.In[0]), l.place(add.Out), "the residual stream stays where it is")
	require.Len(t, slices.Concat(phases...), 16)
}

// TestLayoutOfExperts: what experts multiply is prepared in the route's last chain, once in each form.
func TestLayoutOfExperts(t *testing.T) {
	for _, tiled := range []bool{false, true} {
		p := routedLayer(t, true)
		l, phases := planned(p, tiled, false)
		apart(t, l)
		n := &p.Segments[3].Nodes[0]
		require.Equal(t, ir.Experts, n.Op)
		for _, ph := range phases[3] {
			require.NotEqual(t, live.Prepare, ph.Items[0].Verb)
		}
		hidden, up := l.buffers.Left(n, expand)[leftHidden], l.buffers.Left(n, expand)[leftUp]
		require.Equal(t, hidden.Last, up.Last+1, "up is read in its own pass only")
		require.Equal(t, 3*32, hidden.Width)

		l, phases = planned(p, tiled, true)
		apart(t, l)
		require.Equal(t, l.buffers.Left(n, expand)[leftUp].First, l.down(n).First, "it may be written before up is read")
		at := len(slices.Concat(phases[:3]...))
		require.Equal(t, []int{at, at + 2}, []int{l.down(n).First, l.down(n).Last})
	}
}

// apart: buffers that live at the same time do not overlap, in whole cache lines.
func apart(t *testing.T, l *layout) {
	t.Helper()
	size := func(b *live.Buffer) int { rows, tiles := l.bytes(b); return (rows + tiles) / 4 }
	for i, a := range l.buffers.All {
		if a == l.output {
			continue
		}
		require.Zero(t, a.Offset%16)
		require.LessOrEqual(t, a.Offset+size(a), l.size)
		for _, b := range l.buffers.All[:i] {
			if b == l.output || a.Last < b.First || b.Last < a.First {
				continue
			}
			apart := a.Offset+size(a) <= b.Offset || b.Offset+size(b) <= a.Offset
			require.True(t, apart, "%+v and %+v", a, b)
		}
	}
}
