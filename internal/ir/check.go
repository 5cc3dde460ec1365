package ir

import (
	"errors"
	"fmt"
	"slices"
)

// Check says what is wrong with a program, all of it, or nil. It is run after recording and by devices' tests
// after rewriting; a fault here is a bug of ours, except where a file's numbers contradict each other.
func Check(p *Program) error {
	c := checker{p: p, writer: make([]int, len(p.Widths)), used: make([]bool, len(p.Weights))}
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
	p      *Program
	writer []int  // segment that wrote a Value
	used   []bool // by Ref
	faults []error
}

func (c *checker) faultf(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// order checks that segments are embed, then mix and ffn for each layer, then head.
func (c *checker) order() {
	last := len(c.p.Segments) - 1
	for i, s := range c.p.Segments {
		kind, layer := SegMix, (i-1)/2
		switch {
		case i == 0:
			kind, layer = SegEmbed, -1
		case i == last:
			kind, layer = SegHead, -1
		case i%2 == 0:
			kind = SegFFN
		}
		if s.Kind != kind || s.Layer != layer {
			c.faultf("segment %d is %s, want %s", i, place(s.Kind, s.Layer), place(kind, layer))
		}
	}
	if last < 1 || last%2 == 0 {
		c.faultf("%d segments, want embed, two for each layer, and head", last+1)
	}
}

func (c *checker) segment(s int) {
	seg := &c.p.Segments[s]
	if len(seg.Nodes) == 0 {
		c.faultf("%s: no nodes", place(seg.Kind, seg.Layer))
		return
	}
	for i := range seg.Nodes {
		n := &seg.Nodes[i]
		if err := c.node(s, i, n); err != nil {
			c.faultf("%s, node %d, %s: %w", place(seg.Kind, seg.Layer), i, n.Op, err)
		}
	}
}

func (c *checker) node(s, i int, n *Node) error {
	if n.Op == 0 || n.Op >= lastOp {
		return errors.New("unknown")
	}
	rule := &rules[n.Op]
	if n.Out < 0 || int(n.Out) >= len(c.writer) {
		return fmt.Errorf("writes value %d of %d", n.Out, len(c.writer))
	}
	if c.writer[n.Out] != unwritten {
		return fmt.Errorf("writes value %d a second time", n.Out)
	}
	c.writer[n.Out] = s
	if len(n.In) < rule.inputs[0] || len(n.In) > rule.inputs[1] {
		return fmt.Errorf("%d inputs, want %d to %d", len(n.In), rule.inputs[0], rule.inputs[1])
	}
	for _, v := range n.In {
		if err := c.reads(s, v, n.Out); err != nil {
			return err
		}
	}
	if (n.Op == Rows) != (c.p.Segments[s].Kind == SegHead && i == 0) {
		return errors.New("the head, and only the head, starts with rows")
	}
	if err := errors.Join(c.weight(n.W, rule.w, rule.use), c.weight(n.B, rule.b, Vector), c.experts(n)); err != nil {
		return err
	}
	return rule.fits(c.p, n)
}

// reads checks that a value was written before, in this segment or, as the residual stream, by the last node of
// the one before it.
func (c *checker) reads(s int, v, out Value) error {
	if v < 0 || int(v) >= len(c.writer) || c.writer[v] == unwritten || v == out {
		return fmt.Errorf("reads value %d before it is written", v)
	}
	if c.writer[v] == s {
		return nil
	}
	nodes := c.p.Segments[s-1].Nodes
	if len(nodes) == 0 || nodes[len(nodes)-1].Out != v {
		return fmt.Errorf("reads value %d, which did not outlive its segment", v)
	}
	return nil
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

// experts checks the weights that only this op has.
func (c *checker) experts(n *Node) error {
	e := n.Experts
	if (n.Op == Experts) != (e != nil) {
		return errors.New("experts, and only experts, have their arguments")
	}
	if e == nil {
		return nil
	}
	return errors.Join(
		c.weight(e.Gate, required, Matrix), c.weight(e.Up, required, Matrix), c.weight(e.Down, required, Matrix),
		c.weight(e.GateBias, optional, Vector), c.weight(e.UpBias, optional, Vector),
		c.weight(e.DownBias, optional, Vector))
}

// ends checks what the segments hand to each other and to the sampler.
func (c *checker) ends() {
	for i, s := range c.p.Segments {
		if len(s.Nodes) == 0 {
			continue
		}
		want, out := c.p.Width, s.Nodes[len(s.Nodes)-1].Out
		if i == len(c.p.Segments)-1 {
			want = c.p.Vocab
			if out != c.p.Logits {
				c.faultf("the head ends with value %d, want the logits, %d", out, c.p.Logits)
			}
		}
		if out >= 0 && int(out) < len(c.p.Widths) && c.p.Widths[out] != want {
			c.faultf("%s ends with %d features, want %d", place(s.Kind, s.Layer), c.p.Widths[out], want)
		}
	}
	if slices.Contains(c.writer, unwritten) {
		c.faultf("value %d is never written", slices.Index(c.writer, unwritten))
	}
}
