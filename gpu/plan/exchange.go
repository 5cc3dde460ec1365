package plan

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/ir/live"
)

// exchange is the launch by which the cards of a team have a value of which each computed a part.
type exchange struct {
	part, y  place
	residual *place // nil: none
	width    int    // of a part
	join     bool
}

// multiplyPart plans a product of which other cards of the team have parts, and the exchange of these, with the sum
// that follows.
func (l *planner) multiplyPart(n *ir.Node, k kernel.MatVec) {
	in, e := l.taken(n, k.W, 1), &exchange{width: k.W.Rows}
	from, join := l.target.Team.Joins[n.Out]
	if e.join = join; join {
		e.y = l.put(n)
		e.part = place{e.y.b, e.y.from + from}
	} else {
		e.part = place{b: l.buffer(live.Buffer{Width: e.width})}
		e.y, e.residual = l.putSum(n)
	}
	l.product(in, k, e.part, nil)
	reads := of(e.part.b)
	if e.residual != nil {
		reads = append(reads, e.residual.b)
	}
	l.launch(e, reads, of(e.y.b))
	l.Room = max(l.Room, 4*e.width*l.Capacity(l.wanted))
}

func (e *exchange) emit(x *stream) {
	k := &kernel.Exchange{Box: x.at.Box, First: x.entry(x.Entry.Exchanges), Index: x.exchanges, Part: x.where(e.part),
		PartStride: stride(e.part.b), Y: x.where(e.y), YStride: stride(e.y.b), Width: e.width, Join: e.join, Rows: x.n,
		Count: x.count(0), Status: x.at.Result + ResultStatus}
	if e.residual != nil {
		k.Residual = x.where(*e.residual)
	}
	x.exchanges++
	x.launch(k)
}

// Exchanges is how many exchanges a step of a shape has made when its segment To has been computed.
func (p *Plan) Exchanges(sh *Shape) int { return p.exchanges(sh.To+1, sh.Wanted > 0) }

// exchanges counts those of the segments before one. wanted: some rows' outputs are wanted.
func (p *Plan) exchanges(before int, wanted bool) (n int) {
	if p.target.Team == nil {
		return 0
	}
	for i := range p.launches {
		l := &p.launches[i]
		if _, ok := l.kernels.(*exchange); ok && l.segment < before && (wanted || !l.wanted) {
			n++
		}
	}
	return n
}
