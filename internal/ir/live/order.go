package live

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Form is a device's name for how the rows that a matrix multiplies are prepared; 0: they are read as they are, in
// float32.
type Form uint8

// Rules are what planning needs to know of a device.
type Rules struct {
	ByRow    func(ir.Op) bool         // chains compute it; not asked about Slice, a mere view, Linear and Experts
	InPlace  func(ir.Op) bool         // it can write over its first input, which is as wide; false of Linear
	Form     func(matrix ir.Ref) Form // the form in which a matrix takes its input
	Passes   func(*ir.Node) []Pass    // the passes of an Experts; a chain after them adds up what they leave
	Observed bool                     // inputs of products are observed
}

// Pass is a part of an Experts that has a phase of its own.
type Pass struct {
	Matrices []ir.Ref // that multiply the node's first input, in their forms
	Leaves   []Left
}

// Left is a result that a pass leaves for itself and later ones.
type Left struct {
	Width int // features of a row
	Until int // the last pass that reads it; the number of passes: the chain after them
}

// Verb is what an item does.
type Verb uint8

const (
	Compute     Verb = iota + 1 // the node; of Experts what remains after all passes
	Prepare                     // an input of products
	Store                       // K and V of the node, an Attend, in the cache
	Observe                     // the input of the node, a Linear
	ComputePass                 // a pass of the node, an Experts
)

// Prepared names the rows of a value in a form.
type Prepared struct {
	Value ir.Value
	Form  Form
}

// Item is a piece of work in a phase.
type Item struct {
	Verb  Verb
	Node  *ir.Node // nil for Prepare
	Pass  int      // for ComputePass
	Input Prepared // for Prepare
}

// Reads lists the values that an item reads as float32.
func (it *Item) Reads() []ir.Value {
	switch it.Verb {
	case Prepare:
		return []ir.Value{it.Input.Value}
	case Store:
		return it.Node.In[1:]
	}
	return it.Node.In
}

// Kind says how the items of a phase relate to each other.
type Kind uint8

const (
	Chain    Kind = iota + 1 // each row passes through all items, one after another
	Products                 // products with matrices that need not wait for each other
	Observed                 // inputs of products are observed; the products come in the next phase
	Alone                    // one node, an Attend or another that is not computed by row
	Experts                  // one pass
)

// Phase is work that needs no barrier inside.
type Phase struct {
	Kind   Kind
	Wanted bool // rows are the wanted ones
	Items  []Item
}

// Order divides every segment into phases: chains as long as possible, then all products that are ready (Q, K and V;
// gate and up), so that matrices with the same input share its preparation and one barrier.
func Order(p *ir.Program, rules Rules) [][]Phase {
	o := orderer{rules: rules, written: make([]bool, len(p.Widths)), come: make([]bool, len(p.Widths)),
		prepared: map[Prepared]bool{}}
	for _, taken := range p.Taken() {
		o.written[taken] = true
	}
	segments := make([][]Phase, len(p.Segments))
	for s := range p.Segments {
		o.phases, o.wanted = nil, p.Segments[s].Kind.Ends()
		o.segment(&p.Segments[s])
		if p.Segments[s].Kind == ir.SegRoute && len(p.Segments[s].Nodes) > 0 {
			o.ahead(&p.Segments[s+1])
		}
		segments[s] = o.phases
	}
	return segments
}

type orderer struct {
	rules    Rules
	written  []bool            // by value: by the nodes so far, or by another device
	come     []bool            // by value: a segment so far has written or read it
	prepared map[Prepared]bool // by the items so far
	wanted   bool              // rows of the segment are the wanted ones
	pending  []*ir.Node        // of it, in program order
	phases   []Phase           // of it
}

func (o *orderer) segment(seg *ir.Segment) {
	for i := range seg.Nodes {
		n := &seg.Nodes[i]
		o.pending, o.come[n.Out] = append(o.pending, n), true
		for _, v := range n.In {
			o.come[v] = true
		}
	}
	for len(o.pending) > 0 {
		before := len(o.pending)
		o.chains()
		if !o.products() && !o.alone() {
			o.experts()
		}
		if len(o.pending) == before {
			panic("live: a segment's nodes wait for each other")
		}
	}
}

// take removes and returns the pending nodes that are ready and picked, marking what they write. The result of one
// makes the next ready only if cascade is set.
func (o *orderer) take(cascade bool, pick func(*ir.Node) bool) (taken []*ir.Node) {
	o.pending = slices.DeleteFunc(o.pending, func(n *ir.Node) bool {
		if !o.ready(n) || !pick(n) {
			return false
		}
		taken = append(taken, n)
		if cascade {
			o.written[n.Out] = true
		}
		return true
	})
	for _, n := range taken {
		o.written[n.Out] = true
	}
	return taken
}

