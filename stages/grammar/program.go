package grammar

import (
	"fmt"
	"slices"
)

// Form is a compiled grammar: a pushdown automaton over bytes. Nobody changes it once it is made, so that any number of
// programs share it.
type Form struct {
	nodes  []node
	rules  []compiled
	limits Limits
}

// Program is a form at work. It grows while it is used, so one goroutine at a time may use it and everything made from
// it.
type Program struct {
	*Form
	starts []int32 // by rule: the state in which it begins, made when it is first called; none before
	states
	stacks
	work
}

// Program makes a program of the form, without any states yet.
func (f *Form) Program() *Program {
	p := &Program{Form: f, starts: make([]int32, len(f.rules))}
	for i := range p.starts {
		p.starts[i] = none
	}
	p.states.known, p.stacks.known = map[string]int32{}, map[string]int32{}
	p.begin()
	return p
}

// Matcher makes a matcher that has read nothing, of a program of its own.
func (f *Form) Matcher() *Matcher { return f.Program().Matcher() }

// Size is about how many bytes the form takes.
func (f *Form) Size() int64 {
	const node, way, rule = 48, 4, 64
	n := int64(node*len(f.nodes) + rule*len(f.rules))
	for i := range f.nodes {
		n += way * int64(cap(f.nodes[i].ways))
	}
	for i := range f.rules {
		if l := f.rules[i].lexeme; l != nil {
			n += l.Lang.Size() + 8*int64(len(l.safe))
		}
	}
	return n
}

// node is an instruction of a rule's body.
type node struct {
	op     op
	lo, hi byte    // bytes: the range
	next   int32   // bytes, call
	ways   []int32 // split
	rule   int32   // call
	alive  bool    // the rule's end can be reached
}

type op uint8

const (
	opEnd op = iota
	opBytes
	opSplit
	opCall
)

// compiled is a compiled rule. A call of it stands for its texts that are not empty; nullable says whether the empty
// text is one of its texts.
type compiled struct {
	name     string
	entry    int32   // node
	lexeme   *letter // instead of a body
	nullable bool
	some     bool // it has a text that is not empty
	rank     int  // a rule that may begin with another has a lower rank
}

// Compile makes a form. A grammar that no text satisfies, that is left-recursive or too large is an error.
func Compile(g *Grammar, limits Limits) (*Form, error) {
	p := &Program{Form: &Form{limits: limits}}
	c := compiler{p: p, lexemes: map[*Lexeme]int32{}}
	p.rules = make([]compiled, len(g.Rules))
	for i, r := range g.Rules {
		p.rules[i] = compiled{name: r.Name}
	}
	for i, r := range g.Rules {
		end := c.add(node{op: opEnd})
		p.rules[i].entry = c.expr(r.Body, end)
		if c.err != nil {
			return nil, c.err
		}
	}
	p.markAlive()
	if !p.rules[0].nullable && !p.productive(0) {
		return nil, errNothing
	}
	if err := p.order(); err != nil {
		return nil, err
	}
	p.nodes = slices.Clip(p.nodes)
	return p.Form, nil
}

type compiler struct {
	p       *Program
	lexemes map[*Lexeme]int32 // the rule of each
	steps   int
	err     error
}

func (c *compiler) add(n node) int32 {
	if len(c.p.nodes) >= c.p.limits.Nodes {
		c.err = &TooLarge{"nodes", c.p.limits.Nodes}
		return 0
	}
	c.p.nodes = append(c.p.nodes, n)
	return int32(len(c.p.nodes) - 1)
}

