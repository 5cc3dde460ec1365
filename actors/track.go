package actors

import (
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/place"
)

// track is what a model records, on one tape or several; scheduler and device call it. A nil track records nothing.
type track struct {
	decode  func(ids []int32) string
	layer   []int           // by segment: index of its layer among those with experts, if it routes; -1: it does not
	choices []func([]int32) // by segment: what notes its choices
	began   time.Time
	clients map[string]uint64 // numbers that stand for their names; only the scheduler uses it
	on      []taped

	mu     sync.Mutex // guards the events below, which are filled again
	steps  tokentrace.Step
	picks  tokentrace.Chosen
	sees   tokentrace.Foreseen
	right  tokentrace.Settled
	waited tokentrace.Waited
	draws  tokentrace.Drawn
}

// taped is a model on a tape.
type taped struct {
	tape  *Tape
	model *tokentrace.Model
}

// newTrack begins to record a model; it returns nil if there is no tape.
func newTrack(m *Model, s *spec, d backend.Device) *track {
	if len(m.Tapes) == 0 {
		return nil
	}
	r := &track{began: now(), clients: map[string]uint64{}, layer: make([]int, len(s.bound.Segments)),
		decode: func(ids []int32) string { return string(s.vocab.Decode(nil, ids, true)) }}
	sizes := place.SizesOf(s.bound)
	model := tokentrace.Model{Name: s.info.Name, Vocab: s.bound.Vocab, Vectors: sizes.Vectors, Dense: sizes.Dense,
		Began: r.began.UnixMicro()}
	for _, l := range sizes.Layers {
		model.Layers = append(model.Layers, tokentrace.Layer(l))
	}
	for _, t := range s.traits(d) {
		model.Traits = append(model.Traits, tokentrace.Trait(t))
	}
	layers := 0
	for i := range s.bound.Segments {
		r.layer[i] = -1
		r.choices = append(r.choices, func(experts []int32) { r.chose(i, experts) })
		if s.bound.Segments[i].Kind == ir.SegRoute {
			r.layer[i] = layers
			layers++
		}
	}
	for _, t := range m.Tapes {
		own := model
		t.begin(&own)
		r.on = append(r.on, taped{t, &own})
	}
	return r
}

func (r *track) time() uint64 { return uint64(now().Sub(r.began).Microseconds()) }

// write adds an event to all tapes.
func (r *track) write(e tokentrace.Event, soon bool) {
	for _, on := range r.on {
		on.tape.write(on.model, e, soon)
	}
}

// client returns the number of a client; new clients get the next one.
func (r *track) client(name string) uint64 {
	n, known := r.clients[name]
	if !known {
		n = uint64(len(r.clients))
		r.clients[name] = n
	}
	return n
}

// opened notes that a sequence was submitted.
func (r *track) opened(h *sequence) {
	if r == nil {
		return
	}
	e := &tokentrace.Open{Sequence: uint64(h.ID), Time: r.time(), Prompt: h.Tokens, Client: r.client(h.Client),
		Settings: settingsOf(h)}
	for _, on := range r.on {
		if e.Text = ""; on.tape.texts {
			e.Text = r.decode(h.Tokens)
		}
		on.tape.write(on.model, e, false)
	}
}

// step notes that the device begins a step.
func (r *track) step(m *step) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e := &r.steps
	e.Time, e.Budget, e.Spans, e.Tokens = r.time(), tokentrace.Budget(m.budget), e.Spans[:0], e.Tokens[:0]
	for i := range m.parts {
		s := &m.compute.Spans[i]
		e.Spans = append(e.Spans, tokentrace.Span{Sequence: uint64(m.parts[i].Seq.ID), Position: s.Pos, Rows: s.Rows,
			Proposed: s.Proposed})
	}
	for _, id := range m.compute.Tokens {
		e.Tokens = append(e.Tokens, max(id, -1))
	}
	r.write(e, false)
}

// foreseen notes the margins of a route as the device foresees them, before the route is computed.
func (r *track) foreseen(route int, late bool, margins []int8) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sees = tokentrace.Foreseen{Layer: r.layer[route], Late: late, Margins: margins}
	r.write(&r.sees, false)
}

// records says whether the trace holds which experts a segment chooses.
func (r *track) records(segment int) bool { return r != nil && r.layer[segment] >= 0 }

// chosen returns a function that notes which experts a route chose, and passes them on to tell, unless that is nil.
func (r *track) chosen(segment int, tell func([]int32)) func([]int32) {
	if tell == nil {
		return r.choices[segment]
	}
	return func(experts []int32) {
		r.chose(segment, experts)
		tell(experts)
	}
}

func (r *track) chose(segment int, experts []int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.picks = tokentrace.Chosen{Layer: r.layer[segment], Experts: experts}
	r.write(&r.picks, false)
}

// settled notes how many of a sequence's proposed tokens were accepted.
func (r *track) settled(h *sequence, accepted int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.right = tokentrace.Settled{Sequence: uint64(h.ID), Accepted: accepted}
	r.write(&r.right, false)
}

// drawn notes the next token of a sequence, and what its time went to since the last one.
func (r *track) drawn(h *sequence, token int32) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waited.Sequence, r.waited.For = uint64(h.ID), r.waited.For[:0]
	for c := range bill.Causes {
		if d := h.spending.bill.Of(c) - h.spending.told.Of(c); d >= time.Microsecond {
			r.waited.For = append(r.waited.For, tokentrace.Spent{Cause: int(c), Time: uint64(d.Microseconds())})
		}
	}
	if len(r.waited.For) > 0 {
		h.spending.told = h.spending.bill
		r.write(&r.waited, false)
	}
	r.draws = tokentrace.Drawn{Sequence: uint64(h.ID), Token: token}
	r.write(&r.draws, false)
}

// ended notes the end of a sequence, which who reads along waits for.
func (r *track) ended(h *sequence) {
	if r != nil {
		r.write(&tokentrace.End{Sequence: uint64(h.ID), Time: r.time()}, true)
	}
}

// close says that the model records no more. It is called when none of its actors runs any more.
func (r *track) close() {
	if r == nil {
		return
	}
	for _, on := range r.on {
		on.tape.end(on.model)
	}
}
