package ref

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Part only looks at what it is given, until the last one computes the segment.
func (m *model) Part(w backend.Work, s *backend.Step) error {
	if w.Done != nil {
		defer w.Done()
	}
	if _, err := m.parts.Take(&w); err != nil {
		return err
	}
	if !w.Last {
		return nil
	}
	seg := &m.p.Segments[w.Segment]
	err := m.parts.Complete(func(g *ir.Group) bool {
		if g.Expert != ir.Dense {
			return m.goes(seg.Nodes[0].In[1], g.Expert)
		}
		return !seg.Kind.Ends() || len(s.Wanted) > 0
	})
	if err != nil {
		return err
	}
	return m.Enqueue(w.Segment, s)
}

// goes says whether a row goes to an expert.
func (m *model) goes(weights ir.Value, expert int) bool {
	for r := range m.height(weights) {
		if m.row(weights, r)[expert] != 0 {
			return true
		}
	}
	return false
}

// Chosen lists the experts whose weights are not 0.
func (m *model) Chosen(route int, _ *backend.Step, tell func([]int32)) error {
	if route >= 0 && route < len(m.p.Segments) {
		for i := range m.p.Segments[route].Nodes {
			if n := &m.p.Segments[route].Nodes[i]; n.Op == ir.Route {
				tell(m.chosen(n))
				return nil
			}
		}
	}
	return fmt.Errorf("segment %d is no route", route)
}

func (m *model) chosen(n *ir.Node) (experts []int32) {
	for r := range m.height(n.Out) {
		left := n.Route.Used
		for e, w := range m.row(n.Out, r) {
			if w != 0 {
				experts = append(experts, int32(e))
				left--
			}
		}
		for range left {
			experts = append(experts, -1)
		}
	}
	return experts
}