func (o *orderer) ready(n *ir.Node) bool {
	return !slices.ContainsFunc(n.In, func(v ir.Value) bool { return !o.written[v] })
}

func isLinear(n *ir.Node) bool  { return n.Op == ir.Linear }
func isExperts(n *ir.Node) bool { return n.Op == ir.Experts }

func (o *orderer) byRow(n *ir.Node) bool {
	return n.Op == ir.Slice || !isLinear(n) && !isExperts(n) && o.rules.ByRow(n.Op)
}

// chains takes all pending nodes that can be computed row by row.
func (o *orderer) chains() {
	for _, n := range o.take(true, o.byRow) {
		if n.Op != ir.Slice { // a slice is only another view
			o.chain(Item{Verb: Compute, Node: n})
		}
	}
}

// chain adds an item to the chain at the end, or to a new one.
func (o *orderer) chain(it Item) {
	last := len(o.phases) - 1
	if last < 0 || o.phases[last].Kind != Chain {
		o.phase(Chain)
		last++
	}
	o.phases[last].Items = append(o.phases[last].Items, it)
}

func (o *orderer) phase(kind Kind, items ...Item) {
	o.phases = append(o.phases, Phase{Kind: kind, Wanted: o.wanted, Items: items})
}

// products takes the products that are ready.
func (o *orderer) products() bool {
	var all, seen []Item
	for _, n := range o.take(false, isLinear) {
		o.prepare(n.In[0], n.W)
		all, seen = append(all, Item{Verb: Compute, Node: n}), append(seen, Item{Verb: Observe, Node: n})
	}
	if len(all) == 0 {
		return false
	}
	if o.rules.Observed {
		o.phase(Observed, seen...)
	}
	o.phase(Products, all...)
	return true
}

// prepare adds an item that prepares a value for a matrix, unless it was prepared in this form before.
func (o *orderer) prepare(v ir.Value, w ir.Ref) {
	input := Prepared{v, o.rules.Form(w)}
	if !o.prepared[input] {
		o.prepared[input] = true
		o.chain(Item{Verb: Prepare, Input: input})
	}
}

// alone takes one node that is no product and not computed by row.
func (o *orderer) alone() bool {
	n := o.one(func(n *ir.Node) bool { return !isExperts(n) })
	if n == nil {
		return false
	}
	if n.Op == ir.Attend && len(n.In) > 1 {
		o.chain(Item{Verb: Store, Node: n})
	}
	o.phase(Alone, Item{Verb: Compute, Node: n})
	return true
}

// one takes the first node that is ready and picked.
func (o *orderer) one(pick func(*ir.Node) bool) (found *ir.Node) {
	o.take(false, func(n *ir.Node) bool {
		if found != nil || !pick(n) {
			return false
		}
		found = n
		return true
	})
	return found
}

// ahead prepares the inputs of the experts after a route in the route's last chain: a chain of their own would cost a
// barrier. The experts have no nodes if another device computes them, and an input that another device has written may
// come after the route.
func (o *orderer) ahead(experts *ir.Segment) {
	if len(experts.Nodes) > 0 && o.come[experts.Nodes[0].In[0]] {
		o.prepareExperts(&experts.Nodes[0])
	}
}

func (o *orderer) prepareExperts(n *ir.Node) {
	for _, pass := range o.rules.Passes(n) {
		for _, w := range pass.Matrices {
			o.prepare(n.In[0], w)
		}
	}
}

// experts spreads an Experts over its passes and the chain after them.
func (o *orderer) experts() {
	n := o.one(isExperts)
	if n == nil {
		return
	}
	o.prepareExperts(n)
	for i := range o.rules.Passes(n) {
		o.phase(Experts, Item{Verb: ComputePass, Node: n, Pass: i})
	}
	o.chain(Item{Verb: Compute, Node: n})
}

// String is "chain norm prepare", for people and for golden files.
func (ph *Phase) String() string {
	var s strings.Builder
	s.WriteString([...]string{
		Chain: "chain", Products: "products", Observed: "observed", Alone: "alone", Experts: "experts",
	}[ph.Kind])
	for i := range ph.Items {
		s.WriteString(" " + ph.Items[i].String())
	}
	return s.String()
}

// String is the node's op, or the verb.
func (it *Item) String() string {
	switch it.Verb {
	case Compute:
		return it.Node.Op.String()
	case ComputePass:
		return fmt.Sprintf("pass-%d", it.Pass)
	}
	return [...]string{Prepare: "prepare", Store: "store", Observe: "observe"}[it.Verb]
}
