package live_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// plan is a program with all that was planned for it.
type plan struct {
	p       *ir.Program
	rules   live.Rules
	phases  [][]live.Phase
	buffers *live.Buffers
	size    func(*live.Buffer) int
	total   int
}

// planned places everything: a buffer of prepared rows is half as large as one of features.
func planned(p *ir.Program, rules live.Rules) *plan {
	l := &plan{p: p, rules: rules, phases: live.Order(p, rules)}
	l.buffers = live.Lifetimes(p, rules, l.phases)
	l.size = func(b *live.Buffer) int {
		if b.Form != 0 {
			return b.Width / 2
		}
		return b.Width
	}
	l.total = live.Place(l.buffers.All, l.size)
	return l
}

// TestPlace: what can be done in place is, and a slice lies inside its root.
func TestPlace(t *testing.T) {
	p := recorded(t, backendtest.Layer())
	l := planned(p, rules(p))
	of := func(v ir.Value) *live.Buffer { b, _ := l.buffers.Of(v); return b }
	require.Same(t, of(p.Segments[3].Nodes[2].Out), of(p.End()), "the soft cap writes over the product")
	add := p.Segments[2].Nodes[len(p.Segments[2].Nodes)-1]
	require.Same(t, of(add.In[0]), of(add.Out), "the residual stream stays where it is")
	norm := p.Segments[1].Nodes[0]
	require.NotSame(t, of(norm.In[0]), of(norm.Out), "the stream is added to later")
	slice := p.Segments[2].Nodes[3]
	require.Equal(t, ir.Slice, slice.Op)
	root, _ := l.buffers.Of(slice.In[0])
	b, from := l.buffers.Of(slice.Out)
	require.Same(t, root, b)
	require.Equal(t, slice.From, from)

	only := func(b *live.Buffer) int {
		if b != of(p.End()) {
			return 0
		}
		return b.Width
	}
	require.Equal(t, p.Vocab, live.Place(l.buffers.All, only), "what lies elsewhere takes no memory")
}

// TestSlices: a slice of a slice is one of its root, and cannot be written over, even by the first item of all.
func TestSlices(t *testing.T) {
	b := ir.NewBuilder("slices", func(string) bool { return false })
	x := b.Embed("token_embd", 10, 16)
	b.Layer(0)
	inner := b.Slice(b.Slice(x, 4, 8), 2, 4)
	scaled := b.Scale(inner, 2)
	b.Head(b.Rows(b.Add(x, b.Linear(scaled, "w", 16))), "output", "token_embd")
	p, err := b.Program(100)
	require.NoError(t, err)
	p = (&ir.Bound{Program: p}).Only([]int{1}).Program
	l := planned(p, rules(p))
	root, _ := l.buffers.Of(x)
	part, from := l.buffers.Of(inner)
	require.Same(t, root, part)
	require.Equal(t, 6, from)
	over, _ := l.buffers.Of(scaled)
	require.NotNil(t, over)
	require.NotSame(t, root, over)
}

// TestPlaceFirstFit: what lives at the same time lies apart, and gaps are filled from below.
func TestPlaceFirstFit(t *testing.T) {
	all := []*live.Buffer{
		{First: 1, Last: 3, Width: 10},
		{First: 0, Last: 1, Width: 20},
		{First: 2, Last: 2, Width: 30}, // does not fit into what the second left
		{First: 2, Last: 4, Width: 15}, // fits
		{First: 3, Last: 3, Width: 4},
		{First: 4, Last: 4, Width: 5},
		{First: 4, Last: 4}, // lies elsewhere
	}
	total := live.Place(all, func(b *live.Buffer) int { return b.Width })
	var offsets []int
	for _, b := range all {
		offsets = append(offsets, b.Offset)
	}
	require.Equal(t, []int{20, 0, 30, 0, 15, 15, 0}, offsets)
	require.Equal(t, 60, total)
}

// TestBuffersLieApart: two buffers that live in the same phase share no memory.
func TestBuffersLieApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := program(t), device(t)
		l := planned(p, r.of(p).Rules)
		for i, a := range l.buffers.All {
			require.LessOrEqual(t, a.First, a.Last)
			require.LessOrEqual(t, a.Offset+l.size(a), l.total)
			for _, b := range l.buffers.All[:i] {
				if a.First <= b.Last && b.First <= a.Last {
					apart := a.Offset+l.size(a) <= b.Offset || b.Offset+l.size(b) <= a.Offset
					require.True(t, apart, "%+v and %+v", a, b)
				}
			}
		}
	})
}

