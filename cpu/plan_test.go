package cpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
	"github.com/sluice-ai/sluice/internal/quant"
)

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

// routedLayer has a float32 router; what it chooses among is Q8_0 but for one matrix.
func routedLayer(t *testing.T) *ir.Bound {
	p := bind(t, backendtest.RoutedLayer(true))
	for r, w := range p.Weights {
		if w.Name == "blk.0.ffn_gate_inp.weight" || w.Name == "blk.0.ffn_up_exps.weight" {
			p.Types[r] = quant.F32
		}
	}
	return p
}

func planned(p *ir.Bound, tiled, parts bool) (*layout, [][]live.Phase) {
	c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: slices.Repeat([]int{1}, len(p.Classes)),
		MaxRows: 7, MaxWanted: 3}}
	rules := rulesOf(p, false, parts)
	phases := live.Order(p.Program, rules)
	return newLayout(p, live.Lifetimes(p.Program, rules, phases), c, tiled), phases
}

// TestLayout: buffers that live at the same time do not overlap, what can be done in place is, and logits lie where the
// caller wants them.
func TestLayout(t *testing.T) {
	p := bind(t, backendtest.Layer())
	l, phases := planned(p, false, false)
	apart(t, l)
	require.True(t, l.place(p.End()).logits)
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
		p := routedLayer(t)
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

// TestEveryOpHasAKernel: the CPU runs the plain loop of an op that own does not list; here are those for which that is
// meant.
func TestEveryOpHasAKernel(t *testing.T) {
	for _, op := range ir.Ops() {
		require.True(t, own(op), "%s has no kernel in cpu: write one, bind it in bind.go, and list it in own", op)
	}
}
