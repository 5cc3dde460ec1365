package ref

import "github.com/sluice-ai/sluice/internal/ir"

// part is head h of so many in a row.
func part(row []float32, h, heads int) []float32 {
	n := len(row) / heads
	return row[h*n : (h+1)*n]
}

func (m *model) headLinear(n *ir.Node) {
	w := &m.weights[n.W]
	weights := make([]float32, w.Cols)
	for r := range m.height(n.Out) {
		for h := range n.Heads {
			m.observe(n.W, h, part(m.row(n.In[0], r), h, n.Heads))
		}
	}
	for o := range w.Rows {
		w.row(weights, o)
		h := o / (w.Rows / n.Heads)
		for r := range m.height(n.Out) {
			sum := 0.0
			for i, x := range part(m.row(n.In[0], r), h, n.Heads) {
				sum += float64(weights[i]) * float64(x)
			}
			m.row(n.Out, r)[o] = float32(sum)
		}
	}
}

func (m *model) headSlice(n *ir.Node) {
	for r := range m.height(n.Out) {
		for h := range n.Heads {
			copy(part(m.row(n.Out, r), h, n.Heads), part(m.row(n.In[0], r), h, n.Heads)[n.From:])
		}
	}
}

func (m *model) headJoin(n *ir.Node) {
	for r := range m.height(n.Out) {
		for h := range n.Heads {
			y, first := part(m.row(n.Out, r), h, n.Heads), part(m.row(n.In[0], r), h, n.Heads)
			second := m.row(n.In[1], r)
			if !m.p.SharesHead(n) {
				second = part(second, h, n.Heads)
			}
			copy(y, first)
			copy(y[len(first):], second)
		}
	}
}
