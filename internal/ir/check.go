package ir

import (
	"errors"
	"fmt"
	"slices"
)

// Check says what is wrong with a program, all of it, or nil. It is run after recording and by devices' tests
// after rewriting; a fault here is a bug of ours, except where a file's numbers contradict each other.
func Check(p *Program) error {
	c := checker{
		p: p, carried: p.carried(), filled: make([]bool, len(p.KV)), writer: make([]int, len(p.Widths)), op: make([]Op, len(p.Widths)), used: make([]bool, len(p.Weights)),
	}
	for i := range c.writer {
		c.writer[i] = unwritten
	}
	c.order()
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
	c.ends()
	if len(c.faults) == 0 {
		return nil
	}
	return fmt.Errorf("program of %s: %w", p.Arch, errors.Join(c.faults...))
}

const unwritten = -1

type checker struct {
	p       *Program
	carried [][]Value // what segments have to carry
	filled  []bool    // by cache: a node appends to it
	writer  []int     // segment that wrote a Value
	op      []Op      // that did
	used    []bool    // by Ref
	faults  []error
}

func (c *checker) faultf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// order checks that segments are those of a Program, in their order.
func (c *checker) order() {
	before := Segment{Layer: -1}
	for _, s := range c.p.Segments {
		switch {
		case s.follows(&before):
		case before.Kind == 0:
			c.faultf("the first segment is %s, want embed", &s)
		default:
			c.faultf("%s cannot follow %s", &s, &before)
		}
		before = s
	}
	if !before.Kind.Ends() {
		c.faultf("%d segments, the last is %s, want head or pool", len(c.p.Segments), &before)
	}
}

// follows says whether s may come after another segment, whose kind is 0 if there is none.
func (s *Segment) follows(a *Segment) bool {
	whole := a.Kind != 0 && a.Kind != SegRoute && !a.Kind.Ends() // the next layer may begin, or the end
	switch s.Kind {
	case SegEmbed:
		return a.Kind == 0 && s.Layer == -1
	case SegMix:
		return whole && s.Layer > a.Layer
	case SegFFN, SegRoute:
		return whole && (s.Layer > a.Layer || s.Layer == a.Layer && a.Kind == SegMix)
	case SegExperts:
		return a.Kind == SegRoute && s.Layer == a.Layer
	case SegHead, SegPool:
		return whole && s.Layer == -1
	}
	return false
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

// mixture checks that segments of experts are those, and have nothing that could be computed before them.
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

// reads checks that a value was written before: in this segment, or else that the one before carries it. In the last
// segment only rows read what was carried.
func (c *checker) reads(s int, v, out Value) error {
	if v < 0 || int(v) >= len(c.writer) || c.writer[v] == unwritten || v == out {
		return fmt.Errorf("reads value %d before it is written", v)
	}
	if c.writer[v] == s {
		return nil
	}
	if !slices.Contains(c.p.Takes(s), v) {
		return fmt.Errorf("reads value %d, which %s does not carry", v, &c.p.Segments[s-1])
	}
	if c.p.Segments[s].Kind.Ends() && c.op[out] != Rows {
		return fmt.Errorf("reads value %d of all rows", v)
	}
	return nil
}

// carries checks what a segment hands to later ones: the residual stream, of a route exactly what the experts read
// instead, and besides it what the embed segment wrote.
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
	if s == len(c.p.Segments)-1 || seg.Kind == SegRoute || len(seg.Nodes) == 0 {
		return
	}
	out := seg.Stream()
	for _, v := range seg.Carries {
		if v != out && !c.p.Segments[0].writes(v) {
			c.faultf("%s carries%s, want the residual stream, %%%d, and what embed wrote", seg, list(seg.Carries), out)
		}
	}
	if !slices.Contains(seg.Carries, out) {
		c.faultf("%s carries%s, want the residual stream, %%%d", seg, list(seg.Carries), out)
	}
	if out >= 0 && int(out) < len(c.p.Widths) && c.p.Widths[out] != c.p.Width {
		c.faultf("%s ends with %d features, want %d", seg, c.p.Widths[out], c.p.Width)
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

// ends checks what the last segment leaves, and that nothing is left out.
func (c *checker) ends() {
	if n := len(c.p.Segments); n > 0 && len(c.p.Segments[n-1].Nodes) > 0 {
		last := &c.p.Segments[n-1]
		out := last.Nodes[len(last.Nodes)-1].Out
		if out != c.p.Output {
			c.faultf("the %s ends with value %d, want the %s, %d", last, out, c.p.outputName(), c.p.Output)
		}
		if last.Kind == SegHead && out >= 0 && int(out) < len(c.p.Widths) && c.p.Widths[out] != c.p.Vocab {
			c.faultf("%s ends with %d features, want %d", last, c.p.Widths[out], c.p.Vocab)
		}
	}
	if slices.Contains(c.writer, unwritten) {
		c.faultf("value %d is never written", slices.Index(c.writer, unwritten))
	}
}
