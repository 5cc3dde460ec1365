package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// All that sessions accepts: *restarted (scheduler), and
type (
	// open, from the engine's facade: begin a session for the record.
	open struct{ record *record }
	// hangUpAll, from the engine at shutdown: give every request up.
	hangUpAll struct{ err error }
)

func (*hangUpAll) Late() {}
func (m *open) Refused() { m.record.refuse(ErrClosed) }

// sessions supervises one session for each request. Its incarnations share the records, from which the sessions
// begin again when it restarts.
type sessions struct {
	*core
	out        sessionsEdges
	supervisor *run.Supervisor
	records    map[string]*record // by actor id
	refusing   error              // why no more sessions are opened
}

func (s *sessions) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		for _, r := range s.records {
			r.moving.Store(false)
			s.open(c, r)
		}
	case *actor.Restarting:
		for _, r := range s.records {
			r.moving.Store(true)
		}
	case *open:
		s.open(c, m.record)
	case *restarted:
		for _, child := range c.Children() {
			s.out.restarted.At(child).Send(&restarted{})
		}
	case *hangUpAll:
		s.refusing = m.err
		for _, child := range c.Children() {
			s.out.hangUp.At(child).Send(&hangUp{m.err})
		}
	case *actor.Terminated:
		s.supervisor.Forget(m.Who.Id)
		s.system.Forget(m.Who.Id)
		if r := s.records[m.Who.Id]; r != nil && !r.moving.Load() {
			delete(s.records, m.Who.Id)
		}
	default:
		s.system.Lifecycle(c)
	}
}

func (s *sessions) open(c actor.Context, r *record) {
	if s.refusing != nil {
		r.refuse(s.refusing)
		return
	}
	id := s.wiring.places.sessions.Address.Id + "/" + r.id
	s.records[id] = r
	err := s.spawn(c, s.wiring.places.session, r.id, nil, func(int) actor.Actor {
		return &session{core: s.core, out: s.wiring.session, record: r}
	})
	if err != nil {
		delete(s.records, id)
		s.system.Forget(id)
		r.refuse(err)
	}
}

// gaveUp ends the request of a session that keeps failing.
func (s *sessions) gaveUp(child *actor.PID, reason any) {
	if r := s.records[child.Id]; r != nil {
		r.stream.finish(r.usage, fmt.Errorf("this request cannot be served: its session keeps failing: %v", reason))
	}
}

// refuse ends a request that never had a session.
func (r *record) refuse(err error) {
	r.stream.finish(r.usage, err)
	r.leave()
}
