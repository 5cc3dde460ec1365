package actors

import (
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/place"
)

// Bounds of the tree. Together with the edges they bound every mailbox.
const (
	maxSessions = 256 // open requests of a model, queued ones included; more are answered ErrBusy
	packers     = 8   // goroutines that empty slabs, if there are as many cores
	fetchAhead  = 2   // groups that the uploader works on at once, of those that no step waits for
	fetches     = 16  // likewise, of all
	straight    = 16  // reads into slots that are under way at once
	readsAtOnce = place.Slabs + straight
)

// controlCredits bounds what neighbours may say about restarts before the receiver gets to it: one for each
// restart that supervision allows before it gives up, for each of three neighbours.
const controlCredits = 3 * (run.MaxRestarts + 1)

const restarts = "one a restart, and restarts are bounded"

// restarted may say which step its sender died of.
type restarted = run.Restarted[step]

// anybody stands for actors of any kind.
var anybody = run.Place{Kind: "any"}

// Edge is one way for messages from an actor to another, as it is declared.
type Edge = run.Declared

// Edges lists the edges of a house of one model.
func Edges() []Edge {
	turns := run.NewTurns(false, 0)
	house := wireHouse(nil, turns, 0)
	model := wireModel(nil, turns, house, "", 1)
	return append(model.graph.Edges(), house.graph.Edges()...)
}

// tell declares that an actor may say that it has restarted.
func tell(g *run.Graph, from, to run.Place) run.Edge[restarted] {
	return run.Connect[restarted](g, from, to, run.Most(controlCredits), restarts)
}

// houseWiring is what models share: where those actors stand, and what each may send. An actor is built with its own
// edges and has no others, but for those that come with a request to be answered.
type houseWiring struct {
	graph                                                     *run.Graph
	house, pool, reader, device, prefetcher, uploader, packer run.Place

	shutdown run.Edge[shutdown] // the facade's
	failed   run.Edge[failed]   // supervision's

	deviceEdges
	prefetcherEdges prefetcherEdges
	uploaderEdges   uploaderEdges
	packerEdges     packerEdges
	readerUsers     readerUsers
	poolUsers       poolUsers
}

type (
	deviceEdges struct {
		computed run.Edge[computed] // from the device's own threads
		told     run.Edge[told]     // likewise
		returned run.Edge[returned] // likewise
		loaded   run.Edge[loaded]
		inPlace  run.Edge[loaded]
		want     run.Edge[want]
		broken   run.Edge[failed]
	}
	prefetcherEdges struct {
		fetch  run.Counted[fetch]
		loaded run.Edge[loaded]
		landed run.Edge[landed]
		broken run.Edge[failed]
	}
	uploaderEdges struct {
		partners  run.Partners // reader, pool, packer
		restarted run.Edge[restarted]
		arrived   run.Edge[arrived]
		lease     run.Counted[lease]
		granted   run.Edge[granted] // the pool's answer
		release   run.Edge[release]
		settled   run.Edge[settled]
		read      run.Edge[read]
		straight  run.Counted[read]
		data      run.Edge[read] // the reader's answer
		again     run.Edge[again]
		pack      run.Edge[pack]
	}
	packerEdges struct {
		restarted run.Edge[restarted]
		packed    run.Edge[pack]
	}
	readerUsers struct{ restarted []run.Edge[restarted] } // by uploader
	poolUsers   struct{ restarted []run.Edge[restarted] } // by uploader
)

// wireHouse declares the edges between the actors that models share. Their groups share so many slots.
func wireHouse(s *run.System, turns *run.Turns, slots int) *houseWiring {
	at := func(kind, path string) run.Place { return run.Place{Kind: kind, Address: s.Address(path)} }
	w := &houseWiring{
		graph: run.NewGraph(s),
		house: at("house", "house"), pool: at("pool", "house/pool"), reader: at("reader", "house/reader"),
		device:     run.Place{Kind: "device", Address: s.Address("house/device"), Line: &turns.Steps},
		prefetcher: at("prefetcher", "house/device/prefetcher"), uploader: at("uploader", "house/device/uploader"),
		packer: at("packer", "house/device/packer"),
	}
	w.wireLoading(w.graph)
	w.wireStreaming(w.graph, max(slots, 1))
	w.wireFaults(w.graph)
	return w
}

