package grammar

import (
	"encoding/binary"
	"slices"
)

// stacks are what rules return to. Several ways to come to a rule at one place share one stack: a stack is a set of
// frames, each a state to go on in and the stack below it. Equal sets are the same stack, wherever in the text.
type stacks struct {
	list  [][]frame
	known map[string]int32
	bytes []byte
}

type frame struct{ to, below int32 }

// The stacks that are always there.
const (
	stackEmpty = 0 // below the first rule: the text may end
	stackExit  = 1 // below the rule in which a walk began
)

func (s *stacks) begin() {
	s.stack([]frame{{stateEnd, none}})
	s.stack([]frame{{stateExit, none}})
}

// stack returns the number of the stack with these frames, which it may reorder.
func (s *stacks) stack(frames []frame) int32 {
	if len(frames) > 1 {
		slices.SortFunc(frames, func(a, b frame) int {
			if a.to != b.to {
				return int(a.to - b.to)
			}
			return int(a.below - b.below)
		})
		frames = slices.Compact(frames)
	}
	s.bytes = s.bytes[:0]
	for _, f := range frames {
		s.bytes = binary.LittleEndian.AppendUint32(s.bytes, uint32(f.to))
		s.bytes = binary.LittleEndian.AppendUint32(s.bytes, uint32(f.below))
	}
	if id, ok := s.known[string(s.bytes)]; ok {
		return id
	}
	id := int32(len(s.list))
	s.list = append(s.list, slices.Clone(frames))
	s.known[string(s.bytes)] = id
	return id
}

// stackOf is stack with its cost counted, in steps and bytes.
func (p *Program) stackOf(frames []frame) int32 {
	p.steps += sorting(len(frames))
	n := len(p.stacks.list)
	id := p.stack(frames)
	if len(p.stacks.list) > n {
		p.size += 100 + 16*len(p.stacks.list[id])
	}
	return id
}

// config is a state of the automaton at a place in a text: a state inside a rule, and the stack below that rule.
// Where the grammar is ambiguous there are several at one place.
type config struct{ state, stack int32 }

// closer makes sets of configs complete: with the rules that may begin, and those that may end.
type closer struct {
	p     *Program
	begun []begun // rules that begin here, by rank
}

type begun struct {
	rule   int32
	frames []frame
}

// complete adds to set[from:] all configs that can be reached from there without reading a byte.
func (c *closer) complete(set []config, from int) []config {
	p := c.p
	c.begun = c.begun[:0]
	p.steps += len(set) - from
	for i := from; i < len(set) && !p.over(); i++ { // ends first: they bring states that call
		s := p.expand(set[i].state)
		if s.accept {
			set = c.pop(set, from, set[i].stack)
		}
	}
	for i := from; i < len(set) && !p.over(); i++ {
		c.call(set[i])
	}
	for len(c.begun) > 0 && !p.over() { // a rule begins when all that may begin with it have
		least := 0
		for i := range c.begun {
			if p.rules[c.begun[i].rule].rank < p.rules[c.begun[least].rule].rank {
				least = i
			}
		}
		b := c.begun[least]
		p.steps += 1 + (len(c.begun)+len(b.frames))/8
		n := len(c.begun) - 1
		c.begun[least], c.begun[n] = c.begun[n], b
		c.begun = c.begun[:n]
		next := config{p.startOf(b.rule), p.stackOf(b.frames)}
		set = append(set, next)
		c.call(next)
	}
	return set
}

// pop adds the configs that the frames of a stack lead to.
func (c *closer) pop(set []config, from int, stack int32) []config {
	if stack == none {
		return set
	}
	for _, f := range c.p.stacks.list[stack] {
		c.p.steps += 1 + (len(set)-from)/16
		set = add(set, from, config{f.to, f.below})
	}
	return set
}

func add(set []config, from int, x config) []config {
	for _, y := range set[from:] {
		if x == y {
			return set
		}
	}
	return append(set, x)
}

// call notes the rules that may begin at a config.
func (c *closer) call(x config) {
	p := c.p
	for _, r := range p.expand(x.state).calls {
		b := c.find(r.rule)
		p.steps += 1 + len(c.begun)/16
		if p.expand(r.to).last { // nothing comes after the call: what is below goes on
			b.frames = append(b.frames, p.stacks.list[x.stack]...)
			p.steps += len(p.stacks.list[x.stack]) / 8
		} else {
			b.frames = append(b.frames, frame{r.to, x.stack})
		}
	}
}

func (c *closer) find(rule int32) *begun {
	for i := range c.begun {
		if c.begun[i].rule == rule {
			return &c.begun[i]
		}
	}
	n := len(c.begun)
	if n < cap(c.begun) {
		c.begun = c.begun[:n+1]
		c.begun[n].rule, c.begun[n].frames = rule, c.begun[n].frames[:0]
	} else {
		c.begun = append(c.begun, begun{rule: rule})
	}
	return &c.begun[n]
}
