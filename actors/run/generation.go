package run

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/internal/trace"
)

// When an actor restarts, messages and answers may be lost with it. Rather than guess which, the actors that work
// together start a new generation: one of them sends Flush to its partners, who forget what they held, and answer
// Flushed. Mailboxes keep order, so that after the answers no partner sends anything of an older generation. What they
// sent each other before may still wait in a mailbox when the new one has begun: its receiver drops it by its
// generation. So a message is never filled again for a newer generation than that which it was made in.

// Flush starts generation Gen at its receiver, which calls Done when it holds nothing older.
type Flush struct {
	Gen   uint64
	Of    *actor.PID // the actor that starts the generation
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

// ControlCredits is room for messages that are sent once a restart, or more seldom, of up to five neighbours.
const ControlCredits = 5 * (MaxRestarts + 1)

// tellCredits is how many restarts of one actor supervision allows within restartWindow. A receiver that is no partner,
// such as a session whose scheduler fails on steps of others, may have heard of none of them.
const tellCredits = MaxRestarts + maxPoisoned

// Bounded says, in the printed table, why an edge that carries one message a restart is never full.
const Bounded = "one a restart, and restarts are bounded"

// Tell declares the edge on which an actor says that it has restarted.
func Tell[W any](g *Graph, from, to Place) Edge[Restarted[W]] {
	return Connect[Restarted[W]](g, from, to, Most(tellCredits), Bounded)
}

// Failed says that its sender cannot work any more, and that no restart would help.
type Failed struct{ Err error }

// Fail declares the edge on which an actor sends Failed.
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

// Done answers with Flushed.
func (m *Flush) Done() { m.reply.Send(&Flushed{Gen: m.Gen, party: m.party}) }

// Partners are the actors that an actor starts generations with, at most 8.
type Partners struct {
	of      *actor.PID
	flush   []Edge[Flush]
	flushed []Edge[Flushed]
}

// Partner declares the edges between an actor and those that it starts generations with. Before a partner has heard of
// the first, as many generations are begun as there are restarts of the actor and its partners: those for reasons of
// their own that supervision allows, and one of each on a Poisonous message. A second one of those needs work, and a
// generation has work only once all partners hold nothing older.
func Partner(g *Graph, of Place, with ...Place) Partners {
	p, restarts := Partners{of: of.Address}, (1+len(with))*(MaxRestarts+1)
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
