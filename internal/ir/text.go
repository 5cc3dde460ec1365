package ir

import (
	"fmt"
	"strings"
)

// String shows a program, one node a line, for people and for golden files:
//
//	mix 0
//	  %1[64] = norm %0  blk.0.attn_norm.weight  rms eps=1e-05
//
// What a segment carries is shown unless it is just the value of its last node.
func (p *Program) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: width %d, vocab %d, context %d\n", p.Arch, p.Width, p.Vocab, p.Context)
	for _, in := range p.Inputs {
		if in.Value != NoValue {
			fmt.Fprintf(&s, "takes %s %%%d[%d]\n", in.Name, in.Value, p.Widths[in.Value])
		}
	}
	for _, seg := range p.Segments {
		fmt.Fprintln(&s, place(seg.Kind, seg.Layer))
		for i := range seg.Nodes {
			p.node(&s, &seg.Nodes[i])
		}
		if seg.Kind == SegRoute || len(seg.Carries) > 1 {
			fmt.Fprintln(&s, "  carries"+list(seg.Carries))
		}
	}
	for _, out := range p.Outputs {
		fmt.Fprintf(&s, "%s %%%d\n", out.Name, out.Value)
	}
	for _, name := range p.Ignore {
		fmt.Fprintf(&s, "ignores %s\n", name)
	}
	return s.String()
}

// list shows values, each after a space.
func list(values []Value) string {
	var s strings.Builder
	for _, v := range values {
		fmt.Fprintf(&s, " %%%d", v)
	}
	return s.String()
}

func (p *Program) node(s *strings.Builder, n *Node) {
	fmt.Fprintf(s, "  %%%d[%d] = %s%s", n.Out, p.Widths[n.Out], n.Op, list(n.In))
	for _, r := range n.Weights() {
		fmt.Fprintf(s, "  %s", p.Weights[r].Name)
	}
	if o := operations[n.Op]; o.args != nil {
		s.WriteString("  " + o.args(n))
	}
	s.WriteByte('\n')
}

// String is the segment's role.
func (k SegmentKind) String() string {
	names := [...]string{
		SegEmbed: "embed", SegMix: "mix", SegFFN: "ffn", SegRoute: "route", SegExperts: "experts", SegHead: "head",
		SegPool: "pool", SegBlock: "block",
	}
	if k == 0 || int(k) >= len(names) {
		return fmt.Sprintf("segment kind %d", uint8(k))
	}
	return names[k]
}

// String is "mix 3", or "head".
func (s *Segment) String() string { return place(s.Kind, s.Layer) }

func place(kind SegmentKind, layer int) string {
	if layer < 0 {
		return kind.String()
	}
	return fmt.Sprintf("%s %d", kind, layer)
}
