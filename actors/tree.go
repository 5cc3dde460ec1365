package actors

import (
	"cmp"
	"net/url"
	"runtime"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/storage/pin"
	"github.com/sluice-ai/sluice/storage/uring"
)

// Here a house is put together: who is whose child, and what each of them is given.

func newHouse(c *HouseConfig, specs []*spec, tapes []*tape, slabs *pin.Arena) *House {
	h := &House{
		system: run.NewSystem(c.Log), log: c.Log, device: c.Device, slabs: slabs, sums: uring.NewSums(),
		health: newHealth(), empty: make(chan struct{}), disk: tiers.OpenRing,
	}
	if c.disk != nil {
		h.disk = c.disk
	}
	h.late, h.quick, h.masking = cmp.Or(c.late, usuallyLate), cmp.Or(c.quick, constrain.Quick), func() {}
	if c.masking != nil {
		h.masking = c.masking
	}
	h.turns = run.NewTurns(crowded(c.Device.Traits(), specs), batch.Window/4) // waiting must not use up a client's credit
	slots := 0
	for _, s := range specs {
		slots += s.sharedSlots()
	}
	h.wiring = wireHouse(h.system, h.turns, slots)
	compute := h.system.Spans().Track(h.wiring.device.Address.Id + "/compute")
	h.watch = &watch{spans: h.system.Spans(), idle: compute.Waits()}
	for i, s := range specs {
		t := h.newTenant(s, tapes[i], compute)
		h.tenants, h.watch.models = append(h.tenants, t), append(h.watch.models, &t.stats)
	}
	return h
}

// crowded says whether steps take every core on a device that computes some of their segments.
func crowded(t backend.Traits, specs []*spec) bool {
	cores := runtime.GOMAXPROCS(0)
	return slices.ContainsFunc(specs, func(s *spec) bool {
		return slices.ContainsFunc(s.bound.Program.All(), func(segment int) bool {
			return t.Of(&s.layout.Layout, segment).Threads >= cores
		})
	})
}

// newTenant takes a model in. The spans of its segments go where the device's are.
func (h *House) newTenant(s *spec, tape *tape, compute *trace.Track) *tenant {
	path := h.wiring.house.Address.Id + "/model/" + pathOf(s.info.Name)
	t := &tenant{spec: s, tape: tape, log: h.log, health: newHealth(),
		wiring: wireModel(h.system, h.turns, h.wiring, path, s.layout.Ring())}
	t.stats.spans = compute
	return t
}

// pathOf is a name as a part of an actor's path: another one for each name.
func pathOf(name string) string { return url.PathEscape(name) }

// tree is the house's root actor, with all that it will start.
func (h *House) tree() *root {
	w := h.wiring
	r := &root{system: h.system, log: h.log, health: h.health, graph: w.graph, loaded: map[int]bool{}}
	kept := &deviceMemory{}
	for i, t := range h.tenants {
		r.hangUpAll, r.last = append(r.hangUpAll, t.wiring.hangUpAll), append(r.last, t.wiring.model)
		kept.guests = append(kept.guests, &guest{
			index: i, spec: t.spec, tape: t.tape, out: t.wiring.guest, stats: &t.stats, progress: &t.loaded,
			timed: h.device.Traits().Clock,
		})
		if g := kept.guests[i]; h.device.Traits().Memory == backend.OwnMemory && t.spec.streams() {
			path := w.device.Address.Id
			g.copies, g.computes = h.system.Spans().Track(path+"/copies"), h.system.Spans().Track(path+"/beside")
		}
	}
	r.last = append(r.last, w.device, w.tiers.Reader, w.tiers.Pool)
	r.children = func() []run.Child {
		all := append(w.tiers.Shared(h.system, h.log, h.slabs, h.disk, h.sums), run.Child{
			At: w.device, Children: h.system.Supervisor(h.gaveUp),
			Produce: func(n int) actor.Actor { return h.newDevice(kept, n) },
		})
		for _, t := range h.tenants {
			all = append(all, h.modelChild(t))
		}
		return all
	}
	return r
}

func (h *House) newDevice(kept *deviceMemory, incarnation int) *device {
	traits := h.device.Traits()
	d := &device{
		out: h.wiring.deviceEdges, tiers: h.wiring.tiers, graph: h.wiring.graph, system: h.system, turns: h.turns,
		log: h.log, backend: h.device, slabs: h.slabs, kept: kept, incarnation: incarnation,
		order: batch.NewTurns(len(kept.guests)), idle: h.watch.idle, flight: traits.Flight,
		at:       cursor{turns: h.turns, idle: h.watch.idle, working: &kept.working},
		watchdog: watchdog{most: h.late, debt: &h.wiring.tiers.Debt, wake: h.wiring.deviceEdges.overdue},
	}
	if traits.Clock {
		d.at.idle = trace.Aside()
		d.timed = &timed{idle: d.idle, held: d.at.idle}
	}
	return d
}

// modelChild is what belongs to one model alone.
func (h *House) modelChild(t *tenant) run.Child {
	w := t.wiring
	m := &modelActor{
		system: h.system, graph: w.graph, lost: t.fail, out: w.modelEdges, records: newRecords(w.sessions.Address.Id),
	}
	m.children = func() []run.Child {
		return []run.Child{
			h.kvChild(t), h.samplerChild(t), h.masksChild(t), h.schedulerChild(t), h.sessionsChild(t, m.records),
		}
	}
	return run.Child{At: w.model, Graph: w.graph, Name: "model/" + pathOf(t.spec.info.Name),
		Children: h.system.Supervisor(t.gaveUp), Produce: func(int) actor.Actor { return m }}
}

func (h *House) kvChild(t *tenant) run.Child {
	return run.Child{At: t.wiring.kv, Produce: func(n int) actor.Actor {
		return &kvOwner{
			system: h.system, out: t.wiring.kvEdges, classes: t.spec.classes(), stats: &t.stats, incarnation: n,
		}
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
		return &scheduler{
			system: h.system, turns: h.turns, log: h.log, out: t.wiring.schedulerEdges, spec: t.spec, tape: t.tape,
			streams: t.spec.streams(), lost: t.fail, stats: &t.stats, generations: &t.generations, incarnation: n,
		}
	}}
}

func (h *House) sessionsChild(t *tenant, all *records) run.Child {
	w := t.wiring
	s := &sessions{
		system: h.system, graph: w.graph, session: w.session, out: w.sessionsEdges, records: all,
		begin: func(r *record) actor.Actor {
			return &session{system: h.system, turns: h.turns, spec: t.spec, stats: &t.stats, ids: &t.sequences,
				out: w.sessionEdges, record: r}
		},
	}
	s.supervisor = h.system.Supervisor(s.gaveUp)
	return run.Child{At: w.sessions, Children: s.supervisor, Produce: func(int) actor.Actor { return s }}
}
