package actors

import (
	"bytes"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/internal/tokentrace"
)

// Tape is where models record what they do, as a token trace (docs/traces.md). What is recorded waits in memory until
// one goroutine has written it, so that no step waits for a disk. Its methods may be called from any goroutine.
// Wide: beside what waits it has the channels of the goroutine.
type Tape struct {
	texts bool
	most  int // bytes that may wait while the disk is slow
	sink  TapeSink
	wake  chan struct{} // there is something to write
	hurry chan struct{} // it should be written now
	stop  chan struct{}
	done  chan struct{}

	mu      sync.Mutex
	out     *tokentrace.Writer // to waiting
	waiting *bytes.Buffer
	spare   *bytes.Buffer
	models  []*tokentrace.Model // that record, or did since waiting was written last
	gone    []*tokentrace.Model // of these, those that have left
	last    int                 // number of the model that came last
	queued  bool                // the goroutine knows that something waits
	lost    bool                // records were dropped
}

// TapeSink is what keeps a tape. Its methods are called by one goroutine.
type TapeSink interface {
	// Append adds records. A trace that begins with them, or in which others were lost before, begins with head.
	Append(records []byte, head func() []byte)
	// Lost says that records were lost before the next ones.
	Lost(why error)
	// Close says that nothing follows.
	Close()
}

const (
	// tapedEvery is how long records wait in memory: no more is lost with a process that is killed.
	tapedEvery = 500 * time.Millisecond
	// tapedSoon is how many bytes of them do not wait.
	tapedSoon = 1 << 20
	// mostUntaped is how many bytes may wait while the disk is slow.
	mostUntaped = 64 << 20
)

var errUntaped = errors.New("the disk is too slow: what waits to be recorded is too much")

// NewTape starts the writer of a tape, which Close ends. With texts it has those of prompts beside their tokens.
func NewTape(sink TapeSink, texts bool) *Tape {
	t := &Tape{texts: texts, most: mostUntaped, sink: sink, wake: make(chan struct{}, 1), hurry: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), waiting: &bytes.Buffer{}, spare: &bytes.Buffer{}, last: -1}
	t.out, _ = tokentrace.NewWriter(t) // memory takes it
	t.waiting.Reset()                  // what begins a trace is made for each
	go t.run()
	return t
}

// Close writes what waits, and ends. It is called when no model records any more.
func (t *Tape) Close() {
	if t != nil {
		close(t.stop)
		<-t.done
	}
}

// Write implements io.Writer, for out. The caller holds the mutex, or has the tape alone.
func (t *Tape) Write(p []byte) (int, error) { return t.waiting.Write(p) }

func (t *Tape) run() {
	defer close(t.done)
	timer := time.NewTimer(0)
	<-timer.C
	defer timer.Stop()
	for {
		select {
		case <-t.wake:
			timer.Reset(tapedEvery)
			continue
		case <-timer.C:
		case <-t.hurry:
		case <-t.stop:
			t.flush()
			t.sink.Close()
			return
		}
		t.flush()
	}
}

// flush writes what waits.
func (t *Tape) flush() {
	t.mu.Lock()
	records, lost := t.waiting, t.lost
	t.waiting, t.spare, t.lost, t.queued = t.spare, nil, false, false
	t.out.Part()
	left := slices.Clone(t.gone)
	t.mu.Unlock()
	if lost {
		t.sink.Lost(errUntaped)
	}
	if records.Len() > 0 {
		t.sink.Append(records.Bytes(), t.head)
	}
	records.Reset()
	if records.Cap() > 2*tapedSoon {
		records = &bytes.Buffer{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spare = records
	among := func(m *tokentrace.Model) bool { return slices.Contains(left, m) }
	t.models, t.gone = slices.DeleteFunc(t.models, among), slices.DeleteFunc(t.gone, among)
}

// head is the beginning of a trace: the models that its records may be of.
func (t *Tape) head() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b bytes.Buffer
	_, _ = tokentrace.NewWriter(&b, t.models...) // memory takes it
	return b.Bytes()
}

// begin adds a model, and gives it a number.
func (t *Tape) begin(m *tokentrace.Model) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	m.Number = t.last
	t.models = append(t.models, m)
	_ = t.out.Model(m)
	t.due(true)
}

// end says that a model records no more.
func (t *Tape) end(m *tokentrace.Model) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = append(t.gone, m)
}

// write adds an event of a model. Soon says that who reads along waits for it.
func (t *Tape) write(m *tokentrace.Model, e tokentrace.Event, soon bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.out.Of(m.Number)
	_ = t.out.Write(e) // memory takes it
	if t.waiting.Len() > t.most {
		t.waiting.Reset()
		t.out.Part()
		t.lost = true
	}
	t.due(soon)
}

// due has what waits be written. The caller holds the mutex.
func (t *Tape) due(soon bool) {
	to := t.wake
	switch {
	case soon || t.waiting.Len() > tapedSoon:
		to = t.hurry
	case t.queued:
		return
	}
	t.queued = true
	select {
	case to <- struct{}{}:
	default: // it is known
	}
}
