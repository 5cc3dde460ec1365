package cpu

import (
	"slices"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
)

// verb is what an item does.
type verb uint8

const (
	compute  verb = iota + 1 // the node; of Experts what is left to do: the sum
	prepare                  // value, in form, for the products that read it
	store                    // K and V of the node, an Attend, in the cache
	observe                  // the input of the node, for backend.Inputs
	expand                   // Experts: the products by gate and up, and what they activate
	contract                 // Experts: the products by down
)

// item is a piece of work in a phase.
type item struct {
	verb  verb
	node  *ir.Node
	value ir.Value
	form  kernels.Form
}

// phaseKind says how a phase is split over workers.
type phaseKind uint8

const (
	chained        phaseKind = iota + 1 // by rows: each row passes through all items
	products                            // by tiles of the items' matrices
	attended                            // by spans, heads and positions
	observed                            // by columns of the items' inputs
	expertProducts                      // by experts and tiles of their matrices
)

// phase is a list of items that needs no barrier inside.
type phase struct {
	kind   phaseKind
	wanted bool // all but attended: rows are the wanted ones
	items  []item
}

// schedule orders the nodes of a segment into few phases: chains as long as possible, then all products that are
// ready (Q, K and V; gate and up), so that matrices that read the same input share its preparation and one barrier.
func schedule(p *ir.Bound, segment int, v *values) []phase {
	seg, s := &p.Segments[segment], scheduler{p: p, values: v}
	for i := range seg.Nodes {
		s.pending = append(s.pending, &seg.Nodes[i])
	}
	for len(s.pending) > 0 {
		before := len(s.pending)
		s.chains()
		if !s.products() && !s.attend() {
			s.experts()
		}
		if len(s.pending) == before {
			panic("cpu: a segment's nodes wait for each other")
		}
	}
	if seg.Kind == ir.SegRoute && len(seg.Nodes) > 0 && len(p.Segments[segment+1].Nodes) > 0 { // both are computed here
		s.ahead(&p.Segments[segment+1])
	}
	return s.phases
}

type scheduler struct {
	p       *ir.Bound
	values  *values
	pending []*ir.Node // in program order
	phases  []phase
}

// take removes and returns the pending nodes that are ready and picked, marking what they write. The result of one
// makes the next ready only if cascade is set.
func (s *scheduler) take(cascade bool, pick func(*ir.Node) bool) (taken []*ir.Node) {
	s.pending = slices.DeleteFunc(s.pending, func(n *ir.Node) bool {
		if !s.ready(n) || !pick(n) {
			return false
		}
		taken = append(taken, n)
		if cascade {
			s.values.written[n.Out] = true
		}
		return true
	})
	for _, n := range taken {
		s.values.written[n.Out] = true
	}
	return taken
}

func (s *scheduler) ready(n *ir.Node) bool {
	return !slices.ContainsFunc(n.In, func(v ir.Value) bool { return !s.values.written[v] })
}

// byRow says whether a node can be computed row by row.
func byRow(n *ir.Node) bool { return n.Op != ir.Linear && n.Op != ir.Attend && n.Op != ir.Experts }

// chains takes all that can be computed row by row, one chain for each of the two kinds of rows in turn.
func (s *scheduler) chains() {
	for {
		i := slices.IndexFunc(s.pending, func(n *ir.Node) bool { return byRow(n) && s.ready(n) })
		if i < 0 {
			return
		}
		wanted := s.values.wanted[s.pending[i].Out]
		for _, n := range s.take(true, func(n *ir.Node) bool { return byRow(n) && s.values.wanted[n.Out] == wanted }) {
			if n.Op != ir.Slice { // a slice is only another view
				s.chain(wanted, item{verb: compute, node: n})
			}
		}
	}
}

// chain adds an item to the chain at the end, or to a new one.
func (s *scheduler) chain(wanted bool, it item) {
	last := len(s.phases) - 1
	if last < 0 || s.phases[last].kind != chained || s.phases[last].wanted != wanted {
		s.phases = append(s.phases, phase{kind: chained, wanted: wanted})
		last++
	}
	s.phases[last].items = append(s.phases[last].items, it)
}

// products takes the products that are ready, those on one kind of rows.
func (s *scheduler) products() bool {
	i := slices.IndexFunc(s.pending, func(n *ir.Node) bool { return n.Op == ir.Linear && s.ready(n) })
	if i < 0 {
		return false
	}
	ph := phase{kind: products, wanted: s.values.wanted[s.pending[i].Out]}
	for _, n := range s.take(false, func(n *ir.Node) bool {
		return n.Op == ir.Linear && s.values.wanted[n.Out] == ph.wanted
	}) {
		s.prepare(ph.wanted, n.In[0], n.W)
		ph.items = append(ph.items, item{verb: compute, node: n})
	}
	s.observe(&ph)
	s.phases = append(s.phases, ph)
	return true
}

// observe has the inputs of products added up, if somebody asked for that.
func (s *scheduler) observe(ph *phase) {
	if !s.values.observed {
		return
	}
	seen := phase{kind: observed, wanted: ph.wanted}
	for _, it := range ph.items {
		seen.items = append(seen.items, item{verb: observe, node: it.node})
	}
	s.phases = append(s.phases, seen)
}

// prepare adds the form of a value that a matrix multiplies, unless it was prepared before.
func (s *scheduler) prepare(wanted bool, v ir.Value, w ir.Ref) {
	it := item{verb: prepare, value: v, form: kernels.FormOf(s.p.Types[w])}
	if !s.values.prepared[it] {
		s.values.prepared[it] = true
		s.chain(wanted, it)
	}
}

// one takes the first node of an op that is ready.
func (s *scheduler) one(op ir.Op) *ir.Node {
	var found *ir.Node
	s.take(false, func(n *ir.Node) bool {
		if found != nil || n.Op != op {
			return false
		}
		found = n
		return true
	})
	return found
}

func (s *scheduler) attend() bool {
	n := s.one(ir.Attend)
	if n == nil {
		return false
	}
	s.chain(false, item{verb: store, node: n})
	s.phases = append(s.phases, phase{kind: attended, items: []item{{verb: compute, node: n}}})
	return true
}

// ahead prepares what the experts after a route multiply in its last chain: in one of their own it would cost a
// barrier.
func (s *scheduler) ahead(experts *ir.Segment) {
	n := &experts.Nodes[0]
	s.prepareExperts(n, s.values.wanted[n.In[0]])
}

func (s *scheduler) prepareExperts(n *ir.Node, wanted bool) {
	s.prepare(wanted, n.In[0], n.Experts.Gate)
	s.prepare(wanted, n.In[0], n.Experts.Up)
}

// experts spreads an Experts node over two phases of products and the chain after them.
func (s *scheduler) experts() {
	n := s.one(ir.Experts)
	if n == nil {
		return
	}
	wanted := s.values.wanted[n.Out]
	s.prepareExperts(n, wanted)
	for _, v := range []verb{expand, contract} {
		s.phases = append(s.phases, phase{kind: expertProducts, wanted: wanted, items: []item{{verb: v, node: n}}})
	}
	s.chain(wanted, item{verb: compute, node: n})
}
