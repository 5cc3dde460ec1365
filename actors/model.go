package actors

import (
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
)

// modelActor supervises all that belongs to one model alone. What comes from outside for its sessions passes through
// it: they may be gone for a moment, while it restarts. It accepts *open (facade) and *hangUpAll (facade, house). Its
// incarnations share this value.
type modelActor struct {
	engine  *Engine
	records *records
}

// modelMemory is what outlives the actors of a model.
type modelMemory struct {
	generations atomic.Uint64        // of the scheduler
	ids         atomic.Uint64        // of sequences
	sampling    atomic.Pointer[step] // what the sampler works on
}

func (m *modelActor) begin(int) actor.Actor { return m }

func (m *modelActor) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		if err := m.start(c); err != nil {
			m.engine.fail(err)
		}
	case *actor.Restarting:
		m.records.move() // its children only stop to be started again
	case *open:
		m.records.put(m.engine.session(msg.record.id).Id, msg.record) // however often sessions restarts, it finds it
		m.engine.wiring.modelEdges.open.Send(msg)
	case *hangUpAll:
		m.records.refuse(msg.err)
		m.engine.wiring.modelEdges.hangUpAll.Send(msg)
	default:
		m.engine.house.system.Lifecycle(c)
	}
}

func (m *modelActor) start(c actor.Context) error {
	e, w := m.engine, m.engine.wiring
	h := e.house
	s := &sessions{engine: e, out: w.sessionsEdges, records: m.records}
	s.supervisor = h.system.Supervisor(s.gaveUp)
	return w.graph.Spawn(c,
		run.Child{At: w.kv, Produce: func(n int) actor.Actor {
			return &kvOwner{system: h.system, out: w.kvEdges, classes: e.spec.classes(), stats: &e.stats, incarnation: n}
		}},
		run.Child{At: w.sampler, Produce: func(n int) actor.Actor {
			return &sampler{system: h.system, out: w.samplerEdges, vocab: e.spec.bound.Vocab, kept: &e.kept, incarnation: n}
		}},
		run.Child{At: w.scheduler, Produce: func(n int) actor.Actor {
			return &scheduler{system: h.system, turns: h.turns, log: h.log, out: w.schedulerEdges, spec: e.spec,
				streams: e.spec.streams(), lost: e.fail, stats: &e.stats, kept: &e.kept, incarnation: n}
		}},
		run.Child{At: w.sessions, Children: s.supervisor, Produce: func(int) actor.Actor { return s }},
	)
}

// records are the open requests of a model, by the id of their session's actor. They outlive sessions.
type records struct {
	mu       sync.Mutex
	byID     map[string]*record
	refusing error // why no more sessions are opened
}

func newRecords() *records { return &records{byID: make(map[string]*record)} }

func (r *records) get(id string) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *records) put(id string, rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[id] = rec
}

func (r *records) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// refuse has no more sessions opened.
func (r *records) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusing = err
}

// refused is why none are opened, if so.
func (r *records) refused() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusing
}

// all lists them.
func (r *records) all() (all []*record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.byID {
		all = append(all, rec)
	}
	return all
}

// move says that the sessions stop only to be started again.
func (r *records) move() {
	for _, rec := range r.all() {
		rec.moving.Store(true)
	}
}
