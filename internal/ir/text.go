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
// What a segment carries is shown where it is not the value of its last node alone.
func (p *Program) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: width %d, vocab %d, context %d\n", p.Arch, p.Width, p.Vocab, p.Context)
	for _, seg := range p.Segments {
		fmt.Fprintln(&s, place(seg.Kind, seg.Layer))
		for i := range seg.Nodes {
			p.node(&s, &seg.Nodes[i])
		}
		if seg.Kind == SegRoute || len(seg.Carries) > 1 {
			fmt.Fprintln(&s, "  carries"+list(seg.Carries))
		}
	}
	fmt.Fprintf(&s, "%s %%%d\n", p.outputName(), p.Output)
	for _, name := range p.Ignore {
		fmt.Fprintf(&s, "ignores %s\n", name)
	}
	return s.String()
}

// outputName says what the last segment leaves.
func (p *Program) outputName() string {
	if n := len(p.Segments); n > 0 && p.Segments[n-1].Kind == SegPool {
		return "vectors"
	}
	return "logits"
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
	if args := n.args(); args != "" {
		s.WriteString("  " + args)
	}
	s.WriteByte('\n')
}

// args shows the fields that count for the Op.
func (n *Node) args() string {
	switch n.Op {
	case Norm:
		kind := "rms"
		if n.Norm.Layer {
			kind = "layer"
		}
		return fmt.Sprintf("%s eps=%g group=%d", kind, n.Norm.Eps, n.Norm.Group)
	case RoPE:
		return n.RoPE.String()
	case Attend:
		a := n.Attend
		s := fmt.Sprintf("kv=%d heads=%d/%d dims=%d/%d scale=%g cap=%g window=%d",
			a.KV, a.Heads, a.KVHeads, a.KDim, a.VDim, a.Scale, a.SoftCap, a.Window)
		if a.Chunked {
			s += " chunked"
		}
		if a.Both {
			s += " both"
		}
		return s
	case GLU:
		return n.Act.String()
	case Route:
		return n.Route.String()
	case Experts:
		s := fmt.Sprintf("%s used=%d", n.Act, n.Experts.Used)
		if n.Experts.Before {
			s += " before"
		}
		return s
	case Scale, SoftCap:
		return fmt.Sprintf("%g", n.Factor)
	case Temper:
		return fmt.Sprintf("%g every=%d", n.Factor, n.Every)
	case HeadLinear, HeadJoin:
		return fmt.Sprintf("heads=%d", n.Heads)
	case HeadSlice:
		return fmt.Sprintf("heads=%d from=%d", n.Heads, n.From)
	case CausalConv:
		return fmt.Sprintf("state=%d", n.State)
	case SSMScan, DeltaRule:
		return fmt.Sprintf("state=%d %s", n.State, n.Scan)
	case TokenType:
		return fmt.Sprintf("sep=%d", n.Sep)
	case Slice:
		return fmt.Sprintf("from=%d", n.From)
	}
	return ""
}

// String shows the first and last frequency; the others lie between them.
func (a *RoPEArgs) String() string {
	pairs := "halves"
	if a.Interleaved {
		pairs = "neighbours"
	}
	first, last := 0.0, 0.0
	if n := len(a.Freq); n > 0 {
		first, last = a.Freq[0], a.Freq[n-1]
	}
	return fmt.Sprintf("heads=%d dims=%d/%d %s freq=%.6g..%.6g mscale=%g",
		a.Heads, a.Dims, a.HeadDim, pairs, first, last, a.Mscale)
}

// String shows the sizes.
func (a *ScanArgs) String() string {
	s := fmt.Sprintf("heads=%d/%d dims=%d/%d scale=%g", a.Heads, a.Groups, a.KDim, a.VDim, a.Scale)
	if a.Tiled {
		s += " tiled"
	}
	return s
}

// String shows the choice, then what is done to the weights.
func (a *RouteArgs) String() string {
	s := fmt.Sprintf("%s used=%d", a.Scoring, a.Used)
	if a.Groups > 0 {
		s += fmt.Sprintf(" groups=%d/%d by %d", a.GroupsUsed, a.Groups, a.GroupBest)
	}
	return s + fmt.Sprintf(" normalise=%t scale=%g", a.Normalise, a.Scale)
}

// String is the function's name.
func (s Scoring) String() string {
	names := [...]string{SoftmaxAll: "softmax", SoftmaxChosen: "softmax-chosen", SigmoidEach: "sigmoid",
		SparseMixer: "sparse-mixer"}
	if s == 0 || int(s) >= len(names) {
		return fmt.Sprintf("scoring %d", uint8(s))
	}
	return names[s]
}

// String is the function's name.
func (a Act) String() string {
	names := [...]string{
		SiLU: "silu", GELU: "gelu", GELUErf: "gelu-erf", ReLU2: "relu²", Sigmoid: "sigmoid", Clamped: "clamped",
	}
	if a == 0 || int(a) >= len(names) {
		return fmt.Sprintf("activation %d", uint8(a))
	}
	return names[a]
}

// String is the segment's role.
func (k SegmentKind) String() string {
	names := [...]string{
		SegEmbed: "embed", SegMix: "mix", SegFFN: "ffn", SegRoute: "route", SegExperts: "experts", SegHead: "head",
		SegPool: "pool",
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
