package run

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/internal/trace"
)

// When a neighbour restarts, messages and answers may be lost with it. Rather than guess which, those who work
// together start a new generation: one of them sends Flush to its partners, who forget what they held, and answer
// Flushed. Mailboxes keep order, so that after the answers nothing of an older generation is under way; late messages
// of one are dropped.

// Flush starts generation Gen at its receiver, which calls Done when it holds nothing older.
type Flush struct {
	Gen   uint64
	Of    *actor.PID // whose generation it is
	party uint8
	reply Edge[Flushed]
}

// Flushed says that a partner is in generation Gen and holds nothing older.
type Flushed struct {
	Gen   uint64
	party uint8
}

// Restarted says that its sender has lost its state. During is the work W that it was at when it failed, if any.
type Restarted[W any] struct{ During *W }

// ControlCredits bounds what neighbours may say about restarts before the receiver gets to it: one for each restart
// that supervision allows before it gives up, for each of five neighbours.
const ControlCredits = 5 * (MaxRestarts + 1)

// Bounded is why such an edge is never full.
const Bounded = "one a restart, and restarts are bounded"

// Tell declares that an actor may say that it has restarted.
func Tell[W any](g *Graph, from, to Place) Edge[Restarted[W]] {
	return Connect[Restarted[W]](g, from, to, Most(ControlCredits), Bounded)
}

// Failed says that its sender cannot do its part, whatever restarts.
type Failed struct{ Err error }

// Fail declares that an actor may say so.
func Fail(g *Graph, from, to Place) Edge[Failed] {
	return Connect[Failed](g, from, to, Most(ControlCredits), "again only after a restart")
}

// Late implements Late: whoever restarts meanwhile is flushed anyway.
func (*Flush) Late() {}

// Late implements Late.
func (*Flushed) Late() {}

// Trace implements Traced.
func (*Flush) Trace() (trace.Kind, trace.Of) { return trace.Restart, trace.Nothing() }

// Trace implements Traced.
func (*Flushed) Trace() (trace.Kind, trace.Of) { return trace.Restart, trace.Nothing() }

// Trace implements Traced.
func (*Restarted[W]) Trace() (trace.Kind, trace.Of) { return trace.Restart, trace.Nothing() }

// Urgent implements Urgent: until its receiver knows, it waits for answers that will not come.
func (*Restarted[W]) Urgent() {}

// Late implements Late.
func (*Restarted[W]) Late() {}

// Done answers.
func (m *Flush) Done() { m.reply.Send(&Flushed{Gen: m.Gen, party: m.party}) }

// Partners are the actors that an actor starts generations with, at most 8.
type Partners struct {
	of      *actor.PID
	flush   []Edge[Flush]
	flushed []Edge[Flushed]
}

// Partner declares the edges between an actor and those that it starts generations with. At most restarts generations
// are begun before all have heard of the first.
func Partner(g *Graph, of Place, restarts int, with ...Place) Partners {
	p := Partners{of: of.Address}
	for _, w := range with {
		flush := Connect[Flush](g, of, w, Most(restarts), Bounded)
		p.flush = append(p.flush, flush)
		p.flushed = append(p.flushed, Connect[Flushed](g, w, of, Each(flush), "an answer to each"))
	}
	return p
}

// Flush starts generation gen with all partners, and returns those whose answer is due.
func (p *Partners) Flush(gen uint64) (w Waiting) {
	for i, to := range p.flush {
		w |= 1 << i
		to.Send(&Flush{Gen: gen, Of: p.of, party: uint8(i), reply: p.flushed[i]})
	}
	return w
}

// Waiting is the set of partners whose answer is due. The zero value waits for nobody.
type Waiting uint8

// Done takes the partner who has answered out of the set.
func (w *Waiting) Done(m *Flushed) { *w &^= 1 << m.party }
