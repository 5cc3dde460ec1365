package ir

import "slices"

// Only is the program reduced to some segments: numbers of segments, weights, values and caches stay, the nodes of the
// other segments are left out. nil is all segments.
func (b *Bound) Only(segments []int) *Bound {
	if segments == nil {
		return b
	}
	p := *b.Program
	p.Segments = slices.Clone(p.Segments)
	for i := range p.Segments {
		if !slices.Contains(segments, i) {
			p.Segments[i].Nodes = nil
		}
	}
	part := *b
	part.Program = &p
	return &part
}

// Used says which weights, caches and states the nodes of the program name. In a program that Only reduced they are
// fewer.
func (p *Program) Used() (weights, caches, states []bool) {
	weights, caches, states = make([]bool, len(p.Weights)), make([]bool, len(p.KV)), make([]bool, len(p.States))
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			for _, r := range n.Weights() {
				weights[r] = true
			}
			if n.Op == Attend {
				caches[n.Attend.KV] = true
			}
			if n.Op.KeepsState() {
				states[n.State] = true
			}
		}
	}
	return weights, caches, states
}

// Taken lists the values that the nodes read and none of them writes: those that segments which Only left out hand on.
func (p *Program) Taken() []Value {
	written := make([]bool, len(p.Widths))
	var taken []Value
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			n := &p.Segments[s].Nodes[i]
			for _, v := range n.In {
				if !written[v] {
					written[v] = true
					taken = append(taken, v)
				}
			}
			written[n.Out] = true
		}
	}
	return taken
}

// Handed lists what segment s carries on of its own: the other values that it carries were there before it.
func (p *Program) Handed(s int) []Value {
	return slices.DeleteFunc(slices.Clone(p.Segments[s].Carries), func(v Value) bool {
		return !p.Segments[s].writes(v)
	})
}
