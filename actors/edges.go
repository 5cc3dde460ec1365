package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
)

// Bounds of the tree. Together with the edges below they bound every mailbox.
const (
	maxSessions = 256 // open requests, queued ones included; more are answered ErrBusy
	slabCount   = 12  // page-locked slabs between disk and device: some are filled while others are emptied
	packers     = 8   // goroutines that empty them, if there are as many cores
	fetchAhead  = 2   // groups that the uploader works on at once
)

// controlCredits bounds what neighbours may say about restarts before the receiver gets to it: one for each
// restart that supervision allows before it gives up, for each of three neighbours.
const controlCredits = 3 * (run.MaxRestarts + 1)

const restarts = "one a restart, and restarts are bounded"

// restarted may say which step its sender died of.
type restarted = run.Restarted[step]

// wiring is the whole graph: where the actors stand, and what each may send. An actor is built with its own edges and
// has no others, but for those that come with a request to be answered.
type wiring struct {
	graph  *run.Graph
	places places

	facade     facadeEdges
	root       rootEdges
	sessions   sessionsEdges
	session    sessionEdges
	scheduler  schedulerEdges
	kv         kvEdges
	device     deviceEdges
	sampler    samplerEdges
	prefetcher prefetcherEdges
	uploader   uploaderEdges
	packer     packerEdges
	reader     readerEdges
	pool       poolEdges
}

// places are where the actors stand, and on which line they take turns: those of a step, and those that deliver its
// tokens.
type places struct {
	anybody, facade, stream                    run.Place // no actors, or any
	engine, sessions, session                  run.Place
	scheduler, kv, device, sampler             run.Place
	prefetcher, uploader, packer, reader, pool run.Place
}

type (
	facadeEdges struct {
		open      run.Counted[open]
		hangUp    run.Edge[hangUp] // at a session
		hangUpAll run.Edge[hangUpAll]
		shutdown  run.Edge[shutdown]
	}
	rootEdges struct {
		hangUpAll run.Edge[hangUpAll]
		failed    run.Edge[failed]
	}
	sessionsEdges struct { // at a session
		restarted run.Edge[restarted]
		hangUp    run.Edge[hangUp]
	}
	sessionEdges struct {
		submit run.Edge[submit]
		cancel run.Edge[cancel]
		wake   run.Edge[wake] // its stream's
	}
	schedulerEdges struct {
		partners  run.Partners // kv, device, sampler
		restarted run.Edge[restarted]
		request   run.Edge[kvRequest]
		step      run.Counted[step]
		wake      run.Edge[wake]
		token     run.Edge[tokenMessage] // at a session
		failure   run.Edge[seqFailed]    // at a session
	}
	kvEdges struct {
		restarted run.Edge[restarted]
		answer    run.Edge[kvRequest]
	}
	deviceEdges struct {
		restarted    run.Edge[restarted]
		step, failed run.Edge[step]
		ring         run.Edge[stepRing]
		computed     run.Edge[computed] // from the device's own threads
		loaded       run.Edge[loaded]
		inPlace      run.Edge[loaded]
		broken       run.Edge[failed]
	}
	samplerEdges struct {
		restarted run.Edge[restarted]
		step      run.Edge[step]
	}
	prefetcherEdges struct {
		fetch  run.Counted[fetch]
		loaded run.Edge[loaded]
	}
	uploaderEdges struct {
		partners  run.Partners // reader, pool, packer
		restarted run.Edge[restarted]
		resident  run.Edge[resident]
		lease     run.Counted[lease]
		granted   run.Edge[granted] // the pool's answer
		release   run.Edge[release]
		read      run.Edge[read]
		data      run.Edge[read] // the reader's answer
		pack      run.Edge[pack]
		broken    run.Edge[failed]
	}
	packerEdges struct {
		restarted run.Edge[restarted]
		packed    run.Edge[pack]
	}
	readerEdges struct{ restarted run.Edge[restarted] }
	poolEdges   struct{ restarted run.Edge[restarted] }
)

