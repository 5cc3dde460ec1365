package ir

import (
	"fmt"
	"slices"
	"strconv"
)

// Builder records a program: every method adds one node and returns its output. Weights are named as in the
// file, without ".weight" and, inside a layer, without "blk.N."; each one is recorded with the shape it must
// have, and Bind compares. Nothing is checked here: Program runs Check on the whole.
//
// Embed opens the embed segment, Layer a mix, FFN the feed-forward part of the same layer, Rows the head, Pool a
// pool. Experts makes a route of the feed-forward part so far, and opens the experts. A segment without nodes is
// left out, and with it what a layer does not have.
type Builder struct {
	p    Program
	has  func(name string) bool
	refs map[string]Ref
	at   string  // prefix of weight names: "" or "blk.N."
	next Segment // opened, and without nodes; its kind is 0 if there is none
}

// NewBuilder starts a program. has says which tensors the file holds, for those that are optional.
func NewBuilder(arch string, has func(name string) bool) *Builder {
	return &Builder{p: Program{Arch: arch}, has: has, refs: map[string]Ref{}}
}

// Program ends the recording. context is the number of positions the model was trained for.
func (b *Builder) Program(context int) (*Program, error) {
	b.p.Context = context
	b.carry()
	if err := Check(&b.p); err != nil {
		return nil, err
	}
	return &b.p, nil
}

// Has says whether the file holds a tensor; name is relative to the layer and complete, as "attn_q.bias".
func (b *Builder) Has(name string) bool { return b.has != nil && b.has(b.at+name) }

// Ignore declares tensors that a file may hold without the program using them, by their full names, or all whose names
// begin with what ends in a dot.
func (b *Builder) Ignore(names ...string) { b.p.Ignore = append(b.p.Ignore, names...) }

// Layer opens the mix segment of layer l.
func (b *Builder) Layer(l int) {
	b.at = "blk." + strconv.Itoa(l) + "."
	b.open(SegMix, l)
}

// FFN opens the feed-forward segment of the current layer.
func (b *Builder) FFN() { b.open(SegFFN, b.segment().Layer) }

// IgnoreLayer declares that the file may hold a layer l that the program has no use for.
func (b *Builder) IgnoreLayer(l int) { b.Ignore("blk." + strconv.Itoa(l) + ".") }

// Embed opens the program: the residual stream is the rows of the vocab × width table.
func (b *Builder) Embed(name string, vocab, width int) Value {
	b.p.Vocab, b.p.Width = vocab, width
	b.open(SegEmbed, -1)
	return b.add(Node{Op: Embed, W: b.weight(name+".weight", vocab, width, Table), B: NoRef}, width)
}

// Lookup is the rows of another table of as many tokens.
func (b *Builder) Lookup(name string, width int) Value {
	return b.add(Node{Op: Embed, W: b.weight(name+".weight", b.p.Vocab, width, Table), B: NoRef}, width)
}

// Rows opens the head: from here on rows are those whose logits are wanted.
func (b *Builder) Rows(x Value) Value { return b.wanted(SegHead, x) }

// Pool opens a pool: from here on rows are those whose vectors are wanted, such as the last of each text.
func (b *Builder) Pool(x Value) Value { return b.wanted(SegPool, x) }

func (b *Builder) wanted(kind SegmentKind, x Value) Value {
	b.at = ""
	b.open(kind, -1)
	return b.pointwise(Node{Op: Rows, In: []Value{x}})
}

// Head multiplies by the output matrix, or by the embedding table where the file has none (a tied head).
func (b *Builder) Head(x Value, output, embedding string) Value {
	if !b.Has(output + ".weight") {
		output = embedding
	}
	return b.Logits(b.Linear(x, output, b.p.Vocab))
}

// Logits ends the program with x, for heads that do something to the product.
func (b *Builder) Logits(x Value) Value {
	b.p.Output = x
	return x
}

// Vectors ends a program that pools with x.
func (b *Builder) Vectors(x Value) Value {
	b.p.Output = x
	return x
}

// Linear multiplies by the matrix name of out rows, and adds its bias if the file has one.
func (b *Builder) Linear(x Value, name string, out int) Value {
	bias := NoRef
	if b.Has(name + ".bias") {
		bias = b.vector(name+".bias", out)
	}
	return b.linear(x, name, out, bias)
}

