package ir

import "fmt"

func fitsCausalConv(p *Program, n *Node) error {
	w, width := &p.Weights[n.W], p.Widths[n.In[0]]
	if w.Rows != width || w.Cols < 2 {
		return fmt.Errorf("%s is %d×%d, want %d channels of two positions or more", w.Name, w.Rows, w.Cols, width)
	}
	if err := vector(p, n.B, width); err != nil {
		return err
	}
	if err := fitsState(p, n, (w.Cols-1)*width); err != nil {
		return err
	}
	return sameWidths(p, n)
}

func fitsScan(p *Program, n *Node) error {
	a := n.Scan
	if a.Heads <= 0 || a.Groups <= 0 || a.Heads%a.Groups != 0 || a.KDim <= 0 || a.VDim <= 0 {
		return fmt.Errorf("%d heads of %d cannot share %d groups of %d", a.Heads, a.VDim, a.Groups, a.KDim)
	}
	want := []int{a.Groups * a.KDim, a.Groups * a.KDim, a.Heads * a.VDim, a.Heads, a.Heads}[:len(n.In)]
	for i, v := range n.In {
		if p.Widths[v] != want[i] {
			return fmt.Errorf("input %d has %d features, want %d", i, p.Widths[v], want[i])
		}
	}
	if p.Widths[n.Out] != a.Heads*a.VDim {
		return fmt.Errorf("%d features, want %d", p.Widths[n.Out], a.Heads*a.VDim)
	}
	if !finite(float64(a.Scale)) {
		return fmt.Errorf("scale is %v", a.Scale)
	}
	for _, r := range []Ref{n.W, n.B, a.D} {
		if r != NoRef && p.Weights[r].Rows*p.Weights[r].Cols != a.Heads {
			w := &p.Weights[r]
			return fmt.Errorf("%s is %d×%d, want a value for each of %d heads", w.Name, w.Rows, w.Cols, a.Heads)
		}
	}
	return fitsState(p, n, a.Heads*a.KDim*a.VDim)
}

// fitsState checks what a node keeps: so many values, which are its own.
func fitsState(p *Program, n *Node, values int) error {
	if n.State < 0 || n.State >= len(p.States) {
		return fmt.Errorf("state %d of %d", n.State, len(p.States))
	}
	s := p.States[n.State]
	if s.Values != values {
		return fmt.Errorf("state %d has %d values, want %d", n.State, s.Values, values)
	}
	if s.Class < 0 || s.Class >= len(p.Classes) || p.Classes[s.Class] != (Class{State: true}) {
		return fmt.Errorf("state %d is of class %d of %+v, want one of states", n.State, s.Class, p.Classes)
	}
	return nil
}
