package cpu

import (
	"slices"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// foresight predicts the experts of a route before its turn: it applies the route's norm and router to the residual
// stream of an earlier segment. It computes beside the route, in memory of its own, so it cannot change the route's
// bits.
type foresight struct {
	route   int
	norm    *normOp
	product product // of the router; its acts have room for one row
	router  *routerOp
	x, keys []float32 // of a row
	margins []int8    // of all rows
}

// foresights finds for each segment the next route, and where the residual stream lies after the segment.
func (b *binder) foresights() {
	var next *foresight
	for i := len(b.p.Segments) - 1; i >= 0; i-- {
		s := &b.p.Segments[i]
		// After a mix the route itself is computed next, so there is nothing to foresee.
		if next != nil && len(s.Nodes) > 0 && len(s.Carries) > 0 && s.Kind != ir.SegMix {
			b.m.segments[i].next, b.m.segments[i].stream = next, b.layout.place(s.Stream())
		}
		if s.Kind == ir.SegRoute {
			next = b.foresight(i, s)
		}
	}
}

// foresight makes that of a route whose logits are a product of the normalised stream; nil for any other route.
func (b *binder) foresight(i int, s *ir.Segment) *foresight {
	route := writer(s, func(n *ir.Node) bool { return n.Op == ir.Route })
	linear := writer(s, func(n *ir.Node) bool { return n.Op == ir.Linear && n.Out == route.In[0] })
	if linear == nil || len(b.m.weights[linear.W].parts) != 1 {
		return nil
	}
	norm := writer(s, func(n *ir.Node) bool { return n.Op == ir.Norm && n.Out == linear.In[0] })
	if norm == nil || !slices.Contains(b.p.Takes(i), norm.In[0]) || b.p.Widths[norm.In[0]] != b.p.Width {
		return nil
	}
	w, experts := &b.m.weights[linear.W], b.p.Widths[route.Out]
	acts := &kernels.Acts{Form: kernels.FormOf(b.p.Types[linear.W]), Rows: 1, Cols: b.p.Width, Stride: b.p.Width}
	f := &foresight{route: i, norm: b.norm(norm, place{}, place{}), x: make([]float32, b.p.Width),
		product: product{group: w.groups[0], w: w.parts[0], bias: b.vector(linear.B), acts: acts},
		router:  &routerOp{args: route.Route, bias: b.vector(route.B)}, keys: make([]float32, experts),
		margins: make([]int8, 0, b.m.config.MaxRows*experts)}
	if acts.Float = f.x; acts.Form != kernels.Plain {
		acts.Float, acts.Blocks = nil, make([]byte, acts.Form.RowBytes(acts.Cols))
	}
	return f
}

// writer finds the node of a segment for which is holds, or nil.
func writer(s *ir.Segment, is func(n *ir.Node) bool) *ir.Node {
	if i := slices.IndexFunc(s.Nodes, func(n ir.Node) bool { return is(&n) }); i >= 0 {
		return &s.Nodes[i]
	}
	return nil
}

// Foresees is not ok if the router's weights share a slot and are not resident.
func (m *model) Foresees(segment int) (route int, ok bool) {
	f := m.segments[segment].next
	if f == nil || m.where != nil && m.where[f.product.group] == absent {
		return 0, false
	}
	return f.route, true
}

// foresee computes on the caller's goroutine. It reports nothing if numbers are not finite: the route will return that
// error. It allocates nothing.
func (m *model) foresee(segment int, s *backend.Step, tell func(margins []int8)) {
	seg := &m.segments[segment]
	f := seg.next
	f.margins = f.margins[:s.Rows()*len(f.keys)]
	for r := range s.Rows() {
		if !f.row(m, m.at(&seg.stream, r), f.margins[r*len(f.keys):][:len(f.keys)]) {
			return
		}
	}
	tell(f.margins)
}

// row sets the margins of a row of the stream; ok is false if its numbers are not finite.
func (f *foresight) row(m *model, stream []float32, margins []int8) (ok bool) {
	p := &f.product
	if f.norm.apply(&m.execution, f.x, stream) != nil || m.device.set.Quantize(p.acts, 0, f.x) != nil {
		return false
	}
	m.workers[0].strips.MatMul(m.device.set, f.keys, len(f.keys), p.w, p.bias, 0, p.w.Tiles(), p.acts)
	if !m.device.isa.Finite(f.keys) {
		return false
	}
	if f.router.bias != nil { // without a bias the logits are in the order of the scores
		f.router.score(&m.execution, f.keys)
		m.device.isa.Add(f.keys, f.keys, f.router.bias)
	}
	backend.Margins(margins, f.keys, f.router.args.Used)
	return true
}
