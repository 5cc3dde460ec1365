package actors

import (
	"fmt"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// Engine is the facade of one model of a house. Its methods may be called from any goroutine.
type Engine struct {
	Info  Info
	house *House
	*tenant
}

// Engines are the models of the house, in the order in which they entered, without draft models.
func (h *House) Engines() (all []*Engine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range h.tenants {
		if t.target == nil {
			all = append(all, &Engine{t.spec.info, h, t})
		}
	}
	return all
}

// House is the house in which the model runs.
func (e *Engine) House() *House { return e.house }

// Plan is the plan of where the model's weights lie. It must not be changed.
func (e *Engine) Plan() *place.Model { return &e.spec.plan }

// Metadata is the metadata in the model's file. It must not be changed.
func (e *Engine) Metadata() *meta.Map { return &e.spec.file.Meta }

// Vocab is the model's vocabulary.
func (e *Engine) Vocab() *token.Vocab { return e.spec.vocab }

// Habits says what the model's template expects of messages.
func (e *Engine) Habits() chat.Habits {
	h := e.spec.writer.Template.Habits()
	h.Sees = e.Sees()
	return h
}

// Generate opens a request. Its answer, and any error of its prompt, comes through the stream, which the caller
// closes.
func (e *Engine) Generate(r Request) (*Stream, error) {
	if e.Embeds() {
		return nil, refusal.Of("%s turns texts into vectors (pooling: %s) and writes none: ask it for embeddings", e.Info.Name,
			e.spec.bound.Pooling)
	}
	if err := r.Sampling.Check(e.spec.bound.Vocab); err != nil {
		return nil, refusal.Of("%v", err)
	}
	if r.IgnoreEOG && (r.Form != nil || r.Tools != nil && r.Tools.Firm()) {
		return nil, refusal.Of("the answer is to go on after its end, and to be of a grammar: drop one of both")
	}
	if r.IgnoreEOG && r.Tools != nil { // there is more after a call
		free := *r.Tools
		free.Free = true
		r.Tools = &free
	}
	if r.Form != nil || r.Tools != nil && r.Tools.Binds() {
		r.Sampling.Masked = true
	}
	r.Sampling.Masked = r.Sampling.Masked || r.MostThoughts > 0
	if r.Explains != nil { // the host draws what it is to tell probabilities of
		r.Sampling.LogProbs = max(r.Sampling.LogProbs, 0)
	}
	return e.begin(r, false)
}

// Embeds says whether the model computes embeddings; else it generates text.
func (e *Engine) Embeds() bool { return embeds(e.spec.bound) }

// Sees says whether prompts may have pictures.
func (e *Engine) Sees() bool { return e.spec.eye != nil }

// Score opens a request for the logits of every position of tokens: events with Pos and Logits.
func (e *Engine) Score(tokens []int32, adapters ...Adapting) (*Stream, error) {
	return e.ScoreOf(Request{Tokens: tokens, Adapters: adapters})
}

// ScoreOf is Score of a request's tokens, which hold the places of its pictures.
func (e *Engine) ScoreOf(r Request) (*Stream, error) {
	if e.Embeds() {
		return nil, refusal.Of("%s turns texts into vectors and has no logits: ask it for embeddings", e.Info.Name)
	}
	if e.spec.ear != nil {
		return nil, refusal.Of("%s reads texts by an encoder and has no logits of their tokens: ask it for answers", e.Info.Name)
	}
	return e.begin(r, true)
}

// begin opens a request for an answer, or, with score, for the outputs of all its positions.
func (e *Engine) begin(r Request, score bool) (*Stream, error) {
	if err := e.Health(); err != nil {
		return nil, err
	}
	if r.Stop == nil {
		r.Stop = e.spec.settings.Stop
	}
	adapters, salt, done, err := e.spec.adapters.adapt(r.Adapters, r.Salt)
	if err != nil {
		return nil, err
	}
	r.Salt = salt
	if err := e.enter(); err != nil {
		done()
		return nil, err
	}
	leave := func() {
		done()
		e.exit()
	}
	rec := &record{
		id: fmt.Sprint(e.opened.Add(1)), leave: sync.OnceFunc(leave), stream: newStream(streamCapacity),
		asked: asked{Request: r, terms: batch.Terms{Client: r.Client, Score: score, Adapters: adapters, Promised: r.Promised}, opened: now()},
	}
	if rec.spent = r.Spent; !rec.spent.Begun() {
		rec.spent = bill.Begin(rec.asked.opened)
	}
	if n := len(r.Drawn); n > 0 {
		rec.answer, rec.state = slices.Clone(r.Drawn), sample.State{Drift: r.Drift}
		rec.stream.usage.Generated = n
	}
	pid := e.session(rec.id)
	rec.stream.cancel = sync.OnceFunc(func() {
		rec.life.gone.Store(true)
		if !rec.life.past(lifeEnded) {
			e.wiring.facade.hangUp.At(pid).Send(&hangUp{errGone})
		}
	})
	e.stats.requests.Add(1)
	e.wiring.facade.open.Send(&open{rec})
	return rec.stream, nil
}

// session is the address of the session actor of a request.
func (e *Engine) session(id string) *actor.PID {
	return e.house.system.Address(e.wiring.sessions.Address.Id + "/" + id)
}

func (e *Engine) enter() error {
	if err := e.stay.begin(); err != nil {
		return err
	}
	if !e.wiring.facade.open.Take() {
		e.stay.end()
		return ErrBusy
	}
	return nil
}

func (e *Engine) exit() {
	e.wiring.facade.open.Give()
	e.stay.end()
}

// Health returns nil while the model can serve, else why it cannot.
func (e *Engine) Health() error {
	if err := e.house.health.get(); err != nil {
		return err
	}
	if err := e.health.get(); err != nil {
		return err
	}
	return e.check()
}

// Loaded returns how many bytes of weights have arrived, and how many there are.
func (e *Engine) Loaded() (done, total int64) { return e.weights() }

// Loading says when the loading of weights reached its stages. All are zero if the weights are used in place.
func (e *Engine) Loading() tiers.Stages { return e.loaded.Stages() }

// Render returns the prompt that the model's template makes of a conversation. stop is asked from time to time whether
// to give up.
func (e *Engine) Render(in *chat.Input, stop func() bool) (string, error) {
	text, err := e.spec.writer.Render(*in, now(), stop)
	return text, asGone(err)
}

// Snapshot returns the engine's state in numbers.
func (e *Engine) Snapshot() Snapshot {
	s := Snapshot{
		Running: e.stats.running.Load(), Waiting: e.stats.waiting.Load(), Open: int64(e.wiring.facade.open.Held()),
		Requests: e.stats.requests.Load(), FailedSteps: e.stats.failedSteps.Load(),
		PromptTokens: e.stats.promptTokens.Load(), Generated: e.stats.generated.Load(),
		Proposed: e.stats.proposed.Load(), Accepted: e.stats.accepted.Load(),
		Drafted: e.stats.drafted.Load(), DraftedRight: e.stats.draftedRight.Load(),
		FirstToken: e.stats.firstToken.load(), BetweenTokens: e.stats.between.load(), Queue: e.stats.queue.load(),
		Steps: e.Steps(), Streamed: e.stats.streamed.Load(), Actors: e.house.system.Status(),
	}
	s.Actors = slices.DeleteFunc(s.Actors, func(a run.Status) bool { return e.house.elsewhere(a.ID, e.tenant) })
	s.DeadLetters, s.Unexpected = e.house.system.Faults()
	e.stats.mu.Lock()
	s.KV = e.stats.kv
	e.stats.mu.Unlock()
	return s
}

// Status says what the model's own actors have done.
func (e *Engine) Status() []run.Status {
	return slices.DeleteFunc(e.house.system.Status(), func(a run.Status) bool { return !e.has(a.ID) })
}

// Credits lists the credits, as they are now, of counted edges among the model's actors, and between them and actors
// that models share.
func (e *Engine) Credits() []run.Credits { return e.wiring.graph.Credits() }

// Steps returns where the time of steps went so far.
func (e *Engine) Steps() Steps { return e.stats.snapshot() }

// Prepare makes a request's prompt before the request is opened, and refuses one that does not fit. The request that
// it returns has the prompt's tokens in place of its conversation or text. stop is asked from time to time whether to
// give up.
func (e *Engine) Prepare(r Request, stop func() bool) (Request, error) {
	p, err := e.spec.promptOf(&r, stop)
	if err != nil {
		return r, err
	}
	_, err = e.spec.limit(&r, p.Tokens)
	r.Chat, r.Text = nil, ""
	return r, err
}

// Lent returns the files of the model, and the content by which it is known on all machines; "": it is not known.
func (e *Engine) Lent() (Lent, string) { return e.spec.lends, e.spec.kept.Content }
