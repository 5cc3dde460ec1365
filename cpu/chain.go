package cpu

import (
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
)

// chainGrain is the number of values that a chunk of a chain reads, roughly: some microseconds of work.
const chainGrain = 16 << 10

// rowOp computes one row.
type rowOp interface {
	row(ex *execution, worker, r int) error
}

// chain passes rows through several operations: a row stays in the nearest cache from one to the next.
type chain struct {
	ex     *execution
	wanted bool
	ops    []rowOp
	grain  int // rows of a chunk
}

func (c *chain) chunks() int { return (c.ex.rows(c.wanted) + c.grain - 1) / c.grain }

func (c *chain) run(worker, chunk int) {
	from := chunk * c.grain
	for r := from; r < min(from+c.grain, c.ex.rows(c.wanted)); r++ {
		for _, op := range c.ops {
			if err := op.row(c.ex, worker, r); err != nil {
				c.ex.fail(fmt.Errorf("row %d: %w", r, err))
				return
			}
		}
	}
}

type embedOp struct {
	out place
	w   *weight
}

func (o *embedOp) row(ex *execution, worker, r int) error {
	return o.w.decode(ex.at(&o.out, r), int(ex.step.Tokens[r]), &ex.workers[worker].row)
}

// tokenOp is the number of a row's token, plus 1.
type tokenOp struct{ out place }

func (o *tokenOp) row(ex *execution, _, r int) error {
	ex.at(&o.out, r)[0] = float32(ex.step.Tokens[r] + 1)
	return nil
}

// gramOp reads the rows of a table that hashes of tokens name.
type gramOp struct {
	out, x place
	args   *ir.GramArgs
	w      *weight
}

func (o *gramOp) row(ex *execution, worker, r int) error {
	y, x := ex.at(&o.out, r), ex.at(&o.x, r)
	for h := range o.args.Sizes {
		if err := o.w.decode(y[h*o.w.cols:][:o.w.cols], o.args.Row(x, h), &ex.workers[worker].row); err != nil {
			return err
		}
	}
	return nil
}

// balanceOp balances the matrix of a row.
type balanceOp struct {
	out, x place
	n      *ir.Node
}

func (o *balanceOp) row(ex *execution, _, r int) error {
	ir.BalanceMatrix(ex.at(&o.out, r), ex.at(&o.x, r), o.n)
	return nil
}

type addOp struct{ out, a, b place }

func (o *addOp) row(ex *execution, _, r int) error {
	ex.device.isa.Add(ex.at(&o.out, r), ex.at(&o.a, r), ex.at(&o.b, r))
	return nil
}

type mulOp struct{ out, a, b place }

func (o *mulOp) row(ex *execution, _, r int) error {
	y, a, b := ex.at(&o.out, r), ex.at(&o.a, r), ex.at(&o.b, r)
	if len(b) == len(y) {
		ex.device.isa.Mul(y, a, b)
		return nil
	}
	n := len(y) / len(b)
	for i, factor := range b {
		ex.device.isa.Scale(y[i*n:][:n], a[i*n:], factor)
	}
	return nil
}

type scaleOp struct {
	out, x place
	factor float32
}

func (o *scaleOp) row(ex *execution, _, r int) error {
	ex.device.isa.Scale(ex.at(&o.out, r), ex.at(&o.x, r), o.factor)
	return nil
}

// eachOp computes a function of each value.
type eachOp struct {
	out, x place
	of     func(v float32) float32
}

func (o *eachOp) row(ex *execution, _, r int) error {
	y := ex.at(&o.out, r)
	for i, v := range ex.at(&o.x, r) {
		y[i] = o.of(v)
	}
	return nil
}

type exceedOp struct {
	out, x     place
	deviations float32
}

func (o *exceedOp) row(ex *execution, _, r int) error {
	x, y := ex.at(&o.x, r), ex.at(&o.out, r)
	cut := ir.Cut(x, float64(o.deviations))
	for i, v := range x {
		y[i] = float32(max(float64(v)-cut, 0))
	}
	return nil
}

type levelOp struct{ out, x, like place }

func (o *levelOp) row(ex *execution, _, r int) error {
	x, y, like := ex.at(&o.x, r), ex.at(&o.out, r), ex.at(&o.like, r)
	for at := 0; at < len(x); at += len(like) {
		head := x[at:][:len(like)]
		ex.device.isa.Scale(y[at:][:len(like)], head, float32(ir.Levelling(head, like)))
	}
	return nil
}

type xieluOp struct {
	out, x place // not the same memory
	a      *ir.XIELUArgs
}