// expr compiles e before next, and returns where it begins.
func (c *compiler) expr(e Expr, next int32) int32 {
	if c.err != nil {
		return 0
	}
	if c.steps++; c.steps > c.p.limits.Steps { // texts without a byte, as often as one likes, are no nodes
		c.err = &TooLarge{"steps to compile", c.p.limits.Steps}
		return 0
	}
	switch e.kind {
	case fail:
		return c.add(node{op: opSplit})
	case literal:
		for i := len(e.text) - 1; i >= 0; i-- {
			next = c.add(node{op: opBytes, lo: e.text[i], hi: e.text[i], next: next})
		}
	case chars:
		return c.chars(e.set, next)
	case rawBytes:
		for i := len(e.set) - 2; i >= 0; i -= 2 {
			next = c.add(node{op: opBytes, lo: byte(e.set[i]), hi: byte(e.set[i+1]), next: next})
		}
	case seq:
		for i := len(e.of) - 1; i >= 0; i-- {
			next = c.expr(e.of[i], next)
		}
	case alt:
		ways := make([]int32, len(e.of))
		for i, x := range e.of {
			ways[i] = c.expr(x, next)
		}
		return c.add(node{op: opSplit, ways: ways})
	case repeat:
		return c.repeat(e, next)
	case call:
		return c.add(node{op: opCall, rule: int32(e.rule), next: next})
	case word:
		return c.add(node{op: opCall, rule: c.lexeme(e.lexeme), next: next})
	case members:
		return c.members(e.list, next)
	}
	return next
}

func (c *compiler) repeat(e Expr, next int32) int32 {
	if e.max < 0 {
		loop := c.add(node{op: opSplit})
		body := c.expr(e.of[0], loop)
		if c.err == nil {
			c.p.nodes[loop].ways = []int32{body, next}
		}
		next = loop
	} else {
		last := next
		for i := e.min; i < e.max && c.err == nil; i++ {
			next = c.add(node{op: opSplit, ways: []int32{c.expr(e.of[0], next), last}})
		}
	}
	for i := 0; i < e.min && c.err == nil; i++ {
		next = c.expr(e.of[0], next)
	}
	return next
}

// lexeme gives a lexeme a rule of its own.
func (c *compiler) lexeme(l *Lexeme) int32 {
	r, ok := c.lexemes[l]
	if !ok {
		r = int32(len(c.p.rules))
		c.lexemes[l] = r
		nullable := l.Spelling == Plain && l.Lang.Final(l.Lang.Start()) && l.Min <= 0
		c.p.rules = append(c.p.rules, compiled{name: "text", lexeme: newLetter(l, int(r)), nullable: nullable})
	}
	return r
}

// chars compiles a set of characters to ranges of bytes.
func (c *compiler) chars(set []rune, next int32) int32 {
	var ways []int32
	for i := 0; i+1 < len(set); i += 2 {
		utf8Ranges(set[i], set[i+1], func(parts [][2]byte) {
			n := next
			for j := len(parts) - 1; j >= 0; j-- {
				n = c.add(node{op: opBytes, lo: parts[j][0], hi: parts[j][1], next: n})
			}
			ways = append(ways, n)
		})
	}
	if len(ways) == 1 {
		return ways[0]
	}
	return c.add(node{op: opSplit, ways: ways})
}

// productive says that a rule has a text that is not known to be only the empty one.
func (p *Program) productive(rule int32) bool {
	return p.rules[rule].lexeme != nil || p.nodes[p.rules[rule].entry].alive
}

// markAlive finds the nodes from which the end of their rule can be reached, and the rules with an empty text.
func (p *Program) markAlive() {
	reach := p.reach(true, func(rule int32) bool { return p.rules[rule].lexeme != nil })
	nullable := p.reach(false, func(rule int32) bool { return p.rules[rule].nullable })
	for i := range p.nodes {
		p.nodes[i].alive = reach[i]
	}
	for i := range p.rules {
		if r := &p.rules[i]; r.lexeme == nil {
			r.nullable = nullable[r.entry]
		}
	}
}

