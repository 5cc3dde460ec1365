package actors

import (
	"cmp"
	"net/url"
	"runtime"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mem"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/speculate"
	"github.com/sluice-ai/sluice/storage/uring"
)

// This file puts a house together: which actor is whose child, and what each of them is given.

func newHouse(c *HouseConfig) *House {
	h := &House{
		system: run.NewSystem(c.Log), log: c.Log, device: c.Device, slabs: new(tiers.Slabs), sums: uring.NewSums(),
		health: newHealth(), bars: map[string]bar{}, kept: &deviceMemory{}, hooks: c.hooks,
	}
	if c.Cores != nil && c.Device.Traits().Memory == backend.HostMemory {
		h.cores = c.Cores.Join()
	}
	if h.disk == nil {
		h.disk = tiers.OpenRing
	}
	if h.masking == nil {
		h.masking = func() {}
	}
	h.late, h.quick = cmp.Or(h.late, usuallyLate), cmp.Or(h.quick, constrain.Quick)
	for i, d := range devicesOf(c.Device.Traits()) {
		h.budget = append(h.budget, d.Free)
		if i == 0 {
			h.budget[0] = mem.Available()
		}
	}
	if c.Memory > 0 {
		h.budget[0] = min(h.budget[0], c.Memory)
	}
	h.turns = run.NewTurns(false, batch.Window/4) // waiting must not use up a client's credit
	h.wiring = wireHouse(h.system, h.turns)
	h.compute = h.system.Spans().Track(h.wiring.device.Address.Id + "/compute")
	h.watch = &watch{spans: h.system.Spans(), idle: h.compute.Waits()}
	return h
}

// crowded says whether, for any of the models, the device computes some segments with as many threads as there are
// cores.
func crowded(t backend.Traits, all []*tenant) bool {
	cores := runtime.GOMAXPROCS(0)
	return slices.ContainsFunc(all, func(x *tenant) bool {
		s := x.spec
		return slices.ContainsFunc(s.bound.Program.All(), func(segment int) bool {
			return t.Of(&s.layout.Layout, segment).Threads >= cores
		})
	})
}

// newTenant adds a model to the house. The spans of its segments go to the device's track. The caller holds the
// house's mutex.
func (h *House) newTenant(s *spec, track *track) *tenant {
	path := h.wiring.house.Address.Id + "/model/" + pathOf(s.info.Name)
	t := &tenant{spec: s, track: track, log: h.log, health: newHealth(), stay: newStay(),
		wiring: wireModel(h.system, h.turns, h.wiring, path, s.layout.Ring(), s.sharedSlots())}
	t.stats.spans, t.stay.takes, t.caches.rooms = h.compute, s.takes(), s.classes()
	t.slots.most = s.info.Sequences
	t.caches.keep(s, h.device, h.log)
	if s.eye != nil {
		s.eye.spans = h.system.Spans().Track(path + "/tower")
	}
	if s.ear != nil {
		s.ear.spans = h.system.Spans().Track(path + "/encoder")
	}
	for slices.ContainsFunc(h.tenants, func(o *tenant) bool { return o.stay.index == t.stay.index }) {
		t.stay.index++
	}
	t.lodger = &lodger{guest: h.newGuest(t), child: h.modelChild(t), to: t.wiring.root,
		hangUp: func(err error) { t.wiring.hangUpAll.Send(&hangUpAll{err}) }, here: t.stay.start}
	h.wiring.graph.Join(t.wiring.graph)
	h.watch.add(&t.stats)
	h.tenants = append(h.tenants, t)
	return t
}

// pathOf is a model's name as a part of an actor's path. Different names give different parts.
func pathOf(name string) string { return url.PathEscape(name) }

func (h *House) newGuest(t *tenant) *guest {
	traits := h.device.Traits()
	g := &guest{
		index: t.stay.index, spec: t.spec, track: t.track, out: t.wiring.guest, stats: &t.stats, progress: &t.loaded,
		caches: &t.caches, passing: newPassing(t.spec),
		timed: traits.Clock,
		tell: guestNews{
			ready: func() { t.health.set(nil) }, fail: t.fail, barred: func(err error) { h.barred(t, err) },
			measured: func(m backend.Memory) { h.measured(t, &m) },
			gone:     sync.OnceFunc(func() { close(t.stay.gone) }),
		},
	}
	if traits.Memory == backend.OwnMemory && t.spec.streams() {
		path := h.wiring.device.Address.Id
		g.copies, g.computes = h.system.Spans().Track(path+"/copies"), h.system.Spans().Track(path+"/beside")
	}
	return g
}

// tree returns the house's root actor, which starts all others.
func (h *House) tree(supervisor *run.Supervisor) *root {
	w := h.wiring
	return &root{
		system: h.system, log: h.log, health: h.health, graph: w.graph, supervisor: supervisor,
		leaving: map[string]*leave{}, last: []run.Place{w.device, w.tiers.Reader, w.tiers.Pool},
		shared: func() []run.Child {
			return append(w.tiers.Shared(h.system, h.log, h.slabs, h.disk, h.sums), run.Child{
				At: w.device, Children: h.system.Supervisor(h.gaveUp),
				Produce: func(n int) actor.Actor { return h.newDevice(n) },
			})
		},
	}
}

