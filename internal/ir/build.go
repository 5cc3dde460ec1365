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
// Embed opens the embed segment, Layer a layer's mix segment, FFN its feed-forward segment, Rows the head, Pool a pool.
// Experts turns the feed-forward segment so far into a route segment, and opens the experts' segment. A segment without
// nodes is left out: a layer may lack one. A program that is no text has an Input and blocks.
type Builder struct {
	p      Program
	has    func(name string) bool
	refs   map[string]Ref
	at     string  // prefix of weight names: "" or "blk.N."
	adapts bool    // see Adaptable
	next   Segment // opened, and without nodes; its kind is 0 if there is none
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

// Has says whether the file holds a tensor; name is relative to the layer, and has its ending, as "attn_q.bias".
func (b *Builder) Has(name string) bool { return b.has != nil && b.has(b.at+name) }

// Ignore declares tensors that a file may hold though the program does not use them, by full names; a name that ends in
// a dot stands for all names that begin with it.
func (b *Builder) Ignore(names ...string) { b.p.Ignore = append(b.p.Ignore, names...) }

// Layer opens the mix segment of layer l.
func (b *Builder) Layer(l int) {
	b.at = "blk." + strconv.Itoa(l) + "."
	b.open(SegMix, l)
}

// Within has names of the layer's weights begin otherwise from here on: with a prefix, which ends in a dot, or nothing.
func (b *Builder) Within(prefix string) { b.at = prefix }

// Ahead has what is recorded next name its weights as layer l does, in the segment that is open: what later layers read
// of a layer is computed with the embedding.
func (b *Builder) Ahead(l int) { b.at = "blk." + strconv.Itoa(l) + "." }

// FFN opens the feed-forward segment of the current layer.
func (b *Builder) FFN() { b.open(SegFFN, b.segment().Layer) }

// Part declares that the file's other tensors belong to another program.
func (b *Builder) Part() { b.p.Part = true }

// Parted says whether Part was called.
func (b *Builder) Parted() bool { return b.p.Part }

// IgnoreLayer declares that the file may hold a layer l that the program has no use for.
func (b *Builder) IgnoreLayer(l int) { b.Ignore("blk." + strconv.Itoa(l) + ".") }

// Rows opens the head: from here on, rows are those whose logits are wanted.
func (b *Builder) Rows(x Value) Value { return b.wanted(SegHead, x) }

// Pool opens a pool: from here on, rows are those whose vectors are wanted, such as the last of each text.
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
	return b.Logits(b.Linear(x, output, b.p.Columns()))
}

// Knows has the head compute logits for some tokens only, a column for each. nil: for all.
func (b *Builder) Knows(tokens []int32) { b.p.Known = tokens }

// Pooling sets how rows become vectors.
func (b *Builder) Pooling(kind Pooling) { b.p.Pooling = kind }

// Logits ends the program with x, for heads that compute something after the product.
func (b *Builder) Logits(x Value) Value { return b.end("logits", x) }

// Vectors ends a pooling program with x.
func (b *Builder) Vectors(x Value) Value { return b.end("vectors", x) }

// end makes x the first output, in place of an earlier end.
func (b *Builder) end(name string, x Value) Value {
	b.p.Outputs = slices.DeleteFunc(b.p.Outputs, func(out Output) bool { return out.Name == name })
	b.p.Outputs = slices.Insert(b.p.Outputs, 0, Output{name, x})
	return x
}

// Output hands x out by a name: hidden states, another head, a picture.
func (b *Builder) Output(name string, x Value) Value {
	b.p.Outputs = append(b.p.Outputs, Output{name, x})
	return x
}

// Input declares rows of width floats that every step brings. grid says that they are pictures, line by line.
func (b *Builder) Input(name string, width int, grid bool) Value {
	v := Value(len(b.p.Widths))
	b.p.Widths = append(b.p.Widths, width)
	b.p.Inputs = append(b.p.Inputs, Input{name, v})
	if grid {
		b.p.Grid, b.p.Whole = true, true
	}
	return v
}

// Block opens a segment of a program that is no text. Names of its weights are complete.
func (b *Builder) Block() {
	b.at = ""
	b.open(SegBlock, len(b.p.Segments))
}

// Stream declares that the residual stream is as wide as x, not as the embedding, and returns x.
func (b *Builder) Stream(x Value) Value {
	b.p.Width = b.Width(x)
	return x
}

// class is the number of a cache class.
func (b *Builder) class(c Class) int {
	if i := slices.Index(b.p.Classes, c); i >= 0 {
		return i
	}
	b.p.Classes = append(b.p.Classes, c)
	return len(b.p.Classes) - 1
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

// carry sets what each segment carries.
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

// state gives a node a state of its own, of so many float32, and returns its number.
func (b *Builder) state(values int) int {
	b.p.States = append(b.p.States, StateLayer{Values: values, Class: b.class(Class{State: true})})
	return len(b.p.States) - 1
}
