package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// modelActor supervises the actors of one model. Messages from outside to its children pass through it, since they are
// not there yet when it has just started, and gone for a moment while it restarts. It accepts *open, *settle and
// *transfer (facade) and *hangUpAll (facade, house). Its incarnations share this value.
type modelActor struct {
	system   *run.System
	graph    *run.Graph
	children func() []run.Child
	lost     func(error) // called when the model cannot serve any more
	here     func()      // called when the children have started
	out      modelEdges
	records  *records
}

type modelEdges struct {
	open      run.Edge[open]
	hangUpAll run.Edge[hangUpAll]
	settle    run.Edge[settle]
	transfer  run.Edge[transfer]
}

func (m *modelActor) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		m.records.restarting.Store(false)
		if err := m.graph.Spawn(c, m.children()...); err != nil {
			m.lost(err)
		}
		m.here()
	case *actor.Restarting:
		m.records.restarting.Store(true) // its children stop only to be started again
	case *open:
		m.records.put(msg.record) // sessions finds it there, even if it restarts before it gets this message
		m.out.open.Send(msg)
	case *hangUpAll:
		m.records.refuse(msg.err)
		m.out.hangUpAll.Send(msg)
	case *settle:
		m.out.settle.Send(msg)
	case *transfer:
		m.out.transfer.Send(msg)
	default:
		m.system.Lifecycle(c)
	}
}
