package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/stages/prompt"
	"github.com/sluice-ai/sluice/stages/sample"
)

// record is what a request has come to. It outlives the incarnations of its session: a session that restarts
// takes it up, and submits the rest of the work.
// Wide: what of a request outlives its session is in one place, and nothing else is.
type record struct {
	id      string
	request Request
	stream  *Stream
	leave   func()       // gives the place in the engine back
	gone    atomic.Bool  // nobody reads the stream any more
	moving  atomic.Bool  // the session stops only to be started again, for sessions restarts
	model   *atomic.Bool // all of the model's do, for the model restarts; nil: nobody has opened it yet

	opening  prompt.Opening
	tokens   []int32 // prompt, then generated; nil before it was encoded
	prompt   int     // tokens of the prompt
	rendered bool    // by the template

	predicted []int32      // Request.Prediction
	limit     int          // most tokens in all
	state     sample.State // after the last token
	scored    int          // Score: positions handed to the stream
	usage     Usage
	opened    time.Time
	sent      time.Time // submitted
	began     time.Time // first token
	last      time.Time // and the last one so far
}

// refuse ends a request that never had a session.
func (r *record) refuse(err error) {
	r.stream.finish(r.usage, err)
	r.leave()
}

// stays says that the request goes on if its session stops now.
func (r *record) stays() bool { return r.moving.Load() || r.model != nil && r.model.Load() }

// records are the open requests of a model, by the id of their session's actor. They outlive sessions.
type records struct {
	mu       sync.Mutex
	sessions string // path above those of sessions
	byID     map[string]*record
	refusing error // why no more sessions are opened

	restarting atomic.Bool // the model is: until it has started again. What sessions does meanwhile changes nothing
}

func newRecords(sessions string) *records {
	return &records{sessions: sessions, byID: make(map[string]*record)}
}

// idOf is the id of a record's session.
func (r *records) idOf(rec *record) string { return r.sessions + "/" + rec.id }

func (r *records) get(id string) *record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byID[id]
}

func (r *records) put(rec *record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec.model = &r.restarting
	r.byID[r.idOf(rec)] = rec
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
