package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/sample"
)

// record is the body of a request: what was asked, its life, and the answer so far. It outlives the incarnations of
// its session: a session that restarts goes on from it, and submits the rest of the work. What was asked is read by
// all; all else is the session's. A sequence has its own tokens and its own state behind them, since it runs ahead of
// what its session has heard of, and is lost with the scheduler.
// Wide: what of a request outlives its session is in one place, and nothing else is.
type record struct {
	id     string
	asked  asked
	life   life
	stream *Stream  // with what was counted of it
	leave  func()   // gives the place in the engine back
	among  *records // nil: the model has not taken it yet

	spent  bill.Bill    // up to the last token, or the last thing that the session did
	answer []int32      // tokens that were generated
	state  sample.State // after the last token
	scored int          // Score: positions handed to the stream
	sent   time.Time    // when it was submitted
	began  time.Time    // when the first token was drawn
	last   time.Time    // when the last token so far was drawn
}

// refuse ends a request that never had a session.
func (r *record) refuse(err error) {
	r.end(err)
	r.leave()
}

// end ends the request; err is nil if its answer is whole. Only the first end counts.
func (r *record) end(err error) {
	if r.life.reach(lifeEnded) {
		r.stream.finish(err)
	}
}

// stays says that the request goes on after its session has stopped: the session is started again.
func (r *record) stays() bool {
	return r.among != nil && (r.among.moving.Load() || r.among.restarting.Load())
}

// records are the records of a model's open requests, by the id of their session's actor. They outlive sessions.
type records struct {
	mu       sync.Mutex
	sessions string // path of their parent actor
	byID     map[string]*record
	refusing error // why no more sessions are opened; nil: they are

	moving     atomic.Bool // set while sessions restarts: sessions stop only to be started again
	restarting atomic.Bool // the same, while the model's actor restarts; what sessions does meanwhile changes nothing
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
	rec.among = r
	r.byID[r.idOf(rec)] = rec
}

func (r *records) drop(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// refuse keeps further sessions from being opened.
func (r *records) refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusing = err
}

// refused is the error for which no more sessions are opened; nil: they are.
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
