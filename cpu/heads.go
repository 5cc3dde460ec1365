package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
)

// headSliceOp copies some features of every head.
type headSliceOp struct {
	out, x      place
	heads, from int
}

func (o *headSliceOp) row(ex *execution, _, r int) error {
	y, x := ex.at(&o.out, r), ex.at(&o.x, r)
	to, step := len(y)/o.heads, len(x)/o.heads
	for h := range o.heads {
		copy(y[h*to:(h+1)*to], x[h*step+o.from:])
	}
	return nil
}

// headJoinOp puts each head of a beside the same head of b, or beside the whole of b.
type headJoinOp struct {
	out, a, b place
	heads     int
	shared    bool
}

func (o *headJoinOp) row(ex *execution, _, r int) error {
	y, a, b := ex.at(&o.out, r), ex.at(&o.a, r), ex.at(&o.b, r)
	first, second, step := len(a)/o.heads, len(b)/o.heads, len(b)/o.heads
	if o.shared {
		second, step = len(b), 0
	}
	for h := range o.heads {
		to := y[h*(first+second):]
		copy(to[:first], a[h*first:])
		copy(to[first:first+second], b[h*step:])
	}
	return nil
}

// headDotOp multiplies each head of a by the same head of b.
type headDotOp struct{ out, a, b place }

func (o *headDotOp) row(ex *execution, _, r int) error {
	y, a, b := ex.at(&o.out, r), ex.at(&o.a, r), ex.at(&o.b, r)
	n := len(a) / len(y)
	for h := range y {
		sum := 0.0
		for i, v := range a[h*n:][:n] {
			sum += float64(v) * float64(b[h*n+i])
		}
		y[h] = float32(sum)
	}
	return nil
}

// headLinear multiplies each head of a row by a matrix of its own. A chunk is a head, for all rows of the step: it
// prepares its activations itself, since no other chunk uses them.
type headLinear struct {
	ex     *execution
	wanted bool
	out, x place
	ref    ir.Ref
	w      *weight
	heads  int
	what   string // its input
}

func (l *headLinear) chunks() int {
	if l.ex.rows(l.wanted) == 0 {
		return 0
	}
	return l.heads
}

func (l *headLinear) run(worker, h int) {
	ex, work := l.ex, &l.ex.workers[worker]
	all := l.w.parts[0] // only an output matrix has more
	each := l.w.rows / l.heads
	work.head = all.Part(h*each, each)
	rows, n := ex.rows(l.wanted), work.head.Rows
	for from := 0; from < rows; from += work.gathered {
		to := min(from+work.gathered, rows)
		if err := l.prepare(work, h, from, to); err != nil {
			ex.fail(err)
			return
		}
		out := ex.area(&l.out)[l.out.off+from*l.out.stride+h*n:]
		work.strips.MatMul(ex.device.set, out, l.out.stride, &work.head, nil, 0, work.head.Tiles(), &work.acts)
	}
}

// prepare makes the worker's activations those of a head in rows [from, to).
func (l *headLinear) prepare(w *workspace, h, from, to int) error {
	cols, form := l.w.cols, kernels.FormOf(l.w.typ)
	w.acts = kernels.Acts{Form: form, Cols: cols, Rows: to - from, Stride: cols}
	if form == kernels.Plain {
		w.acts.Float, w.acts.Stride = l.ex.area(&l.x)[l.x.off+from*l.x.stride+h*cols:], l.x.stride
	} else {
		w.placeActs()
	}
	for r := from; r < to; r++ {
		x := l.ex.at(&l.x, r)[h*cols:][:cols]
		var err error
		if form == kernels.Plain {
			err = l.ex.finite(x, l.what)
		} else {
			err = l.ex.device.set.Quantize(&w.acts, r-from, x)
		}
		if l.ex.config.Inputs != nil {
			l.ex.config.Inputs.Add(l.ref, h, 0, x)
		}
		if err != nil {
			return fmt.Errorf("row %d: %s: %w", r, l.what, err)
		}
	}
	return nil
}

func (b *binder) headLinear(n *ir.Node, wanted bool) *headLinear {
	return &headLinear{ex: &b.m.execution, wanted: wanted, out: b.layout.place(n.Out), x: b.layout.place(n.In[0]),
		ref: n.W, w: &b.m.weights[n.W], heads: n.Heads, what: "the input of " + b.p.Weights[n.W].Name}
}
