package cpu

import (
	"slices"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
)

// verb is what an item does.
type verb uint8

const (
	compute verb = iota + 1 // the node
	prepare                 // value, in form, for the products that read it
	store                   // K and V of the node, an Attend, in the cache
	observe                 // the input of the node, for backend.Inputs
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
	chained  phaseKind = iota + 1 // by rows: each row passes through all items
	products                      // by tiles of the items' matrices
	attended                      // by spans, heads and positions
	observed                      // by columns of the items' inputs
)

// phase is a list of items that needs no barrier inside.
type phase struct {
	kind   phaseKind
	wanted bool // chained, products: rows are the wanted ones
	items  []item
}

// schedule orders the nodes of a segment into few phases: chains as long as possible, then all products that are
// ready (Q, K and V; gate and up), so that matrices that read the same input share its preparation and one barrier.
func schedule(p *ir.Bound, seg *ir.Segment, v *values) []phase {
	s := scheduler{p: p, values: v}
	for i := range seg.Nodes {
		s.pending = append(s.pending, &seg.Nodes[i])
	}
	for len(s.pending) > 0 {
		before := len(s.pending)
		s.chains()
		if !s.products() {
			s.attend()
		}
		if len(s.pending) == before {
			panic("cpu: a segment's nodes wait for each other")
		}
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
func byRow(n *ir.Node) bool { return n.Op != ir.Linear && n.Op != ir.Attend }

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
		it := item{verb: prepare, value: n.In[0], form: kernels.FormOf(s.p.Types[n.W])}
		if !s.values.prepared[it] {
			s.values.prepared[it] = true
			s.chain(ph.wanted, it)
		}
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

func (s *scheduler) attend() {
	first := true
	nodes := s.take(false, func(n *ir.Node) bool {
		one := first && n.Op == ir.Attend
		first = first && !one
		return one
	})
	for _, n := range nodes {
		s.chain(false, item{verb: store, node: n})
		s.phases = append(s.phases, phase{kind: attended, items: []item{{verb: compute, node: n}}})
	}
}
