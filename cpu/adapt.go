package cpu

import (
	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/ir"
)

// adaptOutputs is how many outputs of an update a worker computes at a time, in memory of its own.
const adaptOutputs = 1024

// adaptOp adds the updates that the adapters of a row's sequence have for a matrix. A row's sums are chains of a fixed
// order of the inputs (vec.ISA.Narrow) and of the rank, whatever other rows there are.
type adaptOp struct {
	out, y, x place
	site      int
	token     bool // x is the row's token
	wanted    bool
}

func (o *adaptOp) row(ex *execution, worker, r int) error {
	out := ex.at(&o.out, r)
	if y := ex.at(&o.y, r); &y[0] != &out[0] {
		copy(out, y)
	}
	at := r
	if o.wanted {
		at = int(ex.step.Wanted[r])
	}
	for _, a := range ex.step.Spans[ex.span[at]].Adapters {
		u := a.Updates[o.site]
		if u == nil {
			continue
		}
		between := ex.workers[worker].between[:ir.Padded(u.Rank)]
		if o.token {
			row := int(ex.step.Tokens[at]) * len(between)
			for k := range between {
				between[k] = u.A.At(row + k)
			}
		} else {
			narrow(ex.device.isa, between, ex.at(&o.x, r), &u.A)
		}
		ex.device.isa.Scale(between, between, u.Scale*a.Scale)
		o.add(ex, worker, u, between[:u.Rank], out)
	}
	return nil
}

// narrow multiplies a row by a first factor, some ranks at a time.
func narrow(isa vec.ISA, between, x []float32, f *ir.Factor) {
	for at := 0; at < len(between); at += vec.Lanes {
		to := (*[vec.Lanes]float32)(between[at:])
		if f.Halves != nil {
			isa.NarrowHalf(to, x, f.Halves[at:], len(between))
		} else {
			isa.Narrow(to, x, f.Floats[at:], len(between))
		}
	}
}

// add adds B's product with what A has made of the row.
func (o *adaptOp) add(ex *execution, worker int, u *ir.Update, between, out []float32) {
	some, stride := ex.workers[worker].updated, ir.Padded(len(out))
	for from := 0; from < len(out); from += adaptOutputs {
		n := min(adaptOutputs, stride-from)
		multiplyFactor(ex.device.isa, &vec.Product{C: some[:n], A: between, Rows: 1, K: len(between), N: n, CStride: n,
			AStride: len(between), BStride: stride}, &u.B, from)
		y := out[from:min(from+n, len(out))]
		ex.device.isa.Add(y, y, some[:len(y)])
	}
}

// multiplyFactor multiplies by a second factor, from a column of its rows on.
func multiplyFactor(isa vec.ISA, p *vec.Product, f *ir.Factor, from int) {
	if f.Halves != nil {
		isa.PanelHalf(p, f.Halves[from:], nil)
		return
	}
	isa.Panel(p, f.Floats[from:], nil)
}
