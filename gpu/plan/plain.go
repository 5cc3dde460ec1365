package plan

import (
	"fmt"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// plain is the launch of an op that has no kernel: the device computes it by its reference loop.
type plain struct {
	k  kernel.Plain
	in []place
	y  place
}

func (l *planner) plain(n *ir.Node) error {
	if !l.target.Kernels.Plays(n.Op) || n.Op.KeepsState() || len(n.Matrices()) > 0 {
		return fmt.Errorf("%s: %w", n.Op, ErrNoKernel)
	}
	p := &plain{k: kernel.Plain{Program: l.program.Program, Node: n}}
	for _, r := range n.Weights() {
		p.k.Weights = append(p.k.Weights, l.target.Weights.Vector(r))
	}
	reads := of()
	for _, v := range n.In {
		p.in = append(p.in, l.place(v))
		reads = append(reads, l.place(v).b)
	}
	p.y, l.entry.texts = l.put(n), true
	l.launch(p, reads, of(p.y.b))
	return nil
}

func (p *plain) emit(x *stream) {
	k := p.k
	k.In = nil
	for _, a := range p.in {
		k.In = append(k.In, kernel.Floats{At: x.where(a), Stride: stride(a.b)})
	}
	k.Y, k.Rows, k.Count = kernel.Floats{At: x.where(p.y), Stride: stride(p.y.b)}, x.n, x.count(0)
	k.IDs, k.Texts = x.entry(x.Entry.IDs), x.entry(x.Entry.Texts)
	x.launch(&k)
}
