package ir

import (
	"errors"
	"fmt"
	"slices"
)

// Check returns all faults of a program, or nil. It runs after recording, and in devices' tests after rewriting; a
// fault is a bug of ours, unless numbers in a file contradict each other.
func Check(p *Program) error {
	c := &checker{
		p: p, carried: p.carried(), filled: make([]bool, len(p.KV)), writer: make([]int, len(p.Widths)),
		op: make([]Op, len(p.Widths)), used: make([]bool, len(p.Weights)),
	}
	for i := range c.writer {
		c.writer[i] = unwritten
	}
	c.inputs()
	for _, w := range p.Widths {
		if w <= 0 {
			c.faultf("a value has %d features", w)
		}
	}
	for s := range p.Segments {
		c.segment(s)
		c.carries(s)
	}
	for r, used := range c.used {
		if !used {
			c.faultf("weight %s is recorded and not used", p.Weights[r].Name)
		}
	}
	c.outputs()
	forms[p.Form()].check(c)
	if len(c.faults) == 0 {
		return nil
	}
	return fmt.Errorf("program of %s: %w", p.Arch, errors.Join(c.faults...))
}

// Values that no segment wrote.
const (
	unwritten = -1 - iota
	given     // by the step
)

type checker struct {
	p       *Program
	carried [][]Value // what segments have to carry
	filled  []bool    // by cache: a node appends to it
	writer  []int     // segment that wrote a Value
	op      []Op      // op that wrote it
	used    []bool    // by Ref
	faults  []error
}

func (c *checker) faultf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

func (c *checker) segment(s int) {
	seg := &c.p.Segments[s]
	if len(seg.Nodes) == 0 {
		c.faultf("%s: no nodes", seg)
		return
	}
	for i := range seg.Nodes {
		n := &seg.Nodes[i]
		if err := c.node(s, i, n); err != nil {
			c.faultf("%s, node %d, %s: %w", seg, i, n.Op, err)
		}
	}
}

func (c *checker) node(s, i int, n *Node) error {
	if n.Op == 0 || int(n.Op) >= len(operations) {
		return errors.New("unknown")
	}
	o := operations[n.Op]
	if n.Out < 0 || int(n.Out) >= len(c.writer) {
		return fmt.Errorf("writes value %d of %d", n.Out, len(c.writer))
	}
	if c.writer[n.Out] != unwritten {
		return fmt.Errorf("writes value %d a second time", n.Out)
	}
	c.writer[n.Out], c.op[n.Out] = s, n.Op
	kind := c.p.Segments[s].Kind
	if (n.Op == Rows) != (kind.Ends() && i == 0) {
		return errors.New("the last segment, and only that, starts with rows")
	}
	if (n.Op == Embed || n.Op == TokenType || n.Op == Token) && !c.p.TakesTokens() {
		return errors.New("token ids are no input")
	}
	if len(n.In) < o.inputs[0] || len(n.In) > o.inputs[1] {
		return fmt.Errorf("%d inputs, want %d to %d", len(n.In), o.inputs[0], o.inputs[1])
	}
	for _, v := range n.In {
		if err := c.reads(s, v, n.Out); err != nil {
			return err
		}
	}
	if err := c.mixture(s, i, n); err != nil {
		return err
	}
	if err := c.cache(n); err != nil {
		return err
	}
	if err := n.whole(); err != nil {
		return err
	}
	for _, at := range n.operands() {
		if err := c.weight(at.w, at.need, at.use); err != nil {
			return err
		}
	}
	return o.fits(c.p, n)
}

// cache checks that one node fills a cache, and that others come after it.
func (c *checker) cache(n *Node) error {
	if n.Op != Attend || n.Attend == nil || n.Attend.KV < 0 || n.Attend.KV >= len(c.filled) {
		return nil
	}
	fills, filled := len(n.In) > 1, &c.filled[n.Attend.KV]
	if fills == *filled {
		return fmt.Errorf("cache %d: filled before: %t, filled here: %t", n.Attend.KV, *filled, fills)
	}
	*filled = true
	return nil
}

