package grammar

import (
	"encoding/binary"
	"slices"
)

// states are the places inside rules: sets of nodes, or a letter's (lexeme.go). Each is expanded when it is first
// stepped from, and most never are.
type states struct {
	list  []state
	known map[string]int32 // by what they are made of
	key   []byte           // scratch
	walk  int32            // the number of the last closure
	met   []int32          // by node: the last closure that met it
	todo  []int32          // scratch of closures
	sweep sweep

	edges  []edge // scratch of letters
	places []place
	ranged []*node // scratch of sets of nodes
	after  []ret
}

// state is a place inside a rule.
type state struct {
	expanded bool
	accept   bool // the rule may end here
	last     bool // it ends here: nothing else can follow
	start    bool // the empty text is not meant: not accepted, though the nodes would
	kernel   []int32
	place    place // of a letter, if letter is set
	letter   *letter
	edges    []edge // by byte, ascending
	calls    []ret
	places   []place // of a letter, where no state was made of them yet
}

// edge is where a range of bytes leads: a state, or -2-i for places[i] of the state that it leads from.
type edge struct {
	lo, hi byte
	to     int32
}

// ret is a call: the rule, and the state after it.
type ret struct{ rule, to int32 }

const none = -1

// The states that are always there.
const (
	stateEnd  = 0 // the whole text may end
	stateExit = 1 // a walk left the rule that it began in (masker.go)
)

// begin makes the states and stacks that are always there.
func (p *Program) begin() {
	for range 2 {
		p.states.list = append(p.states.list, state{expanded: true, accept: true, last: true})
	}
	p.stacks.begin()
	p.work.begin()
}

// startOf returns the state in which a rule begins.
func (p *Program) startOf(rule int32) int32 {
	if p.starts[rule] == none {
		r := &p.rules[rule]
		if r.lexeme != nil {
			p.starts[rule] = p.letterState(r.lexeme, r.lexeme.first())
		} else {
			p.starts[rule] = p.nodeState([]int32{r.entry}, true)
		}
	}
	return p.starts[rule]
}

// nodeState returns the state of a set of nodes.
func (p *Program) nodeState(kernel []int32, start bool) int32 {
	slices.Sort(kernel)
	kernel = slices.Compact(kernel)
	p.key = append(p.key[:0], 'n', 0)
	if start {
		p.key[1] = 1
	}
	for _, n := range kernel {
		p.key = binary.LittleEndian.AppendUint32(p.key, uint32(n))
	}
	if s, ok := p.states.known[string(p.key)]; ok {
		return s
	}
	return p.newState(state{kernel: slices.Clone(kernel), start: start})
}

// newState adds a state, whose key is in p.key.
func (p *Program) newState(s state) int32 {
	id := int32(len(p.states.list))
	p.size += 200 + 2*len(p.key)
	p.states.known[string(p.key)] = id
	p.states.list = append(p.states.list, s)
	return id
}

// expand returns a state whose edges are known. It stays valid until the next expansion.
func (p *Program) expand(id int32) *state {
	s := &p.states.list[id]
	if s.expanded {
		return s
	}
	if s.letter != nil {
		l, at := s.letter, s.place
		edges, places := p.edges[:0], p.places[:0]
		s.accept = l.expand(at, func(lo, hi byte, to place) {
			edges = append(edges, edge{lo, hi, int32(-2 - len(places))})
			places = append(places, to)
		})
		p.edges, p.places = edges, places
		p.steps, p.size = p.steps+100, p.size+28*len(edges)
		s.edges, s.places = slices.Clone(edges), slices.Clone(places)
		s.expanded, s.last = true, s.accept && len(edges) == 0
		return s
	}
	p.expandNodes(id)
	return &p.states.list[id]
}

func (p *Program) expandNodes(id int32) {
	bytes, after := p.ranged[:0], p.after[:0] // after, before states are made: rule and node
	accept := false
	p.closure(p.states.list[id].kernel, func(n *node) {
		switch {
		case n.op == opBytes:
			bytes = append(bytes, n)
		case n.op == opCall && p.rules[n.rule].some:
			after = append(after, ret{n.rule, n.next})
		case n.op == opEnd:
			accept = true
		}
	})
	p.ranged, p.after = bytes, after
	edges := p.sweep.edges(bytes, func(kernel []int32) int32 { return p.nodeState(kernel, false) })
	slices.SortFunc(after, func(a, b ret) int { return int(a.rule - b.rule) })
	var calls []ret
	kernel := p.sweep.kernel
	for i := 0; i < len(after); {
		rule := after[i].rule
		for kernel = kernel[:0]; i < len(after) && after[i].rule == rule; i++ {
			kernel = append(kernel, after[i].to)
		}
		calls = append(calls, ret{rule, p.nodeState(kernel, false)})
	}
	p.steps += (len(edges) + 1) * (len(bytes) + 8) / 8
	p.size += 12*len(edges) + 8*len(calls)
	s := &p.states.list[id]
	s.edges, s.calls, s.accept = edges, calls, accept && !s.start
	s.expanded, s.last = true, s.accept && len(edges) == 0 && len(calls) == 0
}

// sweep makes disjoint edges of the byte ranges of nodes, which may overlap.
type sweep struct {
	cut    [257]bool
	kernel []int32
}

func (w *sweep) edges(bytes []*node, state func(kernel []int32) int32) (edges []edge) {
	if len(bytes) == 0 {
		return nil
	}
	w.cut = [257]bool{}
	for _, n := range bytes {
		w.cut[n.lo], w.cut[int(n.hi)+1] = true, true
	}
	for lo := 0; lo < 256; {
		hi := lo + 1
		for hi < 256 && !w.cut[hi] {
			hi++
		}
		w.kernel = w.kernel[:0]
		for _, n := range bytes {
			if int(n.lo) <= lo && lo <= int(n.hi) {
				w.kernel = append(w.kernel, n.next)
			}
		}
		if len(w.kernel) > 0 {
			to := state(w.kernel)
			if k := len(edges); k > 0 && edges[k-1].to == to && int(edges[k-1].hi)+1 == lo {
				edges[k-1].hi = byte(hi - 1)
			} else {
				edges = append(edges, edge{byte(lo), byte(hi - 1), to})
			}
		}
		lo = hi
	}
	return edges
}

// step returns the state after byte b, or none.
func (p *Program) step(id int32, b byte) int32 {
	s := p.expand(id)
	to := s.step(b)
	if to >= none {
		return to
	}
	next := p.letterState(s.letter, s.places[-2-to])
	for i, e := range p.states.list[id].edges {
		if e.to == to {
			p.states.list[id].edges[i].to = next
		}
	}
	return next
}

// step returns where byte b leads.
func (s *state) step(b byte) int32 {
	e := s.edges
	if len(e) > 8 {
		lo, hi := 0, len(e)
		for lo < hi {
			if mid := (lo + hi) / 2; e[mid].hi < b {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if lo < len(e) && e[lo].lo <= b {
			return e[lo].to
		}
		return none
	}
	for i := range e {
		if b <= e[i].hi {
			if b >= e[i].lo {
				return e[i].to
			}
			return none
		}
	}
	return none
}
