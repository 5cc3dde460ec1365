package cpu

import (
	"math"

	"github.com/sluice-ai/sluice/internal/ir"
)

// ropeTable holds cos and sin of the angles of every row of the step. Layers share it, and a row's angles are computed
// once: by the first chain that rotates it. They stay valid while the row keeps its position.
type ropeTable struct {
	args     *ir.RoPEArgs
	divisors []float32 // of Freq; nil: none
	pairs    int
	at       []ir.Place // by row: the place that its angles are for; below 0: none
	cos, sin []float32  // [rows][pairs]
}

// ropeOp rotates the heads of a row.
type ropeOp struct {
	out, x place
	args   *ir.RoPEArgs
	table  *ropeTable
}

// same says whether two weights are the same memory.
func same(a, b []float32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// angles gives cos and sin for row r at a place.
func (t *ropeTable) angles(r int, at ir.Place) (cos, sin []float32) {
	cos, sin = t.cos[r*t.pairs:][:t.pairs], t.sin[r*t.pairs:][:t.pairs]
	if t.at[r] == at {
		return cos, sin
	}
	t.at[r] = at
	for i := range t.args.Freq {
		angle := t.args.Angle(i, at)
		if t.divisors != nil {
			angle /= float64(t.divisors[i])
		}
		s, c := math.Sincos(angle)
		cos[i], sin[i] = float32(c)*t.args.Mscale, float32(s)*t.args.Mscale
	}
	return cos, sin
}

func (o *ropeOp) row(ex *execution, _, r int) error {
	a, y := o.args, ex.at(&o.out, r)
	copy(y, ex.at(&o.x, r)) // onto itself, usually
	cos, sin := o.table.angles(r, ex.place(r))
	for h := range a.Heads {
		head := y[h*a.HeadDim:][:a.Dims]
		if a.Interleaved {
			ex.device.isa.RotatePairs(head, cos, sin)
		} else {
			ex.device.isa.Rotate(head[:a.Dims/2], head[a.Dims/2:], cos, sin)
		}
	}
	return nil
}
