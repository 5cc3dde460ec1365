package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// Messages that sessions accepts, beside *restarted (scheduler).
type (
	// open, from the engine's facade by way of the model, asks for a session for the record.
	open struct{ record *record }
	// hangUpAll, from the house by way of the model, cancels every request.
	hangUpAll struct{ err error }
)

func (*hangUpAll) Late() {}

// Late says that it is no fault if sessions stops, with its model, while this waits: records has the request, where the
// next incarnation finds it.
func (*open) Late() {}

// Refused ends the request: sessions has stopped, and not only to be started again.
func (m *open) Refused() {
	if !m.record.stays() {
		m.record.refuse(ErrClosed)
	}
}

// sessions supervises one session for each request. Its incarnations share the records: after a restart, new sessions
// go on from those.
type sessions struct {
	system     *run.System
	graph      *run.Graph
	session    run.Place
	out        sessionsEdges
	supervisor *run.Supervisor
	begin      func(*record) actor.Actor // makes a session
	records    *records
	live       map[string]bool // sessions of this incarnation, by id
}

type sessionsEdges struct { // to a session
	restarted run.Edge[restarted]
	hangUp    run.Edge[hangUp]
}

func (s *sessions) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		s.live = make(map[string]bool)
		s.records.moving.Store(false)
		for _, r := range s.records.all() {
			s.open(c, r)
		}
	case *actor.Restarting:
		s.records.moving.Store(true)
	case *open:
		s.open(c, m.record)
	case *restarted:
		for _, child := range c.Children() {
			s.out.restarted.At(child).Send(&restarted{})
		}
	case *hangUpAll:
		for _, child := range c.Children() {
			s.out.hangUp.At(child).Send(&hangUp{m.err})
		}
	case *actor.Terminated:
		delete(s.live, m.Who.Id)
		s.supervisor.Forget(m.Who.Id)
		s.system.Forget(m.Who.Id)
		if r := s.records.get(m.Who.Id); r != nil && !r.stays() {
			s.records.drop(m.Who.Id)
		}
	default:
		s.system.Lifecycle(c)
	}
}

func (s *sessions) open(c actor.Context, r *record) {
	id := s.records.idOf(r)
	if err := s.records.refused(); err != nil {
		s.records.drop(id)
		r.refuse(err)
		return
	}
	if s.live[id] {
		return // it was among the records when this incarnation started
	}
	s.live[id] = true
	produce := func(int) actor.Actor { return s.begin(r) }
	err := s.graph.Spawn(c, run.Child{At: s.session, Name: r.id, Produce: produce})
	if err != nil {
		s.records.drop(id)
		s.system.Forget(id)
		r.refuse(err)
	}
}

// gaveUp ends the request of a session that keeps failing.
func (s *sessions) gaveUp(child *actor.PID, reason any) {
	if r := s.records.get(child.Id); r != nil {
		r.end(fmt.Errorf("this request cannot be served: its session keeps failing: %v", reason))
	}
}