func (h *House) newDevice(incarnation int) *device {
	traits := h.device.Traits()
	d := &device{
		out: h.wiring.deviceEdges, tiers: h.wiring.tiers, graph: h.wiring.graph, system: h.system, turns: h.turns,
		log: h.log, backend: h.device, slabs: h.slabs, kept: h.kept, incarnation: incarnation,
		order: batch.NewTurns(0), flight: traits.Flight,
		spent:    accounts{idle: h.watch.idle, why: h.watch.why, again: incarnation > 0},
		at:       cursor{turns: h.turns, cores: h.cores, idle: h.watch.idle, working: &h.kept.working},
		watchdog: watchdog{most: h.late, debt: &h.wiring.tiers.Debt, wake: h.wiring.deviceEdges.overdue},
	}
	if traits.Clock {
		d.at.idle = trace.Aside()
		d.spent.timed = &timed{idle: d.spent.idle, held: d.at.idle}
	}
	return d
}

// modelChild is the actor of one model, with its children.
func (h *House) modelChild(t *tenant) run.Child {
	w := t.wiring
	m := &modelActor{
		system: h.system, graph: w.graph, lost: t.fail, here: t.stay.start, out: w.modelEdges,
		records: newRecords(w.sessions.Address.Id),
	}
	m.children = func() []run.Child {
		return []run.Child{
			h.moverChild(t), h.kvChild(t), h.samplerChild(t), h.masksChild(t), h.schedulerChild(t), h.sessionsChild(t, m.records),
		}
	}
	return run.Child{At: w.model, Graph: w.graph, Name: "model/" + pathOf(t.spec.info.Name),
		Children: h.system.Supervisor(t.gaveUp), Produce: func(int) actor.Actor { return m }}
}

func (h *House) kvChild(t *tenant) run.Child {
	return run.Child{At: t.wiring.kv, Produce: func(n int) actor.Actor {
		return &kvOwner{
			system: h.system, out: t.wiring.kvEdges, classes: t.spec.classes(), stats: &t.stats, incarnation: n,
			closed: &t.caches.closed, slots: &t.slots, news: t.spec.news, outlook: &t.outlook,
			transfers: transfers{open: &t.transfers},
		}
	}}
}

func (h *House) moverChild(t *tenant) run.Child {
	return run.Child{At: t.wiring.mover, Produce: func(n int) actor.Actor {
		return &mover{system: h.system, out: t.wiring.moverEdges, memory: &t.caches, incarnation: n}
	}}
}

func (h *House) samplerChild(t *tenant) run.Child {
	return run.Child{At: t.wiring.sampler, Produce: func(n int) actor.Actor {
		return &sampler{
			system: h.system, out: t.wiring.samplerEdges, width: t.spec.bound.OutputWidth(), working: &t.sampling,
			quick: h.quick, incarnation: n,
		}
	}}
}

func (h *House) masksChild(t *tenant) run.Child {
	return run.Child{At: t.wiring.masks, Produce: func(n int) actor.Actor {
		return &masks{system: h.system, out: t.wiring.masksEdges, working: &t.masking, begins: h.masking,
			incarnation: n}
	}}
}

func (h *House) schedulerChild(t *tenant) run.Child {
	return run.Child{At: t.wiring.scheduler, Produce: func(n int) actor.Actor {
		s := &scheduler{
			system: h.system, turns: h.turns, log: h.log, out: t.wiring.schedulerEdges, spec: t.spec, track: t.track,
			streams: t.spec.streams(), lost: t.fail, stats: &t.stats, generations: &t.generations, incarnation: n,
			guesses: guesses{propose: h.propose, took: h.took, again: len(t.spec.bound.States) > 0, stats: &t.stats,
				width: t.spec.heard(), track: t.track},
			following: t.wiring.following, foreseeing: foreseeing{to: &t.outlook},
		}
		if s.following.known = t.spec.bound.Known; t.target != nil {
			s.following.target = t.target.wiring.scheduler.Address
		}
		s.drafting = h.newDrafting(t, n)
		s.guesses.learned = s.drafting.learned
		return s
	}}
}

// newDrafting is what a model's scheduler knows of the model's draft model, if there is one.
func (h *House) newDrafting(t *tenant, incarnation int) drafting {
	d := drafting{out: t.wiring.drafting, incarnation: incarnation, vocab: t.spec.bound.Vocab, took: h.took}
	if x := t.draft; x != nil && x.health.get() == nil {
		each, row := t.spec.draftCosts(x.spec)
		d.learned = speculate.NewDrafts(each)
		d.by = &drafter{at: x.wiring.scheduler.Address, ids: &x.sequences, context: x.spec.plan.Context,
			vocab: x.spec.bound.Vocab, row: row, head: x.spec.head,
			few: x.spec.bound.Known != nil}
	}
	return d
}

func (h *House) sessionsChild(t *tenant, all *records) run.Child {
	w := t.wiring
	s := &sessions{
		system: h.system, graph: w.graph, session: w.session, out: w.sessionsEdges, records: all,
		begin: func(r *record) actor.Actor {
			return &session{system: h.system, turns: h.turns, spec: t.spec, stats: &t.stats, ids: &t.sequences,
				outlook: &t.outlook, out: w.sessionEdges, record: r}
		},
	}
	s.supervisor = h.system.Supervisor(s.gaveUp)
	return run.Child{At: w.sessions, Children: s.supervisor, Produce: func(int) actor.Actor { return s }}
}
