package cpu

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// normOp normalises groups of features.
type normOp struct {
	out, x place
	args   ir.NormArgs
	g, b   []float32 // nil, or as long as a group or a row
	name   string
}

func (o *normOp) row(ex *execution, _, r int) error {
	return o.apply(ex, ex.at(&o.out, r), ex.at(&o.x, r))
}

// apply normalises x to y, which may be the same.
func (o *normOp) apply(ex *execution, y, x []float32) error {
	isa, n := ex.device.isa, o.args.Group
	for from := 0; from < len(y); from += n {
		part, in := y[from:from+n], x[from:from+n]
		if o.args.Layer {
			mean := isa.Sum(in) / float32(n)
			for i, v := range in {
				part[i] = v - mean
			}
			in = part
		}
		square := isa.SumSquares(in) / float32(n)
		if square-square != 0 { // the quotient would be 0 and hide it
			return fmt.Errorf("the input of %s has NaN, infinite or huge values: its mean square is %v", o.name, square)
		}
		isa.Divide(part, in, float32(math.Sqrt(float64(square)+float64(o.args.Eps))))
		if o.g != nil {
			isa.Mul(part, part, o.slice(o.g, from))
		}
		if o.b != nil {
			isa.Add(part, part, o.slice(o.b, from))
		}
	}
	return nil
}

// slice is the part of a weight for the group at feature from: the same for all groups, or by feature.
func (o *normOp) slice(w []float32, from int) []float32 {
	if len(w) == o.args.Group {
		return w
	}
	return w[from : from+o.args.Group]
}