// TestWhatIsReadIsThere runs programs with names for numbers, in one memory: every item finds what it reads where it
// was written, in the life of its buffer, and so does whoever is handed a value.
func TestWhatIsReadIsThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, r := program(t), device(t)
		l := planned(p, r.of(p).Rules)
		m := &memory{
			plan: l, t: t, holds: make([]string, l.total), values: live.ValuesOf(p), taken: map[ir.Value]bool{},
		}
		for s, phases := range l.phases {
			for _, taken := range p.Taken() {
				if b, _ := l.buffers.Of(taken); b.First == m.at && !m.taken[taken] {
					m.write(b, name(taken))
					m.taken[taken] = true
				}
			}
			for _, ph := range phases {
				for i := range ph.Items {
					m.item(&ph.Items[i])
				}
				m.at++
			}
			m.at--
			for _, v := range p.Handed(s) {
				m.read(v)
			}
			m.at++
		}
	})
}

// memory holds, in every cell, the name of what was written there last.
type memory struct {
	*plan
	t      *rapid.T
	values *live.Values
	holds  []string
	taken  map[ir.Value]bool // was given from elsewhere
	at     int               // phase
}

func name(what any) string { return fmt.Sprint(what) }

func (m *memory) alive(b *live.Buffer, what string) {
	require.NotNil(m.t, b, what)
	require.True(m.t, b.First <= m.at && m.at <= b.Last, "phase %d: %s lives from %d to %d", m.at, what, b.First, b.Last)
}

func (m *memory) write(b *live.Buffer, what string) {
	m.alive(b, what)
	for i := range m.size(b) {
		m.holds[b.Offset+i] = fmt.Sprint(what, "/", i)
	}
}

// check finds n cells of what from a place on, which are those from its first-th on.
func (m *memory) check(b *live.Buffer, from, n int, what string) {
	m.alive(b, what)
	for i := range n {
		require.Equal(m.t, fmt.Sprint(what, "/", from+i), m.holds[b.Offset+from+i], "phase %d", m.at)
	}
}

func (m *memory) read(v ir.Value) {
	b, from := m.buffers.Of(v)
	m.check(b, from, m.p.Widths[v], name(m.values.Root[v]))
}

// multiplied checks the prepared rows that a matrix reads; those of form 0 are the value itself.
func (m *memory) multiplied(v ir.Value, w ir.Ref) {
	input := live.Prepared{Value: v, Form: m.rules.Form(w)}
	if input.Form == 0 {
		m.read(v)
		return
	}
	b := m.buffers.Prepared(input)
	m.check(b, 0, m.size(b), fmt.Sprint(input))
}

func (m *memory) item(it *live.Item) {
	for _, v := range it.Reads() {
		m.read(v)
	}
	n := it.Node
	switch it.Verb {
	case live.Prepare:
		if it.Input.Form != 0 {
			m.write(m.buffers.Prepared(it.Input), fmt.Sprint(it.Input))
		}
	case live.ComputePass:
		for _, w := range m.rules.Passes(n)[it.Pass].Matrices {
			m.multiplied(n.In[0], w)
		}
		m.leavings(n, it.Pass)
		for i, b := range m.buffers.Left(n, it.Pass) {
			m.write(b, left(n, it.Pass, i))
		}
	case live.Compute:
		if n.Op == ir.Linear {
			m.multiplied(n.In[0], n.W)
		}
		if n.Op == ir.Experts {
			m.leavings(n, len(m.rules.Passes(n)))
		}
		b, from := m.buffers.Of(n.Out)
		require.Zero(m.t, from)
		m.write(b, name(n.Out))
	}
}

func left(n *ir.Node, pass, i int) string { return fmt.Sprint("left ", n.Out, " ", pass, " ", i) }

// leavings are those of earlier passes that a pass reads.
func (m *memory) leavings(n *ir.Node, pass int) {
	for j, earlier := range m.rules.Passes(n)[:pass] {
		for i, leaves := range earlier.Leaves {
			if leaves.Until >= pass {
				b := m.buffers.Left(n, j)[i]
				m.check(b, 0, m.size(b), left(n, j, i))
			}
		}
	}
}