// reach finds the nodes that lead to their rule's end; bytes says whether over bytes too, known which rules without a
// body can be passed.
func (p *Program) reach(bytes bool, known func(rule int32) bool) []bool {
	into := make([][]int32, len(p.nodes)) // the nodes before each
	callers := make([][]int32, len(p.rules))
	ruleOf := make(map[int32][]int32, len(p.rules)) // by entry
	passed := make([]bool, len(p.rules))
	for i := range p.rules {
		if p.rules[i].lexeme != nil {
			passed[i] = known(int32(i))
		} else {
			ruleOf[p.rules[i].entry] = append(ruleOf[p.rules[i].entry], int32(i))
		}
	}
	reached := make([]bool, len(p.nodes))
	var queue []int32
	hit := func(n int32) {
		if !reached[n] {
			reached[n] = true
			queue = append(queue, n)
		}
	}
	for i, n := range p.nodes {
		switch n.op {
		case opEnd:
			hit(int32(i))
		case opBytes:
			if bytes {
				into[n.next] = append(into[n.next], int32(i))
			}
		case opSplit:
			for _, w := range n.ways {
				into[w] = append(into[w], int32(i))
			}
		case opCall:
			into[n.next] = append(into[n.next], int32(i))
			callers[n.rule] = append(callers[n.rule], int32(i))
		}
	}
	for len(queue) > 0 {
		n := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, before := range into[n] {
			if b := p.nodes[before]; b.op != opCall || passed[b.rule] {
				hit(before)
			}
		}
		for _, r := range ruleOf[n] {
			passed[r] = true
			for _, caller := range callers[r] {
				if reached[p.nodes[caller].next] {
					hit(caller)
				}
			}
		}
	}
	return reached
}

// order ranks the rules by which may begin with which, and refuses those that may begin with themselves.
func (p *Program) order() error {
	const busy, done = 1, 2
	seen := make([]uint8, len(p.rules))
	rank := len(p.rules)
	type frame struct {
		rule  int32
		calls []int32
	}
	open := func(r int32) frame {
		seen[r] = busy
		return frame{r, p.first(r)}
	}
	for root := range p.rules {
		if seen[root] != 0 {
			continue
		}
		stack := []frame{open(int32(root))}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.calls) == 0 {
				seen[top.rule] = done
				p.rules[top.rule].rank, p.rules[top.rule].some = rank, p.some(top.rule)
				rank--
				stack = stack[:len(stack)-1]
				continue
			}
			r := top.calls[0]
			top.calls = top.calls[1:]
			switch seen[r] {
			case 0:
				stack = append(stack, open(r))
			case busy:
				return fmt.Errorf("rule %q may begin with itself: write the recursion at its end", p.rules[r].name)
			}
		}
	}
	return nil
}

// first lists the rules that a rule may begin with.
func (p *Program) first(rule int32) (calls []int32) {
	if p.rules[rule].lexeme != nil {
		return nil
	}
	p.closure([]int32{p.rules[rule].entry}, func(n *node) {
		if n.op == opCall {
			calls = append(calls, n.rule)
		}
	})
	return calls
}

// some says whether a rule has a text that is not empty. It is known of those that the rule may begin with.
func (p *Program) some(rule int32) bool {
	if l := p.rules[rule].lexeme; l != nil {
		return l.some()
	}
	found := false
	p.closure([]int32{p.rules[rule].entry}, func(n *node) {
		found = found || n.op == opBytes || n.op == opCall && p.rules[n.rule].some
	})
	return found
}

// closure calls yield for the nodes that can be reached without a character and are no splits.
func (p *Program) closure(kernel []int32, yield func(*node)) {
	p.walk++
	if len(p.met) < len(p.nodes) {
		p.met = make([]int32, len(p.nodes))
	}
	stack := append(p.todo[:0], kernel...)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &p.nodes[i]
		if p.met[i] == p.walk || !n.alive {
			continue
		}
		p.met[i] = p.walk
		p.steps++
		switch n.op {
		case opSplit:
			stack = append(stack, n.ways...)
			continue
		case opCall:
			if p.rules[n.rule].nullable {
				stack = append(stack, n.next)
			}
		}
		yield(n)
	}
	p.todo = stack[:0]
}
