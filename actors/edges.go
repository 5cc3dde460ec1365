package actors

import (
	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/stages/batch"
)

// anybody stands for actors of any kind.
var anybody = run.Place{Kind: "any"}

// Declared is the declaration of an edge, on which one actor sends messages to another: a row of the printed table.
type Declared = run.Declared

// Edges lists the edges of a house of one model.
func Edges() []Declared {
	turns := run.NewTurns(false, 0)
	house := wireHouse(nil, turns)
	model := wireModel(nil, turns, house, "", 1, 0)
	return append(model.graph.Edges(), house.graph.Edges()...)
}

// houseWiring is the actors that all models share: their places in the tree, and the edges on which each may send. An
// actor is built with its own edges and has no others, but for those that come with a request to be answered.
type houseWiring struct {
	graph         *run.Graph
	house, device run.Place
	tiers         *tiers.Wiring

	shutdown run.Edge[shutdown]   // sent by the facade
	failed   run.Edge[run.Failed] // sent by supervision, for any actor

	deviceEdges deviceEdges
}

// wireHouse declares the edges among the actors that models share, without those that each model adds.
func wireHouse(s *run.System, turns *run.Turns) *houseWiring {
	g := run.NewGraph(s)
	w := &houseWiring{
		graph: g, house: run.Place{Kind: "house", Address: s.Address("house")},
		device: run.Place{Kind: "device", Address: s.Address("house/device"), Line: &turns.Steps},
	}
	w.tiers = tiers.Wire(s, g, w.house, w.device)
	d := &w.deviceEdges
	d.late.computed = run.Connect[computed](g, w.device, w.device, run.Most(run.ControlCredits), "one a step in flight")
	d.late.told = run.Connect[told](g, w.device, w.device, run.Most(run.ControlCredits), "one a step in flight")
	d.overdue = run.Connect[overdue](g, w.device, w.device, run.Most(run.ControlCredits), "it looks once in so long a time")
	w.failed, d.broken = run.Fail(g, anybody, w.house), run.Fail(g, w.device, w.house)
	w.shutdown = run.Connect[shutdown](g, run.Place{Kind: "facade"}, w.house, run.Most(1), "once, at the end")
	return w
}

// modelWiring is the actors of one model: their places in the tree, and the edges on which each may send.
// Wide: one is there for each actor of a model, and one for its edges.
type modelWiring struct {
	graph                                                          *run.Graph
	model, sessions, session, scheduler, kv, mover, sampler, masks run.Place

	hangUpAll      run.Edge[hangUpAll] // sent by the house, and by supervision
	facade         facadeEdges
	modelEdges     modelEdges
	sessionsEdges  sessionsEdges
	sessionEdges   sessionEdges
	schedulerEdges schedulerEdges
	kvEdges        kvEdges
	moverEdges     moverEdges
	samplerEdges   samplerEdges
	masksEdges     masksEdges
	drafting       draftingEdges
	following      following
	parted         run.Edge[parted] // sent by the house, and by supervision, to the scheduler of a draft model's target
	guest          guestEdges
	root           stayEdges
}

type facadeEdges struct {
	enter     run.Edge[enter] // to the house
	leave     run.Edge[leave] // likewise
	open      run.Counted[open]
	settle    run.Edge[settle]   // to the model, for the KV owner
	transfer  run.Edge[transfer] // likewise
	hangUp    run.Edge[hangUp]   // to a session
	hangUpAll run.Edge[hangUpAll]
}

// wireModel declares the edges of a model's actors, and those that the house's actors have for this model, in a graph
// that joins the house's. flight is how many steps may be in flight, slots how many slots the model's groups share.
func wireModel(s *run.System, turns *run.Turns, h *houseWiring, path string, flight, slots int) *modelWiring {
	at := func(kind string, line *run.Line) run.Place {
		return run.Place{Kind: kind, Address: s.Address(path + "/" + kind), Line: line}
	}
	w := &modelWiring{
		graph: run.NewGraph(s),
		model: run.Place{Kind: "model", Address: s.Address(path)}, sessions: at("sessions", nil),
		session:   run.Place{Kind: "session", Line: &turns.Outlets},
		scheduler: at("scheduler", &turns.Steps), kv: at("kv", &turns.Steps), sampler: at("sampler", &turns.Steps),
		masks: at("masks", nil), mover: at("mover", nil),
	}
	w.wireRequests(w.graph, h)
	w.wireDrafts(w.graph, h)
	w.wireSteps(w.graph, h, flight)
	w.wireFaults(w.graph, h)
	w.wireStay(w.graph, h)
	w.guest.ways = h.tiers.Wire(w.graph, h.device, slots)
	return w
}

// wireStay declares the edges by which the model enters and leaves.
func (w *modelWiring) wireStay(g *run.Graph, h *houseWiring) {
	facade := run.Place{Kind: "facade"}
	w.facade.enter = run.Connect[enter](g, facade, h.house, run.Most(1), "once")
	w.facade.leave = run.Connect[leave](g, facade, h.house, run.Most(1), "once")
	w.facade.settle = run.Connect[settle](g, facade, w.model, run.Most(1), "once, before it leaves")
	w.facade.transfer = run.Connect[transfer](g, facade, w.model, run.Most(1).Again(),
		"the next one waits for its end, and after a restart for no answer")
	w.modelEdges.settle = run.Connect[settle](g, w.model, w.kv, run.Each(w.facade.settle), "passed on")
	w.modelEdges.transfer = run.Connect[transfer](g, w.model, w.kv, run.Each(w.facade.transfer), "passed on")
	w.root.enter = run.Connect[enter](g, h.house, h.device, run.Each(w.facade.enter), "passed on")
	w.root.leave = run.Connect[leave](g, h.house, h.device, run.Each(w.facade.leave), "passed on")
	w.guest.aside = run.Connect[aside](g, h.device, h.device, run.Most(run.ControlCredits), "one at a time, and a restart")
}