func placesIn(s *run.System, turns *run.Turns) (p places) {
	place := func(kind, path string) run.Place { return run.Place{Kind: kind, Address: s.Address(path)} }
	inStep := func(kind string) run.Place {
		return run.Place{Kind: kind, Address: s.Address("engine/" + kind), Line: &turns.Steps}
	}
	p.anybody, p.facade, p.stream = run.Place{Kind: "any"}, run.Place{Kind: "facade"}, run.Place{Kind: "stream"}
	p.engine = place("engine", "engine")
	p.sessions = place("sessions", "engine/sessions")
	p.session = run.Place{Kind: "session", Line: &turns.Outlets}
	p.scheduler, p.kv, p.device, p.sampler = inStep("scheduler"), inStep("kv"), inStep("device"), inStep("sampler")
	p.prefetcher = place("prefetcher", "engine/device/prefetcher")
	p.uploader = place("uploader", "engine/device/uploader")
	p.packer = place("packer", "engine/device/packer")
	p.reader, p.pool = place("reader", "engine/reader"), place("pool", "engine/pool")
	return p
}

// wire declares every edge.
func wire(s *run.System, turns *run.Turns) *wiring {
	w := &wiring{graph: run.NewGraph(s), places: placesIn(s, turns)}
	w.wireRequests(w.graph, &w.places)
	w.wireSteps(w.graph, &w.places)
	w.wireLoading(w.graph, &w.places)
	w.wireRestarts(w.graph, &w.places)
	return w
}

// wireRequests declares what carries requests and their answers.
func (w *wiring) wireRequests(g *run.Graph, p *places) {
	const once = "one a request, and one when it starts again"
	w.facade.open = run.Count[open](g, p.facade, p.sessions, maxSessions, "the request is refused: busy")
	w.session.submit = run.Connect[submit](g, p.session, p.scheduler, run.Each(w.facade.open.Edge).Again(), once)
	w.session.cancel = run.Connect[cancel](g, p.session, p.scheduler, run.Each(w.facade.open.Edge).Again(), once)
	w.session.wake = run.Connect[wake](g, p.stream, p.scheduler, run.Each(w.facade.open.Edge).Again(),
		"one a request, sent only when it was starved")
	w.facade.hangUp = run.Connect[hangUp](g, p.stream, p.session, run.Most(1), "repeated cancels are one")
	w.scheduler.token = run.Connect[tokenMessage](g, p.scheduler, p.session, run.Most(batch.Window).Again(),
		"a window; then the sequence waits until its client reads; another when it starts again")
	w.scheduler.failure = run.Connect[seqFailed](g, p.scheduler, p.session, run.Most(1).Again(), "one a sequence")
}

// wireSteps declares what a step takes.
func (w *wiring) wireSteps(g *run.Graph, p *places) {
	w.scheduler.request = run.Connect[kvRequest](g, p.scheduler, p.kv, run.Each(w.session.submit),
		"the sequence waits for its last answer")
	w.kv.answer = run.Connect[kvRequest](g, p.kv, p.scheduler, run.Each(w.scheduler.request), "an answer to each")
	w.scheduler.step = run.Count[step](g, p.scheduler, p.device, 1, "the next step waits")
	w.scheduler.wake = run.Connect[wake](g, p.scheduler, p.scheduler, run.Each(w.session.wake),
		"one a starved sequence whose client read meanwhile")
	w.device.step = run.Connect[step](g, p.device, p.sampler, run.Each(w.scheduler.step.Edge), "one a step")
	w.device.failed = run.Connect[step](g, p.device, p.scheduler, run.Each(w.scheduler.step.Edge), "a failed one returns")
	w.device.ring = run.Connect[stepRing](g, p.device, p.scheduler, run.Most(controlCredits), restarts)
	w.device.computed = run.Connect[computed](g, p.device, p.device, run.Each(w.scheduler.step.Edge),
		"one a step, from the device's own threads")
	w.sampler.step = run.Connect[step](g, p.sampler, p.scheduler, run.Each(w.device.step), "one a step")
}

