package cpu

import "github.com/sluice-ai/sluice/internal/ir"

// aroundOp copies the rows around a row of a picture. A chunk is some rows.
type aroundOp struct {
	ex     *execution
	out, x place
	size   int
	rows   [][]int // by worker
}

func (b *binder) around(n *ir.Node) *aroundOp {
	o := &aroundOp{ex: &b.m.execution, out: b.layout.place(n.Out), x: b.layout.place(n.In[0]), size: n.Size}
	for range b.m.device.pool.size() {
		o.rows = append(o.rows, make([]int, 0, n.Size*n.Size))
	}
	return o
}

const aroundGrain = 16 // rows of a chunk

func (o *aroundOp) chunks() int { return (o.ex.rows(false) + aroundGrain - 1) / aroundGrain }

func (o *aroundOp) run(worker, chunk int) {
	for r := chunk * aroundGrain; r < min((chunk+1)*aroundGrain, o.ex.rows(false)); r++ {
		span := &o.ex.step.Spans[o.ex.span[r]]
		o.rows[worker] = span.Grid.Around(span.Rows, r-span.Row, o.size, o.rows[worker][:0])
		y := o.ex.at(&o.out, r)
		for _, at := range o.rows[worker] {
			if at < 0 {
				clear(y[:o.x.width])
			} else {
				copy(y, o.ex.at(&o.x, span.Row+at))
			}
			y = y[o.x.width:]
		}
	}
}
