package ref

import (
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// state is what a node keeps of sequences, by block of its class.
type state struct {
	ir.StateLayer
	slots []float32
}

// before is the state that the row at position pos goes on from: zero at the beginning.
func (s *state) before(span *backend.Span, pos int) []float32 {
	if pos == 0 {
		return make([]float32, s.Values)
	}
	return s.after(span, pos-1)
}

// after is where the row at position pos leaves its state.
func (s *state) after(span *backend.Span, pos int) []float32 {
	at := int(span.Tables[s.Class].At(pos / backend.BlockSize))
	return s.slots[at*s.Values:][:s.Values]
}

// causalConv keeps the inputs of the last positions, the oldest first.
func (m *model) causalConv(n *ir.Node, s *backend.Step) {
	w, state, width := m.table(n.W), &m.states[n.State], m.p.Widths[n.Out]
	size := len(w) / width
	bias := m.vector(n.B, width, 0)
	for i := range s.Spans {
		span := &s.Spans[i]
		for j := range span.Rows {
			x, y := m.row(n.In[0], span.Row+j), m.row(n.Out, span.Row+j)
			seen := append(append([]float32(nil), state.before(span, span.Pos+j)...), x...)
			for c := range y {
				sum := float64(bias[c])
				for k := range size {
					sum += float64(w[c*size+k]) * float64(seen[k*width+c])
				}
				y[c] = float32(sum)
			}
			copy(state.after(span, span.Pos+j), seen[width:])
		}
	}
}

// scan keeps the matrix of each head, by rows of VDim.
func (m *model) scan(n *ir.Node, s *backend.Step) {
	a, state := n.Scan, &m.states[n.State]
	decay, shift := m.table(n.W), m.table(n.B)
	skip := make([]float32, a.Heads)
	if a.D != ir.NoRef {
		skip = m.table(a.D)
	}
	for i := range s.Spans {
		span := &s.Spans[i]
		for j := range span.Rows {
			row, next := span.Row+j, state.after(span, span.Pos+j)
			copy(next, state.before(span, span.Pos+j))
			for h := range a.Heads {
				x := m.inputs(n, row, h)
				x.delta = softplus(x.delta + float64(shift[h]))
				y := part(m.row(n.Out, row), h, a.Heads)
				x.step(n.Op, a, part(next, h, a.Heads), math.Exp(float64(decay[h])*x.delta), y)
				for c := range y {
					y[c] += float32(float64(skip[h]) * float64(x.v[c]))
				}
			}
		}
	}
}

// softplus is ln(1+eˣ).
func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// scanned is what one head of one row takes in.
type scanned struct {
	q, k, v     []float32
	delta, beta float64
}

func (m *model) inputs(n *ir.Node, row, h int) scanned {
	a := n.Scan
	g := a.Group(h)
	x := scanned{
		q: part(m.row(n.In[0], row), g, a.Groups), k: part(m.row(n.In[1], row), g, a.Groups),
		v: part(m.row(n.In[2], row), h, a.Heads), delta: float64(m.row(n.In[3], row)[h]),
	}
	if n.Op == ir.DeltaRule {
		x.beta = float64(m.row(n.In[4], row)[h])
	}
	return x
}

// step changes the matrix of a head by what it takes in, and reads it.
func (x *scanned) step(op ir.Op, a *ir.ScanArgs, matrix []float32, decay float64, y []float32) {
	for c := range y {
		add := x.delta * float64(x.v[c])
		if op == ir.DeltaRule {
			known := 0.0
			for i, k := range x.k {
				known += decay * float64(matrix[i*a.VDim+c]) * float64(k)
			}
			add = x.beta * (float64(x.v[c]) - known)
		}
		read := 0.0
		for i, k := range x.k {
			at := &matrix[i*a.VDim+c]
			*at = float32(decay*float64(*at) + float64(k)*add)
			read += float64(*at) * float64(x.q[i])
		}
		y[c] = float32(read * float64(a.Scale))
	}
}
