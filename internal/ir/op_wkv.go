package ir

import (
	"fmt"
	"math"
	"slices"
)

// wkvOp describes WKV. q, k, g, a and b are [rows][Heads·KDim], v and the result [rows][Heads·VDim]; g are logarithms,
// at most 0. Without a and b nothing but k⊗v is added; without g either, heads decay at constant rates.
// Sources: RWKV 6, arXiv:2404.05892; RWKV 7, arXiv:2503.14456; gated linear attention, arXiv:2312.06635; lightning
// attention, arXiv:2401.04658.
var wkvOp = operation{
	name: "wkv", inputs: [2]int{3, 6}, w: none, b: none, use: 0, fits: fitsWKV, loop: (*Frame).wkv, cost: costOfScan,
	keeps: true, args: func(n *Node) string { return fmt.Sprintf("state=%d %s", n.State, n.Scan) },
	cases: []Case{
		{"wkv", func(b *Builder, x Value, n int) Value {
			return CaseWKV(b, x, false, ScanArgs{Heads: 4, KDim: 12, VDim: 20, Scale: 0.5})
		}},
		{"wkv before", func(b *Builder, x Value, n int) Value {
			return CaseWKV(b, x, false, ScanArgs{Heads: 3, KDim: 16, VDim: 16, Scale: 1, Before: true})
		}},
		{"wkv delta", func(b *Builder, x Value, n int) Value {
			return CaseWKV(b, x, true, ScanArgs{Heads: 4, KDim: 16, VDim: 32, Scale: 1})
		}},
		{"wkv slopes", func(b *Builder, x Value, n int) Value {
			return CaseWKV(b, x, false, ScanArgs{Heads: 5, KDim: 16, VDim: 24, Scale: 0.5, Slopes: 0.7})
		}},
	},
}

// WKV is the recurrence of RWKV. delta is a and b, or nothing.
func (b *Builder) WKV(q, k, v, g Value, a ScanArgs, delta ...Value) Value {
	a.Groups, a.D = a.Heads, NoRef
	n := Node{Op: WKV, In: append([]Value{q, k, v, g}, delta...), W: NoRef, B: NoRef, Scan: &a}
	return b.scan(n, NoRef)
}

// Lightning is a WKV whose heads decay at constant rates, at most e^−slopes.
func (b *Builder) Lightning(q, k, v Value, slopes float32, a ScanArgs) Value {
	a.Groups, a.D, a.Slopes = a.Heads, NoRef, slopes
	return b.scan(Node{Op: WKV, In: []Value{q, k, v}, W: NoRef, B: NoRef, Scan: &a}, NoRef)
}

func fitsWKV(p *Program, n *Node) error {
	a := n.Scan
	if a.Heads <= 0 || a.Groups != a.Heads || a.KDim <= 0 || a.VDim <= 0 || a.Tiled || a.ByKey || a.D != NoRef {
		return fmt.Errorf("arguments %s are not those of a wkv", a)
	}
	switch {
	case !finite(float64(a.Slopes)) || a.Slopes < 0 || a.Slopes > 0 && a.Before:
		return fmt.Errorf("slopes of %v, before the row: %t", a.Slopes, a.Before)
	case len(n.In) == 5 || len(n.In) == 3 != (a.Slopes > 0):
		return fmt.Errorf("%d inputs and slopes of %v, want 4 or 6, or 3 with slopes", len(n.In), a.Slopes)
	}
	keys := a.Heads * a.KDim
	if err := a.widths(p, n, []int{keys, keys, a.Heads * a.VDim, keys, keys, keys}[:len(n.In)]); err != nil {
		return err
	}
	return fitsState(p, n, keys*a.VDim)
}

// wkv keeps the matrix of each head as KDim rows of VDim.
func (f *Frame) wkv(n *Node) {
	a, state := n.Scan, f.States[n.State]
	for i, span := range f.Spans {
		for j := range span.Rows {
			row, next := span.Row+j, state.After(i, span.Pos+j)
			copy(next, state.Before(i, span.Pos+j))
			for h := range a.Heads {
				var in [6][]float32
				for k, v := range n.In {
					in[k] = part(f.row(v, row), h, a.Heads)
				}
				if in[3] == nil {
					in[3] = slices.Repeat([]float32{float32(a.Slope(h))}, a.KDim)
				}
				a.wkv(part(f.row(n.Out, row), h, a.Heads), part(next, h, a.Heads), &in)
			}
		}
	}
}

// wkv brings the matrix of one head to the position of a row and reads it.
func (a *ScanArgs) wkv(y, matrix []float32, in *[6][]float32) {
	q, k, v, g := in[0], in[1], in[2], in[3]
	for c := range y {
		old, read := 0.0, 0.0 // what is known of a, what is read
		for i := range in[4] {
			old += float64(matrix[i*a.VDim+c]) * float64(in[4][i])
		}
		for i := range k {
			at := &matrix[i*a.VDim+c]
			if a.Before {
				read += float64(*at) * float64(q[i])
			}
			next := math.Exp(float64(g[i]))*float64(*at) + float64(k[i])*float64(v[c])
			if in[5] != nil {
				next += float64(in[5][i]) * old
			}
			if *at = float32(next); !a.Before {
				read += float64(*at) * float64(q[i])
			}
		}
		y[c] = float32(read * float64(a.Scale))
	}
}

// CaseWKV is a WKV whose inputs are parts of x.
func CaseWKV(b *Builder, x Value, delta bool, a ScanArgs) Value {
	keys, values := a.Heads*a.KDim, a.Heads*a.VDim
	all := b.Linear(x, "in", 5*keys+values)
	at := func(i int) Value { return b.Slice(all, i*keys, keys) }
	g := b.Scale(b.Act(Sigmoid, at(2)), -0.6)
	v := b.Slice(all, 5*keys, values)
	if a.Slopes > 0 {
		return b.Linear(b.Lightning(at(0), at(1), v, a.Slopes, a), "out", b.Width(x))
	}
	if !delta {
		return b.Linear(b.WKV(at(0), at(1), v, g, a), "out", b.Width(x))
	}
	old := b.L2Norm(at(3), a.KDim, 1e-12)
	add := b.Mul(old, b.Act(Sigmoid, at(4)))
	return b.Linear(b.WKV(at(0), at(1), v, g, a, b.Scale(old, -1), add), "out", b.Width(x))
}
