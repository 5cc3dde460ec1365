package cpu

import (
	"math"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/ir"
)

// wkv is a WKV: see heads.
type wkv struct {
	heads
	in    [6]place  // q, k, v, g, a, b
	delta bool      // it has a and b
	keeps []float32 // what each head keeps where there is no g
}

func (w *wkv) run(worker, chunk int) { w.visit(worker, chunk, w) }

// row updates the state by one row, and reads it.
func (w *wkv) row(r *vec.Recurrence, row, h int) {
	isa, a := w.ex.device.isa, w.args
	at := func(i, n int) []float32 { return w.ex.at(&w.in[i], row)[h*n:][:n] }
	q, k, v := at(0, a.KDim), at(1, a.KDim), at(2, a.VDim)
	y := w.ex.at(&w.out, row)[h*a.VDim:][:a.VDim]
	if a.Before {
		w.read(r.Y, r.S, q)
		isa.Scale(y, r.Y[:a.VDim], a.Scale)
	}
	if w.delta {
		w.read(r.W, r.S, at(4, a.KDim))
	}
	r.Q, r.Decay = q, 1
	if w.keeps != nil {
		r.Decay = w.keeps[h]
	} else {
		w.decay(r, at(3, a.KDim))
	}
	if w.delta {
		r.K = at(5, a.KDim)
		isa.Recur(r)
	}
	r.K = k
	copy(r.W, v)
	clear(r.W[a.VDim:])
	isa.Recur(r)
	if !a.Before {
		isa.Scale(y, r.Y[:a.VDim], a.Scale)
	}
}

// decay multiplies each row of the state by e^g.
func (w *wkv) decay(r *vec.Recurrence, g []float32) {
	isa, keep := w.ex.device.isa, r.Y // it is free until the state is read
	for from := 0; from < len(g); from += len(keep) {
		n := min(len(keep), len(g)-from)
		isa.Exp(keep[:n], g[from:][:n])
		for i := range n {
			line := r.S[(from+i)*w.stride:][:w.stride]
			isa.Scale(line, line, keep[i])
		}
	}
}

// read is y = Sᵀx.
func (w *wkv) read(y, state, x []float32) {
	p := vec.Product{C: y, A: x, Rows: 1, K: w.args.KDim, N: w.stride, BStride: w.stride}
	w.ex.device.isa.Panel(&p, state, nil)
}

func (b *binder) wkv(n *ir.Node) *wkv {
	w := &wkv{heads: b.heads(n), delta: len(n.In) == 6}
	for i, v := range n.In {
		w.in[i] = b.layout.place(v)
	}
	if len(n.In) == 3 {
		for h := range n.Scan.Heads {
			w.keeps = append(w.keeps, float32(math.Exp(n.Scan.Slope(h))))
		}
	}
	return w
}
