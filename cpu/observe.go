package cpu

import "github.com/sluice-ai/sluice/internal/ir"

// observeGrain is the number of columns of a chunk.
const observeGrain = 64

// observation adds inputs of products to the sums of backend.Inputs. Work is divided by columns, so that each sum takes
// the rows in their order, whichever worker adds them.
type observation struct {
	ex     *execution
	wanted bool
	seen   []seen
}

// seen is the input of one product.
type seen struct {
	weight ir.Ref
	in     place
}

func (o *observation) chunks() int {
	if o.ex.rows(o.wanted) == 0 {
		return 0
	}
	widest := 0
	for i := range o.seen {
		widest = max(widest, o.seen[i].in.width)
	}
	return (widest + observeGrain - 1) / observeGrain
}

func (o *observation) run(_, chunk int) {
	for i := range o.seen {
		s := &o.seen[i]
		from, to := chunk*observeGrain, min((chunk+1)*observeGrain, s.in.width)
		if from >= to {
			continue
		}
		for r := range o.ex.rows(o.wanted) {
			o.ex.config.Inputs.Add(s.weight, 0, from, o.ex.at(&s.in, r)[from:to])
		}
	}
}