// LinearBias is Linear with a bias that must be there.
func (b *Builder) LinearBias(x Value, name string, out int) Value {
	return b.linear(x, name, out, b.vector(name+".bias", out))
}

func (b *Builder) linear(x Value, name string, out int, bias Ref) Value {
	w := b.weight(name+".weight", out, b.Width(x), Matrix)
	return b.add(Node{Op: Linear, In: []Value{x}, W: w, B: bias}, out)
}

// RMSNorm normalises whole rows.
func (b *Builder) RMSNorm(x Value, name string, eps float32) Value {
	return b.norm(x, name, NormArgs{Eps: eps, Group: b.Width(x)})
}

// HeadNorm normalises each head of head features on its own, all with the same weight.
func (b *Builder) HeadNorm(x Value, name string, head int, eps float32) Value {
	return b.norm(x, name, NormArgs{Eps: eps, Group: head})
}

// BareHeadNorm is HeadNorm without a weight.
func (b *Builder) BareHeadNorm(x Value, head int, eps float32) Value {
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: NoRef, B: NoRef, Norm: NormArgs{Eps: eps, Group: head}})
}

// LayerNorm normalises whole rows to mean 0 and variance 1, with weight and bias.
func (b *Builder) LayerNorm(x Value, name string, eps float32) Value {
	n := b.Width(x)
	return b.pointwise(Node{
		Op: Norm, In: []Value{x}, W: b.vector(name+".weight", n), B: b.vector(name+".bias", n),
		Norm: NormArgs{Layer: true, Eps: eps, Group: n},
	})
}

// LayerNormNoBias is LayerNorm with a weight alone.
func (b *Builder) LayerNormNoBias(x Value, name string, eps float32) Value {
	return b.norm(x, name, NormArgs{Layer: true, Eps: eps, Group: b.Width(x)})
}

func (b *Builder) norm(x Value, name string, a NormArgs) Value {
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: b.vector(name+".weight", a.Group), B: NoRef, Norm: a})
}

// Rope rotates all heads of x. a.Heads is derived from the width of x. factors is the full name of a tensor
// with divisors of the frequencies, or empty.
func (b *Builder) Rope(x Value, a RoPEArgs, factors string) Value {
	n := Node{Op: RoPE, In: []Value{x}, W: NoRef, B: NoRef, RoPE: &a}
	if a.HeadDim > 0 {
		a.Heads = b.Width(x) / a.HeadDim
	}
	if factors != "" {
		n.W = b.intern(factors, 1, a.Dims/2, Vector)
	}
	return b.add(n, b.Width(x))
}

// Attend gives the layer its KV cache and attends to it. a.KV is set here.
func (b *Builder) Attend(q, k, v Value, a AttendArgs) Value {
	a.KV = len(b.p.KV)
	b.p.Whole = b.p.Whole || a.Both
	b.p.KV = append(b.p.KV, KVLayer{KVHeads: a.KVHeads, KDim: a.KDim, VDim: a.VDim, Class: b.class(a.Class())})
	return b.add(Node{Op: Attend, In: []Value{q, k, v}, W: NoRef, B: NoRef, Attend: &a}, a.Heads*a.VDim)
}

// class is the number of a cache class.
func (b *Builder) class(c Class) int {
	if i := slices.Index(b.p.Classes, c); i >= 0 {
		return i
	}
	b.p.Classes = append(b.p.Classes, c)
	return len(b.p.Classes) - 1
}

// AttendSinks is Attend with a sink for each head, the vector name.
func (b *Builder) AttendSinks(q, k, v Value, name string, a AttendArgs) Value {
	out := b.Attend(q, k, v, a)
	nodes := b.segment().Nodes
	nodes[len(nodes)-1].W = b.vector(name+".weight", a.Heads)
	return out
}

// AttendShared attends to the cache that an earlier Attend filled, whose output is filled. a.KV is set here.
func (b *Builder) AttendShared(q, filled Value, a AttendArgs) Value {
	for i := range b.p.Segments {
		for _, n := range b.p.Segments[i].Nodes {
			if n.Op == Attend && n.Out == filled {
				a.KV = n.Attend.KV
			}
		}
	}
	return b.add(Node{Op: Attend, In: []Value{q}, W: NoRef, B: NoRef, Attend: &a}, a.Heads*a.VDim)
}

