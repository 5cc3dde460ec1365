package ref

import (
	"math"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// attend first stores the keys and values of all rows, so that a row sees those before it in its own step.
func (m *model) attend(n *ir.Node, s *backend.Step) {
	c := &m.caches[n.Attend.KV]
	for _, span := range s.Spans {
		for i := range span.Rows {
			if len(n.In) == 1 {
				break // another layer stored them
			}
			r := span.Row + i
			c.put(slot(&span.Tables[c.Class], span.Pos+i), m.row(n.In[1], r), m.row(n.In[2], r))
		}
	}
	sinks := m.vector(n.W, n.Attend.Heads, float32(math.Inf(-1)))
	for _, span := range s.Spans {
		for i := range span.Rows {
			q, y := m.row(n.In[0], span.Row+i), m.row(n.Out, span.Row+i)
			for h, sink := range sinks {
				from, to := n.Attend.Class().First(span.Pos+i), span.Pos+i
				if n.Attend.Both {
					to = span.Pos + span.Rows - 1
				}
				c.attend(n.Attend, h, float64(sink), q, y, &span.Tables[c.Class], from, to)
			}
		}
	}
}

// attend computes head h of a row: a softmax over the sink and the positions it sees, from … pos.
func (c *cache) attend(a *ir.AttendArgs, h int, sink float64, q, y []float32, table *backend.Table, from, pos int) {
	head := h / (a.Heads / a.KVHeads)
	q, y = q[h*a.KDim:(h+1)*a.KDim], y[h*a.VDim:(h+1)*a.VDim]
	scores := make([]float64, 0, pos-from+1)
	highest := sink
	for p := from; p <= pos; p++ {
		dot := 0.0
		for i, k := range c.key(slot(table, p), head) {
			dot += float64(q[i]) * float64(k)
		}
		score := dot * float64(a.Scale)
		if limit := float64(a.SoftCap); limit > 0 {
			score = limit * math.Tanh(score/limit)
		}
		scores = append(scores, score)
		highest = math.Max(highest, score)
	}
	total, sums := math.Exp(sink-highest), make([]float64, a.VDim)
	for j, score := range scores {
		weight := math.Exp(score - highest)
		total += weight
		for i, v := range c.value(slot(table, from+j), head) {
			sums[i] += weight * float64(v)
		}
	}
	for i, sum := range sums {
		y[i] = float32(sum / total)
	}
}