// wireDrafts declares the edges between the schedulers of a model and of its draft model; this one may be either.
func (w *modelWiring) wireDrafts(g *run.Graph, h *houseWiring) {
	each := run.Each(w.facade.open.Edge).Again()
	w.drafting.follow = run.Connect[follow](g, w.scheduler, w.scheduler, each, "the next one waits for the answer")
	w.drafting.cancel = run.Connect[cancel](g, w.scheduler, w.scheduler, each, "one a sequence that follows another")
	w.drafting.parted = run.Connect[parted](g, w.scheduler, w.scheduler, run.Most(run.ControlCredits), run.Bounded)
	w.following.drafted = run.Connect[drafted](g, w.scheduler, w.scheduler, run.Each(w.drafting.follow), "an answer to each")
	w.following.parted = w.drafting.parted
	w.parted = run.Connect[parted](g, h.house, w.scheduler, run.Most(run.ControlCredits), "one a failure, and at the end")
}

// wireRequests declares the edges that carry requests and their answers.
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
	w.hangUpAll = run.Connect[hangUpAll](g, h.house, w.model, run.Most(run.ControlCredits), "one a failure")
	w.modelEdges.hangUpAll = run.Connect[hangUpAll](g, w.model, w.sessions, run.Most(run.ControlCredits), "passed on")
	w.sessionsEdges.hangUp = run.Connect[hangUp](g, w.sessions, w.session, run.Most(run.ControlCredits), "one a failure")
	w.schedulerEdges.token = run.Connect[tokenMessage](g, w.scheduler, w.session, run.Most(batch.Window).Again(),
		"a window; then the sequence waits until its client reads; another when it starts again")
	w.schedulerEdges.failure = run.Connect[seqFailed](g, w.scheduler, w.session, run.Most(1).Again(), "one a sequence")
}

// wireSteps declares the edges that a step takes, and those for blocks and masks that it needs.
func (w *modelWiring) wireSteps(g *run.Graph, h *houseWiring, flight int) {
	c, d := &w.schedulerEdges, &w.guest
	c.request = run.Connect[kvRequest](g, w.scheduler, w.kv, run.Each(w.sessionEdges.submit),
		"the sequence waits for its last answer")
	w.kvEdges.answer = run.Connect[kvRequest](g, w.kv, w.scheduler, run.Each(c.request), "an answer to each")
	c.begun = run.Connect[begun](g, w.scheduler, w.kv, run.Most(run.ControlCredits), run.Bounded)
	w.kvEdges.move = run.Count[move](g, w.kv, w.mover, movesAhead, "the move waits in the books, and who needs it")
	w.moverEdges.answer = run.Connect[move](g, w.mover, w.kv, run.Each(w.kvEdges.move.Edge), "an answer to each")
	c.mask = run.Count[mask](g, w.scheduler, w.masks, masksAhead, "the sequence waits for its client's turn")
	w.masksEdges.answer = run.Connect[mask](g, w.masks, w.scheduler, run.Each(c.mask.Edge), "an answer to each")
	c.step = run.Count[step](g, w.scheduler, h.device, flight, "the next step waits")
	c.look = run.Connect[look](g, w.scheduler, h.device, run.Each(w.sessionEdges.cancel), "one a cancel")
	c.pass = run.Connect[pass](g, w.scheduler, h.device, run.Each(c.step.Edge), "one a step that none follows")
	c.wake = run.Connect[wake](g, w.scheduler, w.scheduler, run.Each(w.sessionEdges.wake),
		"one a starved sequence whose client read meanwhile")
	d.scheduler = w.scheduler
	d.step = run.Connect[step](g, h.device, w.sampler, run.Each(c.step.Edge), "one a step")
	d.ring = run.Connect[stepRing](g, h.device, w.scheduler, run.Most(run.ControlCredits), run.Bounded)
	w.samplerEdges.step = run.Connect[step](g, w.sampler, w.scheduler, run.Each(d.step), "one a step")
}

// wireFaults declares the edges on which actors hear that another one has restarted.
func (w *modelWiring) wireFaults(g *run.Graph, h *houseWiring) {
	c := &w.schedulerEdges
	c.partners = run.Partner(g, w.scheduler, w.kv, w.mover, w.sampler, w.masks, h.device)
	tell := func(from, to run.Place) run.Edge[restarted] { return run.Tell[step](g, from, to) }
	w.kvEdges.restarted, w.guest.restarted = tell(w.kv, w.scheduler), tell(h.device, w.scheduler)
	w.samplerEdges.restarted, w.moverEdges.restarted = tell(w.sampler, w.scheduler), tell(w.mover, w.scheduler)
	w.masksEdges.restarted = run.Tell[mask](g, w.masks, w.scheduler)
	c.restarted, w.sessionsEdges.restarted = tell(w.scheduler, w.sessions), tell(w.sessions, w.session)
}