// wireLoading declares what brings the weights.
func (w *houseWiring) wireLoading(g *run.Graph) {
	f := &w.prefetcherEdges
	f.fetch = run.Count[fetch](g, w.prefetcher, w.uploader, fetches, "the next group waits").Twice()
	f.loaded = run.Connect[loaded](g, w.prefetcher, w.device, run.Most(controlCredits), "once a load and model")
	u := &w.uploaderEdges
	u.arrived = run.Connect[arrived](g, w.uploader, w.prefetcher, run.Each(f.fetch.Edge), "one a fetch")
	u.lease = run.Count[lease](g, w.uploader, w.pool, place.Slabs, "the piece waits for a slab")
	u.granted = run.Connect[granted](g, w.pool, w.uploader, run.Each(u.lease.Edge), "an answer to each")
	u.release = run.Connect[release](g, w.uploader, w.pool, run.Each(u.lease.Edge), "one a slab")
	u.settled = run.Connect[settled](g, w.uploader, w.pool, run.Most(controlCredits), restarts)
	u.read = run.Connect[read](g, w.uploader, w.reader, run.Each(u.lease.Edge), "one a slab")
	u.straight = run.Count[read](g, w.uploader, w.reader, straight, "the piece waits")
	u.data = run.Connect[read](g, w.reader, w.uploader, run.Most(readsAtOnce), "an answer to each")
	u.again = run.Connect[again](g, w.uploader, w.uploader, run.Most(readsAtOnce).Again(), "one a read that failed")
	u.pack = run.Connect[pack](g, w.uploader, w.packer, run.Each(u.lease.Edge), "one a slab")
	w.packerEdges.packed = run.Connect[pack](g, w.packer, w.uploader, run.Each(u.pack), "an answer to each")
	d := &w.deviceEdges
	d.computed = run.Connect[computed](g, w.device, w.device, run.Most(controlCredits), "one a step in flight")
	d.inPlace = run.Connect[loaded](g, w.device, w.device, run.Most(controlCredits), "once, where weights stay in place")
	d.loaded = run.Connect[loaded](g, w.device, w.house, run.Most(controlCredits), "once a load and model")
}

// wireStreaming declares what moves groups that share slots.
func (w *houseWiring) wireStreaming(g *run.Graph, slots int) {
	d := &w.deviceEdges
	d.want = run.Connect[want](g, w.device, w.prefetcher, run.Most(3*slots),
		"one a slot, one more if it is urgent, and that of the item before may not have been heard")
	w.prefetcherEdges.landed = run.Connect[landed](g, w.prefetcher, w.device, run.Most(slots), "one a slot")
	d.returned = run.Connect[returned](g, w.device, w.device, run.Most(slots), "one a slot")
	d.told = run.Connect[told](g, w.device, w.device, run.Most(controlCredits), "one a step in flight")
}

// wireFaults declares who hears of whose end: a neighbour's, or the house's.
func (w *houseWiring) wireFaults(g *run.Graph) {
	u := &w.uploaderEdges
	u.partners = run.Partner(g, w.uploader, controlCredits, w.reader, w.pool, w.packer)
	w.readerUsers.restarted = []run.Edge[restarted]{tell(g, w.reader, w.uploader)}
	w.poolUsers.restarted = []run.Edge[restarted]{tell(g, w.pool, w.uploader)}
	w.packerEdges.restarted, u.restarted = tell(g, w.packer, w.uploader), tell(g, w.uploader, w.prefetcher)
	fail := func(from run.Place) run.Edge[failed] {
		return run.Connect[failed](g, from, w.house, run.Most(controlCredits), "again only after a restart")
	}
	w.failed, w.deviceEdges.broken, w.prefetcherEdges.broken = fail(anybody), fail(w.device), fail(w.prefetcher)
	w.shutdown = run.Connect[shutdown](g, run.Place{Kind: "facade"}, w.house, run.Most(1), "once, at the end")
}

// modelWiring is the same of one model.
type modelWiring struct {
	graph                                            *run.Graph
	model, sessions, session, scheduler, kv, sampler run.Place

	hangUpAll      run.Edge[hangUpAll] // the house's, and supervision's
	facade         facadeEdges
	modelEdges     modelEdges
	sessionsEdges  sessionsEdges
	sessionEdges   sessionEdges
	schedulerEdges schedulerEdges
	kvEdges        kvEdges
	samplerEdges   samplerEdges
	guest          guestEdges
}

type (
	facadeEdges struct {
		open      run.Counted[open]
		hangUp    run.Edge[hangUp] // at a session
		hangUpAll run.Edge[hangUpAll]
	}
	modelEdges struct {
		open      run.Edge[open]
		hangUpAll run.Edge[hangUpAll]
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
		pass      run.Edge[pass]
		look      run.Edge[look]
		wake      run.Edge[wake]
		token     run.Edge[tokenMessage] // at a session
		failure   run.Edge[seqFailed]    // at a session
	}
	kvEdges struct {
		restarted run.Edge[restarted]
		answer    run.Edge[kvRequest]
	}
	samplerEdges struct {
		restarted run.Edge[restarted]
		step      run.Edge[step]
	}
	// guestEdges are the device's to one of its models.
	guestEdges struct {
		scheduler    run.Place
		restarted    run.Edge[restarted]
		step, failed run.Edge[step]
		ring         run.Edge[stepRing]
	}
)

