package cpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
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

func scheduleAll(p *ir.Bound) (*values, [][]phase) {
	v := newValues(p)
	segments := make([][]phase, len(p.Segments))
	for i := range p.Segments {
		segments[i] = schedule(p, i, v)
	}
	return v, segments
}

// text shows phases, one a line: "chain norm prepare", "products linear linear".
func text(segments [][]phase) string {
	var s strings.Builder
	for i, phases := range segments {
		for _, ph := range phases {
			fmt.Fprint(&s, i, " ", [...]string{chained: "chain", products: "products",
				attended: "attended", expertProducts: "experts"}[ph.kind])
			for _, it := range ph.items {
				switch it.verb {
				case compute:
					fmt.Fprint(&s, " ", it.node.Op)
				default:
					fmt.Fprint(&s, " ", [...]string{prepare: "prepare", store: "store", expand: "expand", contract: "contract"}[it.verb])
				}
			}
			fmt.Fprintln(&s)
		}
	}
	return s.String()
}

func TestSchedule(t *testing.T) {
	_, segments := scheduleAll(layer(t))
	require.Equal(t, `0 chain embed
1 chain norm prepare
1 products linear linear linear
1 chain norm rope rope store
1 attended attend
1 chain prepare
1 products linear
1 chain add
2 chain norm prepare
2 products linear
2 chain glu prepare
2 products linear
2 chain add
3 chain rows norm prepare
3 products linear
3 chain softcap
`, text(segments))
}

// TestLayout: buffers that live at the same time do not overlap, what can be done in place is, and the logits lie
// where the caller wants them.
func TestLayout(t *testing.T) {
	p := layer(t)
	c := backend.Config{KV: backend.KVF16, Blocks: slices.Repeat([]int{1}, len(p.Classes)), MaxRows: 7, MaxWanted: 3}
	v, segments := scheduleAll(p)
	l := newLayout(p, v, segments, handed(p), c, false)
	apart(t, l, c)
	require.True(t, l.place(p.Output).logits)
	require.True(t, l.place(p.Segments[3].Nodes[2].Out).logits, "the product that the soft cap reads")
	add := p.Segments[2].Nodes[len(p.Segments[2].Nodes)-1]
	require.Equal(t, l.place(add.In[0]), l.place(add.Out), "the residual stream stays where it is")
	slice := p.Segments[2].Nodes[3]
	require.Equal(t, ir.Slice, slice.Op)
	require.Equal(t, l.place(slice.In[0]).off+slice.From, l.place(slice.Out).off)
}

// apart: buffers that live at the same time do not overlap.
func apart(t *testing.T, l *layout, c backend.Config) {
	t.Helper()
	for i, a := range l.buffers {
		for _, b := range l.buffers[:i] {
			if a.logits || b.logits || a.last < b.first || b.last < a.first {
				continue
			}
			apart := a.off+a.floats(c) <= b.off || b.off+b.floats(c) <= a.off
			require.True(t, apart, "%+v and %+v", a, b)
		}
		require.LessOrEqual(t, a.off+a.floats(c), max(l.size, a.floats(c)))
	}
}
