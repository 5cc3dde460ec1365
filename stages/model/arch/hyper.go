package arch

import "github.com/sluice-ai/sluice/internal/ir"

// hyper is residual streams side by side (hyper-connections, arXiv:2409.19606), in the form of Qwen 4: a block reads a
// mixture of all, by gates that follow from them through few features, and what it gives is added to each, times a
// factor of its own.
type hyper struct {
	*shape
	streams, rank int
}

func (p *params) hyper(s *shape) hyper {
	h := hyper{s, p.integer("hyper_connection.count", 2, 64), p.count("hyper_connection.low_rank", maxWidth)}
	return h
}

// all is the features of all streams.
func (h *hyper) all() int { return h.streams * h.width }

// spread is x once for each stream, times a feature of by, if there are such.
func (h *hyper) spread(b *ir.Builder, x ir.Value, by []ir.Value) ir.Value {
	at := func(i int) ir.Value {
		if by == nil {
			return x
		}
		return b.Mul(x, by[i])
	}
	y := at(0)
	for i := 1; i < h.streams; i++ {
		y = b.HeadJoin(y, at(i), 1)
	}
	return y
}

// norm is an RMS norm of each stream, with weights of its own.
func (h *hyper) norm(b *ir.Builder, x ir.Value, name string) ir.Value {
	return b.Affine(b.BareHeadNorm(x, h.width, h.eps), name+".weight", h.all(), "", 0)
}

// mix is what a block reads of the streams, and by what its result is multiplied for each of them, where the file has
// the matrix that says so.
func (h *hyper) mix(b *ir.Builder, x ir.Value, name string) (mixed ir.Value, by []ir.Value) {
	each := 1 / float32(h.streams)
	n := h.norm(b, x, name+"_norm")
	low := b.Act(ir.SiLU, b.Scale(b.Linear(n, name+"_down", h.rank), each))
	gated := b.GLU(ir.Sigmoid, b.Linear(low, name+"_up", h.all()), n)
	mixed = b.Slice(gated, 0, h.width)
	for i := 1; i < h.streams; i++ {
		mixed = b.Add(mixed, b.Slice(gated, i*h.width, h.width))
	}
	if b.Has(name + "_inject.weight") {
		factors := b.Scale(b.Act(ir.Sigmoid, b.Scale(b.Linear(n, name+"_inject", h.streams), each)), 2)
		for i := range h.streams {
			by = append(by, b.Slice(factors, i, 1))
		}
	}
	return b.Scale(mixed, each), by
}
