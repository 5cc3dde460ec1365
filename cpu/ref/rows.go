package ref

import (
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

func (m *model) affine(n *ir.Node) {
	width := m.p.Widths[n.Out]
	bias := m.vector(n.B, width, 0)
	factors := m.vector(ir.NoRef, width, 1)
	if n.W != ir.NoRef {
		w := m.table(n.W)
		for i := range factors {
			factors[i] = w[min(i, len(w)-1)]
		}
	}
	for r := range m.height(n.Out) {
		for i, x := range m.row(n.In[0], r) {
			m.row(n.Out, r)[i] = float32(float64(factors[i])*float64(x) + float64(bias[i]))
		}
	}
}

func (m *model) position(n *ir.Node, s *backend.Step) {
	width, table := m.p.Widths[n.Out], m.table(n.W)
	for _, span := range s.Spans {
		for i := range span.Rows {
			learned := table[(span.Pos+i)*width:][:width]
			for j, x := range m.row(n.In[0], span.Row+i) {
				m.row(n.Out, span.Row+i)[j] = x + learned[j]
			}
		}
	}
}

func (m *model) tokenType(n *ir.Node, s *backend.Step) {
	width, table := m.p.Widths[n.Out], m.table(n.W)
	for _, span := range s.Spans {
		kind := 0
		for r := span.Row; r < span.Row+span.Rows; r++ {
			for j, x := range m.row(n.In[0], r) {
				m.row(n.Out, r)[j] = x + table[kind*width+j]
			}
			if s.Tokens[r] == n.Sep {
				kind = min(kind+1, len(table)/width-1)
			}
		}
	}
}
