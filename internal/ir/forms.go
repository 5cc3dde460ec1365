package ir

import (
	"fmt"
	"slices"
)

// Form is what a program is for: which segments follow which, and what it takes and leaves.
type Form uint8

const (
	Decoder Form = iota + 1 // token ids in, logits of the wanted rows out
	Encoder                 // token ids in, vectors of the wanted rows out
	Blocks                  // rows of floats in and out: a tower, a picture's parts
)

// forms has a check for each form; Check itself checks what holds for every program.
var forms = [...]struct {
	name  string
	check func(c *checker)
}{
	Decoder: {"decoder", (*checker).decoder}, Encoder: {"encoder", (*checker).encoder}, Blocks: {"blocks", (*checker).blocks},
}

// String is the form's name.
func (f Form) String() string {
	if f == 0 || int(f) >= len(forms) {
		return fmt.Sprintf("form %d", uint8(f))
	}
	return forms[f].name
}

// Form finds the program's form from its segments.
func (p *Program) Form() Form {
	switch n := len(p.Segments); {
	case slices.ContainsFunc(p.Segments, func(s Segment) bool { return s.Kind == SegBlock }):
		return Blocks
	case n > 0 && p.Segments[n-1].Kind == SegPool:
		return Encoder
	}
	return Decoder
}

func (c *checker) decoder() {
	c.text("logits")
	if end := c.p.End(); end >= 0 && int(end) < len(c.p.Widths) && c.p.Widths[end] != c.p.Columns() {
		c.faultf("%s ends with %d features, want %d", &c.p.Segments[len(c.p.Segments)-1], c.p.Widths[end], c.p.Columns())
	}
	c.known()
}

// known checks which tokens the columns of the logits are of.
func (c *checker) known() {
	there := make(map[int32]bool, len(c.p.Known))
	for i, token := range c.p.Known {
		if token < 0 || int(token) >= c.p.Vocab || there[token] {
			c.faultf("column %d of the logits is token %d's, want tokens from 0 to %d, each once", i, token, c.p.Vocab-1)
			return
		}
		there[token] = true
	}
}

func (c *checker) encoder() { c.text("vectors") }

// text checks a chain of embed, layers in ascending order, and head or pool. A layer has a mix or none, then a
// feed-forward part or none: an ffn, or a route and its experts. They hand on a residual stream.
func (c *checker) text(leaves string) {
	c.order()
	for s := range c.p.Segments {
		c.stream(s)
	}
	n := len(c.p.Segments)
	if n == 0 || len(c.p.Segments[n-1].Nodes) == 0 {
		return
	}
	last, end := &c.p.Segments[n-1], NoValue
	if len(c.p.Outputs) > 0 {
		end = c.p.Outputs[0].Value
	}
	if out := last.Stream(); out != end || c.p.Outputs[0].Name != leaves {
		c.faultf("the %s ends with value %d, want the %s, %d", last, out, leaves, end)
	}
}

// blocks checks a program whose segments are blocks: all its rows are the step's, and what it leaves has a name.
func (c *checker) blocks() {
	for s := range c.p.Segments {
		if seg := &c.p.Segments[s]; seg.Kind != SegBlock || seg.Layer != s {
			c.faultf("segment %d is %s, want block %d", s, seg, s)
		}
	}
	if c.p.TakesTokens() || len(c.p.Inputs) == 0 {
		c.faultf("%d inputs, want rows of floats and no token ids", len(c.p.Inputs))
	}
	if len(c.p.Outputs) == 0 {
		c.faultf("no outputs")
	}
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

// follows says whether s may come after segment a, whose kind is 0 if s is the first.
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

// stream checks that a segment carries the residual stream, or a route exactly what the experts read instead; and
// besides only values that the embed segment wrote, and outputs.
func (c *checker) stream(s int) {
	seg := &c.p.Segments[s]
	if s == len(c.p.Segments)-1 || seg.Kind == SegRoute || len(seg.Nodes) == 0 {
		return
	}
	out := seg.Stream()
	for _, v := range seg.Carries {
		named := slices.ContainsFunc(c.p.Outputs, func(o Output) bool { return o.Value == v })
		if v != out && !named && !c.p.Segments[0].writes(v) {
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