// wireModel declares the edges of a model's actors: those into the house's belong to its graph, since they take room
// there for each model. So many steps may be in flight.
func wireModel(s *run.System, turns *run.Turns, h *houseWiring, path string, flight int) *modelWiring {
	at := func(kind string, line *run.Line) run.Place {
		return run.Place{Kind: kind, Address: s.Address(path + "/" + kind), Line: line}
	}
	w := &modelWiring{
		graph: run.NewGraph(s),
		model: run.Place{Kind: "model", Address: s.Address(path)}, sessions: at("sessions", nil),
		session:   run.Place{Kind: "session", Line: &turns.Outlets},
		scheduler: at("scheduler", &turns.Steps), kv: at("kv", &turns.Steps), sampler: at("sampler", &turns.Steps),
	}
	w.wireRequests(w.graph, h)
	w.wireSteps(w.graph, h, flight)
	w.wireFaults(w.graph, h)
	return w
}

// wireRequests declares what carries requests and their answers.
func (w *modelWiring) wireRequests(g *run.Graph, h *houseWiring) {
	const once = "one a request, and one when it starts again"
	facade, stream := run.Place{Kind: "facade"}, run.Place{Kind: "stream"}
	w.facade.open = run.Count[open](g, facade, w.model, maxSessions, "the request is refused: busy")
	w.modelEdges.open = run.Connect[open](g, w.model, w.sessions, run.Each(w.facade.open.Edge), "passed on")
	each := run.Each(w.facade.open.Edge).Again()
	w.sessionEdges = sessionEdges{
		submit: run.Connect[submit](g, w.session, w.scheduler, each, once),
		cancel: run.Connect[cancel](g, w.session, w.scheduler, each, once),
		wake:   run.Connect[wake](g, stream, w.scheduler, each, "one a request, sent only when it was starved"),
	}
	w.facade.hangUp = run.Connect[hangUp](g, stream, w.session, run.Most(1), "repeated cancels are one")
	w.facade.hangUpAll = run.Connect[hangUpAll](g, facade, w.model, run.Most(1), "once, at the end")
	w.hangUpAll = run.Connect[hangUpAll](g, h.house, w.model, run.Most(controlCredits), "one a failure")
	w.modelEdges.hangUpAll = run.Connect[hangUpAll](g, w.model, w.sessions, run.Most(controlCredits), "passed on")
	w.sessionsEdges.hangUp = run.Connect[hangUp](g, w.sessions, w.session, run.Most(controlCredits), "one a failure")
	w.schedulerEdges.token = run.Connect[tokenMessage](g, w.scheduler, w.session, run.Most(batch.Window).Again(),
		"a window; then the sequence waits until its client reads; another when it starts again")
	w.schedulerEdges.failure = run.Connect[seqFailed](g, w.scheduler, w.session, run.Most(1).Again(), "one a sequence")
}

// wireSteps declares what a step takes.
func (w *modelWiring) wireSteps(g *run.Graph, h *houseWiring, flight int) {
	c, d := &w.schedulerEdges, &w.guest
	c.request = run.Connect[kvRequest](g, w.scheduler, w.kv, run.Each(w.sessionEdges.submit),
		"the sequence waits for its last answer")
	w.kvEdges.answer = run.Connect[kvRequest](g, w.kv, w.scheduler, run.Each(c.request), "an answer to each")
	c.step = run.Count[step](h.graph, w.scheduler, h.device, flight, "the next step waits")
	c.look = run.Connect[look](h.graph, w.scheduler, h.device, run.Each(w.sessionEdges.cancel), "one a cancel")
	c.pass = run.Connect[pass](h.graph, w.scheduler, h.device, run.Each(c.step.Edge), "one a step that none follows")
	c.wake = run.Connect[wake](g, w.scheduler, w.scheduler, run.Each(w.sessionEdges.wake),
		"one a starved sequence whose client read meanwhile")
	d.scheduler = w.scheduler
	d.step = run.Connect[step](g, h.device, w.sampler, run.Each(c.step.Edge), "one a step")
	d.failed = run.Connect[step](g, h.device, w.scheduler, run.Each(c.step.Edge), "a failed one returns")
	d.ring = run.Connect[stepRing](g, h.device, w.scheduler, run.Most(controlCredits), restarts)
	w.samplerEdges.step = run.Connect[step](g, w.sampler, w.scheduler, run.Each(d.step), "one a step")
}

// wireFaults declares who hears of whose end.
func (w *modelWiring) wireFaults(g *run.Graph, h *houseWiring) {
	c := &w.schedulerEdges
	c.partners = run.Partner(g, w.scheduler, controlCredits, w.kv, w.sampler).
		And(h.graph, g, w.scheduler, controlCredits, h.device)
	w.kvEdges.restarted, w.guest.restarted = tell(g, w.kv, w.scheduler), tell(g, h.device, w.scheduler)
	w.samplerEdges.restarted = tell(g, w.sampler, w.scheduler)
	c.restarted, w.sessionsEdges.restarted = tell(g, w.scheduler, w.sessions), tell(g, w.sessions, w.session)
}