// Route chooses experts by their logits. bias is the name of what only the choice sees, or empty.
func (b *Builder) Route(logits Value, bias string, a RouteArgs) Value {
	n := Node{Op: Route, In: []Value{logits}, W: NoRef, B: NoRef, Route: &a}
	if bias != "" {
		n.B = b.vector(bias+".bias", b.Width(logits))
	}
	return b.add(n, b.Width(logits))
}

// RouteScaled is Route whose weights are multiplied by a vector, of the complete name, at last.
func (b *Builder) RouteScaled(logits Value, scale string, a RouteArgs) Value {
	w := b.vector(scale, b.Width(logits))
	return b.add(Node{Op: Route, In: []Value{logits}, W: w, B: NoRef, Route: &a}, b.Width(logits))
}

// Experts is the gated feed-forward networks of ffn features that Route chose, at most used for each row, summed by
// its weights. The names are those of the stacked matrices; each one's bias is added if the file has it. What all
// rows share is recorded before, and so is part of the route. Gate and up of one name are one stack: see ExpertsArgs.
func (b *Builder) Experts(x, weights Value, gate, up, down string, ffn, used int, act Act) Value {
	return b.experts(x, weights, [3]string{gate, up, down}, ffn, act, ExpertsArgs{Used: used})
}

// ExpertsBefore is Experts whose weights multiply what goes into the networks. They have no biases.
func (b *Builder) ExpertsBefore(x, weights Value, gate, up, down string, ffn, used int, act Act) Value {
	return b.experts(x, weights, [3]string{gate, up, down}, ffn, act, ExpertsArgs{Used: used, Before: true})
}

func (b *Builder) experts(x, weights Value, names [3]string, ffn int, act Act, e ExpertsArgs) Value {
	if s := b.segment(); s.Kind == SegFFN {
		s.Kind = SegRoute
	}
	b.open(SegExperts, b.segment().Layer)
	width, n := b.Width(x), b.Width(weights)
	if joined := names[0] == names[1]; joined {
		e.Gate, e.GateBias = b.stack(names[0], n, 2*ffn, width, false)
		e.Up, e.UpBias = e.Gate, NoRef
	} else {
		e.Gate, e.GateBias = b.stack(names[0], n, ffn, width, !e.Before)
		e.Up, e.UpBias = b.stack(names[1], n, ffn, width, !e.Before)
	}
	e.Down, e.DownBias = b.stack(names[2], n, width, ffn, !e.Before)
	return b.add(Node{Op: Experts, In: []Value{x, weights}, W: NoRef, B: NoRef, Act: act, Experts: &e}, width)
}

// stack names the matrices of experts, rows × cols each, and their biases, if they may have them.
func (b *Builder) stack(name string, experts, rows, cols int, biased bool) (w, bias Ref) {
	w, bias = b.weight(name+".weight", experts*rows, cols, Matrix), NoRef
	b.p.Weights[w].Experts = experts
	if biased && b.Has(name+".bias") {
		bias = b.weight(name+".bias", experts, rows, Vector)
	}
	return w, bias
}

// SwiGLU is silu(gate)·up.
func (b *Builder) SwiGLU(gate, up Value) Value { return b.GLU(SiLU, gate, up) }

// GLU is act(gate)·up.
func (b *Builder) GLU(act Act, gate, up Value) Value {
	return b.pointwise(Node{Op: GLU, In: []Value{gate, up}, Act: act})
}

// Act is act(x).
func (b *Builder) Act(act Act, x Value) Value {
	return b.pointwise(Node{Op: GLU, In: []Value{x}, Act: act})
}

// Add is x + y.
func (b *Builder) Add(x, y Value) Value { return b.pointwise(Node{Op: Add, In: []Value{x, y}}) }

// Mul is x · y, feature by feature, or the whole row by the only feature of y.
func (b *Builder) Mul(x, y Value) Value { return b.pointwise(Node{Op: Mul, In: []Value{x, y}}) }

// Scale is factor·x; a factor of 1 records nothing.
func (b *Builder) Scale(x Value, factor float32) Value {
	if factor == 1 {
		return x
	}
	return b.pointwise(Node{Op: Scale, In: []Value{x}, Factor: factor})
}

// SoftCap limits x smoothly to ±limit; a limit of 0 records nothing.
func (b *Builder) SoftCap(x Value, limit float32) Value {
	if limit == 0 {
		return x
	}
	return b.pointwise(Node{Op: SoftCap, In: []Value{x}, Factor: limit})
}

