package ir

import "math"

// CausalConv convolves each channel with its weights over the last size positions, and adds the bias if the file has
// one.
func (b *Builder) CausalConv(x Value, name string, size int) Value {
	width := b.Width(x)
	n := Node{Op: CausalConv, In: []Value{x}, W: b.weight(name+".weight", width, size, Vector), B: NoRef}
	if b.Has(name + ".bias") {
		n.B = b.vector(name+".bias", width)
	}
	n.State = b.state((size - 1) * width)
	return b.add(n, width)
}

// SSMScan is Mamba-2's. decay, shift and skip are the full names of A, of what is added to δ, and of D; skip may be
// empty. A and D lie across in files: a row for each head.
func (b *Builder) SSMScan(q, k, v, delta Value, decay, shift, skip string, a ScanArgs) Value {
	a.D = NoRef
	if skip != "" {
		a.D = b.weight(skip, a.Heads, 1, Vector)
	}
	w := b.weight(decay, a.Heads, 1, Vector)
	return b.scan(Node{Op: SSMScan, In: []Value{q, k, v, delta}, W: w, Scan: &a}, shift)
}

// DeltaRule is that of gated delta networks.
func (b *Builder) DeltaRule(q, k, v, delta, beta Value, decay, shift string, a ScanArgs) Value {
	a.D = NoRef
	w := b.vector(decay, a.Heads)
	return b.scan(Node{Op: DeltaRule, In: []Value{q, k, v, delta, beta}, W: w, Scan: &a}, shift)
}

func (b *Builder) scan(n Node, shift string) Value {
	a := n.Scan
	n.B = b.vector(shift, a.Heads)
	n.State = b.state(a.Heads * a.KDim * a.VDim)
	return b.add(n, a.Heads*a.VDim)
}

// state gives a node a state of its own.
func (b *Builder) state(values int) int {
	b.p.States = append(b.p.States, StateLayer{Values: values, Class: b.class(Class{State: true})})
	return len(b.p.States) - 1
}

// L2Norm is x/√(Σx²+ε) of each head: an RMS norm of ε/n, divided by √n.
func (b *Builder) L2Norm(x Value, head int, eps float32) Value {
	n := float64(head)
	return b.Scale(b.BareHeadNorm(x, head, float32(float64(eps)/n)), float32(1/math.Sqrt(n)))
}

// RMSNormBy is RMSNorm by a weight of this complete name.
func (b *Builder) RMSNormBy(x Value, name string, eps float32) Value {
	n := b.Width(x)
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: b.vector(name, n), B: NoRef, Norm: NormArgs{Eps: eps, Group: n}})
}

// GroupNorm is an RMS norm of each of so many groups of features, with a weight for every feature, by groups.
func (b *Builder) GroupNorm(x Value, name string, groups int, eps float32) Value {
	each := b.Width(x) / max(groups, 1)
	w := b.weight(name+".weight", groups, each, Vector)
	return b.pointwise(Node{Op: Norm, In: []Value{x}, W: w, B: NoRef, Norm: NormArgs{Eps: eps, Group: each}})
}
