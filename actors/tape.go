package actors

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/place"
)

// tape writes a model's token trace; scheduler and device call it. A nil tape writes nothing. An error of the writer
// ends the trace, and nothing else.
type tape struct {
	idsOnly bool
	decode  func(ids []int32) string
	layer   []int // by segment: index of its layer among those with experts, if it routes; -1: it does not
	began   time.Time
	clients map[string]uint64 // numbers that stand for their names; only the scheduler uses it

	mu      sync.Mutex
	out     *tokentrace.Writer
	flushed time.Time
	err     error
}

// unflushed is how long records wait in memory while others come: that much is lost with a process that is killed.
const unflushed = time.Second

// newTape begins the trace of a model; it returns nil if the model is not recorded.
func newTape(m *Model, s *spec) (*tape, error) {
	if m.Record == nil {
		return nil, nil
	}
	r := &tape{idsOnly: m.RecordIDsOnly, began: now(), clients: map[string]uint64{},
		layer:  make([]int, len(s.bound.Segments)),
		decode: func(ids []int32) string { return string(s.vocab.Decode(nil, ids, true)) }}
	sizes := place.SizesOf(s.bound)
	model := tokentrace.Model{Name: s.info.Name, Vocab: s.bound.Vocab, Vectors: sizes.Vectors, Dense: sizes.Dense}
	for _, l := range sizes.Layers {
		model.Layers = append(model.Layers, tokentrace.Layer(l))
	}
	layers := 0
	for i := range s.bound.Segments {
		r.layer[i] = -1
		if s.bound.Segments[i].Kind == ir.SegRoute {
			r.layer[i] = layers
			layers++
		}
	}
	var err error
	r.out, err = tokentrace.NewWriter(m.Record, &model)
	return r, err
}

func (r *tape) time() uint64 { return uint64(now().Sub(r.began).Microseconds()) }

func (r *tape) write(e tokentrace.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil {
		r.err = r.out.Write(e)
	}
	_, ends := e.(*tokentrace.End)
	if at := now(); r.err == nil && (ends || at.Sub(r.flushed) >= unflushed) {
		r.err, r.flushed = r.out.Flush(), at
	}
}

// client returns the number of a client; new clients get the next one.
func (r *tape) client(name string) uint64 {
	n, known := r.clients[name]
	if !known {
		n = uint64(len(r.clients))
		r.clients[name] = n
	}
	return n
}

// opened notes that a sequence was submitted.
func (r *tape) opened(h *sequence) {
	if r == nil {
		return
	}
	e := &tokentrace.Open{Sequence: uint64(h.ID), Time: r.time(), Prompt: h.Tokens, Client: r.client(h.Client)}
	e.Settings, _ = json.Marshal(&h.of.Sampling) // plain numbers; a trace without them can be replayed all the same
	if !r.idsOnly {
		e.Text = r.decode(h.Tokens)
	}
	r.write(e)
}

// step notes that the device begins a step.
func (r *tape) step(m *step) {
	if r == nil {
		return
	}
	e := &tokentrace.Step{Time: r.time(), Budget: tokentrace.Budget(m.budget)}
	for i, p := range m.parts {
		s := &m.compute.Spans[i]
		e.Spans = append(e.Spans, tokentrace.Span{Sequence: uint64(p.Seq.ID), Position: s.Pos, Rows: s.Rows,
			Proposed: s.Proposed})
	}
	for _, id := range m.compute.Tokens {
		e.Tokens = append(e.Tokens, max(id, -1))
	}
	r.write(e)
}

// foreseen notes the margins of a route as the device foresees them, before the route is computed.
func (r *tape) foreseen(route int, late bool, margins []int8) {
	if r != nil {
		r.write(&tokentrace.Foreseen{Layer: r.layer[route], Late: late, Margins: margins})
	}
}

// records says whether the trace holds which experts a segment chooses.
func (r *tape) records(segment int) bool { return r != nil && r.layer[segment] >= 0 }

// chosen returns a function that notes which experts a route chose, and passes them on to tell, unless that is nil.
func (r *tape) chosen(segment int, tell func([]int32)) func([]int32) {
	return func(experts []int32) {
		r.write(&tokentrace.Chosen{Layer: r.layer[segment], Experts: experts})
		if tell != nil {
			tell(experts)
		}
	}
}

// settled notes how many of a sequence's proposed tokens were accepted.
func (r *tape) settled(h *sequence, accepted int) {
	if r != nil {
		r.write(&tokentrace.Settled{Sequence: uint64(h.ID), Accepted: accepted})
	}
}

// drawn notes the next token of a sequence.
func (r *tape) drawn(h *sequence, token int32) {
	if r != nil {
		r.write(&tokentrace.Drawn{Sequence: uint64(h.ID), Token: token})
	}
}

func (r *tape) ended(h *sequence) {
	if r != nil {
		r.write(&tokentrace.End{Sequence: uint64(h.ID), Time: r.time()})
	}
}

// close flushes the trace and returns its first error. It is called when no actor runs any more.
func (r *tape) close() error {
	if r == nil {
		return nil
	}
	if r.err != nil {
		return r.err
	}
	return r.out.Flush()
}