// mixture checks that routes and experts are in segments of their kind, and experts' segments compute nothing that
// could be computed before.
func (c *checker) mixture(s, i int, n *Node) error {
	here := func(v Value) bool { return c.writer[v] == s }
	switch kind := c.p.Segments[s].Kind; {
	case (n.Op == Experts) != (kind == SegExperts && i == 0):
		return errors.New("a segment of experts, and only that, starts with experts")
	case n.Op == Experts && c.op[n.In[1]] != Route:
		return fmt.Errorf("takes its weights from value %d, which no route wrote", n.In[1])
	case kind == SegExperts && (n.Op == Linear || n.Op == HeadLinear):
		return errors.New("a segment of experts has no other matrices")
	case kind == SegExperts && i > 0 && !slices.ContainsFunc(n.In, here):
		return errors.New("does not need the experts: record it before them, as part of the route")
	}
	return nil
}

// reads checks that a value was written before: in this segment, or in an earlier one and carried by the one before. In
// the last segment only a Rows node reads what was carried.
func (c *checker) reads(s int, v, out Value) error {
	if v < 0 || int(v) >= len(c.writer) || c.writer[v] == unwritten || v == out {
		return fmt.Errorf("reads value %d before it is written", v)
	}
	if c.writer[v] == s {
		return nil
	}
	if !slices.Contains(c.p.Takes(s), v) && s > 0 {
		return fmt.Errorf("reads value %d, which %s does not carry", v, &c.p.Segments[s-1])
	}
	if c.p.Segments[s].Kind.Ends() && c.op[out] != Rows {
		return fmt.Errorf("reads value %d of all rows", v)
	}
	return nil
}

// carries checks that a segment carries what later ones read, and its outputs, and nothing else.
func (c *checker) carries(s int) {
	seg := &c.p.Segments[s]
	if !slices.Equal(seg.Carries, c.carried[s]) {
		c.faultf("%s carries%s, and later segments read%s", seg, list(seg.Carries), list(c.carried[s]))
	}
	for _, v := range seg.Carries {
		if !slices.Contains(c.p.Takes(s), v) && !seg.writes(v) {
			c.faultf("%s carries value %d, which it neither takes nor writes", seg, v)
		}
	}
}

// inputs checks the values that a step brings: no node writes one, and some node reads it.
func (c *checker) inputs() {
	for i, in := range c.p.Inputs {
		same := func(other Input) bool { return other.Name == in.Name || other.Value == in.Value }
		switch {
		case in.Name == "" || slices.ContainsFunc(c.p.Inputs[:i], same):
			c.faultf("input %q, %%%d, has no name of its own, or is another one's value", in.Name, in.Value)
		case in.Value == NoValue:
		case in.Value < 0 || int(in.Value) >= len(c.writer):
			c.faultf("input %s is value %d of %d", in.Name, in.Value, len(c.writer))
		default:
			c.writer[in.Value] = given
			if !slices.ContainsFunc(c.p.Segments, func(s Segment) bool { return slices.Contains(s.inputs(), in.Value) }) {
				c.faultf("input %s is not read", in.Name)
			}
		}
	}
}

// outputs checks that each output has a name of its own, and was written.
func (c *checker) outputs() {
	for i, out := range c.p.Outputs {
		same := func(other Output) bool { return other.Name == out.Name }
		switch {
		case out.Name == "" || slices.ContainsFunc(c.p.Outputs[:i], same):
			c.faultf("output %q, %%%d, has no name of its own", out.Name, out.Value)
		case out.Value < 0 || int(out.Value) >= len(c.writer) || c.writer[out.Value] < 0:
			c.faultf("output %s is value %d, which no node writes", out.Name, out.Value)
		}
	}
	if slices.Contains(c.writer, unwritten) {
		c.faultf("value %d is never written", slices.Index(c.writer, unwritten))
	}
}

func (c *checker) weight(r Ref, need need, use Use) error {
	switch {
	case r == NoRef && need == required:
		return errors.New("a weight is missing")
	case r == NoRef:
		return nil
	case r < 0 || int(r) >= len(c.used):
		return fmt.Errorf("weight %d of %d", r, len(c.used))
	case need == none:
		return fmt.Errorf("has no use for %s", c.p.Weights[r].Name)
	}
	c.used[r] = true
	w := &c.p.Weights[r]
	if w.Use&use == 0 || w.Rows <= 0 || w.Cols <= 0 {
		return fmt.Errorf("%s is %d×%d for use %d, want use %d", w.Name, w.Rows, w.Cols, w.Use, use)
	}
	return nil
}