// wireLoading declares what brings the weights.
func (w *wiring) wireLoading(g *run.Graph, p *places) {
	w.prefetcher.fetch = run.Count[fetch](g, p.prefetcher, p.uploader, fetchAhead, "the next group waits").Twice()
	w.uploader.resident = run.Connect[resident](g, p.uploader, p.prefetcher, run.Each(w.prefetcher.fetch.Edge), "one a fetch")
	u := &w.uploader
	u.lease = run.Count[lease](g, p.uploader, p.pool, slabCount, "the piece waits for a slab")
	u.granted = run.Connect[granted](g, p.pool, p.uploader, run.Each(u.lease.Edge), "an answer to each")
	u.release = run.Connect[release](g, p.uploader, p.pool, run.Each(u.lease.Edge), "one a slab")
	u.read = run.Connect[read](g, p.uploader, p.reader, run.Each(u.lease.Edge), "one a slab")
	u.data = run.Connect[read](g, p.reader, p.uploader, run.Each(u.read), "an answer to each")
	u.pack = run.Connect[pack](g, p.uploader, p.packer, run.Each(u.lease.Edge), "one a slab")
	w.packer.packed = run.Connect[pack](g, p.packer, p.uploader, run.Each(u.pack), "an answer to each")
	w.prefetcher.loaded = run.Connect[loaded](g, p.prefetcher, p.device, run.Most(1), "once a load")
	w.device.inPlace = run.Connect[loaded](g, p.device, p.device, run.Most(1), "once, where weights stay in place")
	w.device.loaded = run.Connect[loaded](g, p.device, p.engine, run.Most(controlCredits), "once a load")
}

// wireRestarts declares who hears of whose end: a neighbour's, or the engine's.
func (w *wiring) wireRestarts(g *run.Graph, p *places) {
	w.scheduler.partners = run.Partner(g, p.scheduler, controlCredits, p.kv, p.device, p.sampler)
	w.uploader.partners = run.Partner(g, p.uploader, controlCredits, p.reader, p.pool, p.packer)
	tell := func(from, to run.Place) run.Edge[restarted] {
		return run.Connect[restarted](g, from, to, run.Most(controlCredits), restarts)
	}
	w.kv.restarted, w.device.restarted = tell(p.kv, p.scheduler), tell(p.device, p.scheduler)
	w.sampler.restarted = tell(p.sampler, p.scheduler)
	w.scheduler.restarted, w.sessions.restarted = tell(p.scheduler, p.sessions), tell(p.sessions, p.session)
	w.reader.restarted, w.pool.restarted = tell(p.reader, p.uploader), tell(p.pool, p.uploader)
	w.packer.restarted, w.uploader.restarted = tell(p.packer, p.uploader), tell(p.uploader, p.prefetcher)

	fail := func(from run.Place) run.Edge[failed] {
		return run.Connect[failed](g, from, p.engine, run.Most(controlCredits), "again only after a restart")
	}
	w.root.failed, w.device.broken, w.uploader.broken = fail(p.anybody), fail(p.device), fail(p.uploader)
	w.root.hangUpAll = run.Connect[hangUpAll](g, p.engine, p.sessions, run.Most(controlCredits), "one a failure")
	w.facade.hangUpAll = run.Connect[hangUpAll](g, p.facade, p.sessions, run.Most(1), "once, at the end")
	w.sessions.hangUp = run.Connect[hangUp](g, p.sessions, p.session, run.Most(controlCredits), "one a failure")
	w.facade.shutdown = run.Connect[shutdown](g, p.facade, p.engine, run.Most(1), "once, at the end")
}

// Edge is one way for messages from an actor to another, as it is declared.
type Edge = run.Declared

// Edges lists them all.
func Edges() []Edge { return wire(nil, run.NewTurns(false, 0)).graph.Edges() }

// spawn starts a child of c's actor at its place.
func (k *core) spawn(c actor.Context, at run.Place, name string, children *run.Supervisor,
	produce func(incarnation int) actor.Actor) error {
	return k.system.Spawn(c, run.Spec{
		Name: name, Capacity: k.wiring.graph.Capacity(at), Line: at.Line, Children: children, Produce: produce,
	})
}