// Temper multiplies x by 1 + factor·ln(1+⌊(position+1)/every⌋): far rows attend more sharply.
func (b *Builder) Temper(x Value, factor float32, every int) Value {
	return b.pointwise(Node{Op: Temper, In: []Value{x}, Factor: factor, Every: every})
}

// Slice is the features [from, from+width) of x.
func (b *Builder) Slice(x Value, from, width int) Value {
	return b.add(Node{Op: Slice, In: []Value{x}, W: NoRef, B: NoRef, From: from}, width)
}

// HeadLinear multiplies each of so many parts of a row by a matrix of its own, of out rows; they are stacked under one
// name.
func (b *Builder) HeadLinear(x Value, name string, heads, out int) Value {
	w := b.weight(name+".weight", heads*out, b.Width(x)/max(heads, 1), Matrix)
	b.p.Weights[w].Heads = heads
	return b.add(Node{Op: HeadLinear, In: []Value{x}, W: w, B: NoRef, Heads: heads}, heads*out)
}

// HeadSlice is the features [from, from+width) of each of so many parts of a row.
func (b *Builder) HeadSlice(x Value, heads, from, width int) Value {
	return b.add(Node{Op: HeadSlice, In: []Value{x}, W: NoRef, B: NoRef, Heads: heads, From: from}, heads*width)
}

// HeadJoin puts the parts of y behind those of x, part by part.
func (b *Builder) HeadJoin(x, y Value, heads int) Value {
	return b.add(Node{Op: HeadJoin, In: []Value{x, y}, W: NoRef, B: NoRef, Heads: heads}, b.Width(x)+b.Width(y))
}

// HeadJoinShared puts all of y behind each part of x.
func (b *Builder) HeadJoinShared(x, y Value, heads int) Value {
	width := b.Width(x) + heads*b.Width(y)
	return b.add(Node{Op: HeadJoin, In: []Value{x, y}, W: NoRef, B: NoRef, Heads: heads}, width)
}

// Width is the number of features of a value.
func (b *Builder) Width(x Value) int {
	if x < 0 || int(x) >= len(b.p.Widths) {
		panic(fmt.Sprintf("ir: value %d was not recorded by this builder", x))
	}
	return b.p.Widths[x]
}

// pointwise adds a node whose output is as wide as its first input. Nodes other than Norm have no weights.
func (b *Builder) pointwise(n Node) Value {
	if n.Op != Norm {
		n.W, n.B = NoRef, NoRef
	}
	return b.add(n, b.Width(n.In[0]))
}

func (b *Builder) add(n Node, width int) Value {
	if b.next.Kind != 0 {
		b.p.Segments = append(b.p.Segments, b.next)
		b.next = Segment{}
	}
	n.Out = Value(len(b.p.Widths))
	b.p.Widths = append(b.p.Widths, width)
	s := b.segment()
	s.Nodes = append(s.Nodes, n)
	return n.Out
}

// open begins a segment with the node that is recorded next.
func (b *Builder) open(kind SegmentKind, layer int) { b.next = Segment{Kind: kind, Layer: layer} }

// segment is the one that was opened last.
func (b *Builder) segment() *Segment {
	if n := len(b.p.Segments); b.next.Kind == 0 && n > 0 {
		return &b.p.Segments[n-1]
	}
	return &b.next
}

// carry lists what segments hand on.
func (b *Builder) carry() {
	for i, values := range b.p.carried() {
		b.p.Segments[i].Carries = values
	}
}

func (b *Builder) vector(name string, n int) Ref { return b.weight(name, 1, n, Vector) }

// weight names a weight of the current layer. Outside layers, and for the embedding table, names are complete.
func (b *Builder) weight(name string, rows, cols int, use Use) Ref {
	return b.intern(b.at+name, rows, cols, use)
}

// intern gives the same Ref to the same tensor. Two uses that disagree about its shape are two weights: Bind
// then reports the one that the file contradicts.
func (b *Builder) intern(name string, rows, cols int, use Use) Ref {
	if r, ok := b.refs[name]; ok && b.p.Weights[r].Rows == rows && b.p.Weights[r].Cols == cols {
		b.p.Weights[r].Use |= use
		return r
	}
	r := Ref(len(b.p.Weights))
	b.refs[name] = r
	b.p.Weights = append(b.p.Weights, Weight{Name: name, Rows: rows, Cols: cols, Use: use})
	return r
}