func (o *xieluOp) row(ex *execution, _, r int) error {
	x, y := ex.at(&o.x, r), ex.at(&o.out, r)
	for i, v := range x {
		y[i] = min(v, o.a.Most)
	}
	ex.device.isa.Exp(y, y)
	for i, v := range x {
		if v > 0 {
			y[i] = o.a.Above*v*v + o.a.Beta*v
		} else {
			y[i] = o.a.Below*(y[i]-1-v) + o.a.Beta*v
		}
	}
	return nil
}

type temperOp struct {
	out, x      place
	factor      float32
	every, from int
}

func (o *temperOp) row(ex *execution, _, r int) error {
	far := float64((ex.pos[r] + o.from) / o.every)
	ex.device.isa.Scale(ex.at(&o.out, r), ex.at(&o.x, r), float32(1+float64(o.factor)*math.Log1p(far)))
	return nil
}

type softCapOp struct {
	out, x place
	limit  float32
}

func (o *softCapOp) row(ex *execution, _, r int) error {
	ex.device.isa.SoftCap(ex.at(&o.out, r), ex.at(&o.x, r), o.limit)
	return nil
}

// rowsOp gathers wanted rows: row r of the output is the r-th wanted row.
type rowsOp struct{ out, x place }

func (o *rowsOp) row(ex *execution, _, r int) error {
	copy(ex.at(&o.out, r), ex.at(&o.x, int(ex.step.Wanted[r])))
	return nil
}

type gluOp struct {
	out, x, up place
	gated      bool // times up
	act        ir.Act
	limit      float32
}

func (o *gluOp) row(ex *execution, _, r int) error {
	var up []float32
	if o.gated {
		up = ex.at(&o.up, r)
	}
	ex.glu(o.act, o.limit, ex.at(&o.out, r), ex.at(&o.x, r), up)
	return nil
}

// glu is y = act(x)·up, or act(x) if up is nil; limit is that of activations that have one. y may be x.
func (ex *execution) glu(act ir.Act, limit float32, y, x, up []float32) {
	isa := ex.device.isa
	switch act {
	case ir.SiLU:
		isa.SiLU(y, x)
	case ir.GELU:
		isa.GELU(y, x)
	case ir.GELUErf:
		isa.GELUErf(y, x)
	case ir.Exp:
		isa.Exp(y, x)
	case ir.Clamped:
		for i, v := range x {
			y[i] = min(v, 7)
		}
		isa.Swish(y, y, 1.702)
		for i, v := range up {
			y[i] *= max(min(v, 7), -7) + 1
		}
		return
	case ir.SiLUClipped:
		isa.SiLU(y, x)
		for i, v := range up {
			y[i] = min(y[i], limit) * max(min(v, limit), -limit)
		}
		return
	case ir.ClippedSiLU:
		for i, v := range x {
			y[i] = min(v, limit)
		}
		isa.SiLU(y, y)
		for i, v := range up {
			y[i] *= max(min(v, limit), -limit)
		}
		return
	case ir.SiTU:
		for i, v := range x {
			y[i] = float32(ir.Cap(float64(v), float64(limit))) * activate(ir.Sigmoid, v)
		}
	default:
		for i, v := range x {
			y[i] = activate(act, v)
		}
	}
	if up != nil {
		isa.Mul(y, y, up)
	}
}

// activate is a rare activation function, element by element.
func activate(a ir.Act, x float32) float32 {
	switch X := float64(x); a {
	case ir.ReLU:
		return max(x, 0)
	case ir.ReLU2:
		return max(x, 0) * max(x, 0)
	case ir.Sigmoid:
		return float32(1 / (1 + math.Exp(-X)))
	case ir.Root:
		return float32(a.Of(X))
	case ir.Softplus:
		return float32(math.Max(X, 0) + math.Log1p(math.Exp(-math.Abs(X))))
	}
	panic(fmt.Sprintf("cpu: %s has no formula", a))
}

// quantizeOp quantises a row for products with quantised weights.
type quantizeOp struct {
	in   place
	acts *kernels.Acts
	what string
}

func (o *quantizeOp) row(ex *execution, _, r int) error {
	if err := ex.device.set.Quantize(o.acts, r, ex.at(&o.in, r)); err != nil {
		return fmt.Errorf("%s: %w", o.what, err)
	}
	return nil
}

// finiteOp checks that a row is finite, where it is used as float32.
type finiteOp struct {
	in   place
	what string
}

func (o *finiteOp) row(ex *execution, _, r int) error { return ex.finite(ex.at(&o.in, r), o.what) }
