package actors

import (
	"context"
	"io"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/reply"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

// Finish says how an answer ended.
type Finish string

const (
	Running Finish = ""
	Stopped Finish = "stop"   // an end token or a stop string
	Length  Finish = "length" // the limit asked for, or the context, is used up
)

// Event is a piece of an answer: one token and the text that it completed, which is empty while a character, a
// possible stop string or a tag is incomplete. The last event has a Finish and may bring the last text without a
// token.
type Event struct {
	Text     []byte       // of all parts, one after the other; Each tells them apart
	Parts    []reply.Part // what Text consists of, with Request.Thoughts or Tools; none: all is answer
	HasToken bool
	Token    int32
	LogProb  float32
	Top      []sample.TokenProb
	At       time.Time // when the token was drawn; tokens drawn soon after may be delivered with it
	Drift    float64   // state of sampling behind the token
	Finish   Finish
	Stop     string // the stop string that ended the answer; "" if none did

	Pos    int       // Score: position of the first row
	Logits []float32 // Score: rows of the vocabulary's size, valid until the next call of Next
}

// Each yields the parts of an event with their text.
func (e *Event) Each() iter.Seq2[reply.Part, []byte] {
	return func(yield func(reply.Part, []byte) bool) {
		if len(e.Parts) == 0 && len(e.Text) > 0 {
			yield(reply.Part{Kind: tools.Text, Len: len(e.Text)}, e.Text)
			return
		}
		text := e.Text
		for _, p := range e.Parts {
			if !yield(p, text[:p.Len:p.Len]) {
				return
			}
			text = text[p.Len:]
		}
	}
}

// Usage counts the tokens of a request and the time they took.
type Usage struct {
	Prompt    int // tokens of the prompt
	Cached    int // of them, found in the prefix cache
	Generated int
	Proposed  int           // tokens that were guessed and tried
	Accepted  int           // those of them that were drawn
	Queue     time.Duration // from opening the request until it was submitted
	Prefill   time.Duration // from then until the first token
	Decode    time.Duration // from the first token to the last

	// Spent is what the time went to up to the last token that was read, or is there to be read.
	Spent bill.Bill
}

// Stream is the client's side of a request. One goroutine reads it. Each read returns a credit: the sequence of a
// client that does not read is left out of further steps, and does not slow the others down.
type Stream struct {
	cancel func() // tells the session that nobody reads any more
	prompt progress

	mu     sync.Mutex
	queue  []unseen // ring buffer of events that were not read
	first  int
	size   int
	end    error // after what is queued: io.EOF, or why the answer is not whole; nil: it goes on
	usage  Usage
	notify chan struct{} // has an item when an event or the end has come
	owed   *credit       // the credit of the event that was read last, if its rows are still the reader's
}

// progress is how far the steps have come with a prompt, in tokens.
type progress struct{ done, cached, total atomic.Int64 }

// Reading is how far the engine has read a prompt, in tokens.
type Reading struct {
	Done   int // read so far, or found in the cache
	Cached int // found there
	Total  int // 0: it is not computed yet
}

// Reading returns how far the prompt of the request has been read.
func (s *Stream) Reading() Reading {
	p := &s.prompt
	total := p.total.Load()
	return Reading{Done: int(min(p.done.Load(), total)), Cached: int(p.cached.Load()), Total: int(total)}
}

// unseen is an event that was not read.
type unseen struct {
	event  Event
	credit *credit // that the event holds; nil if none
}

// credit is how a reader limits how far its sequence is computed ahead: the scheduler plans at most batch.Window
// tokens beyond what was read.
type credit struct {
	consumed atomic.Uint64 // tokens taken by the client's side
	starved  atomic.Bool   // the scheduler leaves the sequence out until a wake
	wakeUp   func()        // sends wake
}

// giveBack returns one token's credit to the scheduler, and wakes it if the sequence was starved.
func (c *credit) giveBack() {
	c.consumed.Add(1)
	if c.starved.CompareAndSwap(true, false) {
		c.wakeUp()
	}
}

// streamCapacity is how many events a stream holds: a window of tokens, the last text and an end.
const streamCapacity = batch.Window + 2

func newStream(capacity int) *Stream {
	return &Stream{queue: make([]unseen, capacity), notify: make(chan struct{}, 1)}
}

// Next waits for the next event and copies it to e, whose Text and Parts are reused. After the last event it returns
// io.EOF, or the error that ended the answer.
func (s *Stream) Next(ctx context.Context, e *Event) error {
	for {
		ok, err := s.take(e)
		if ok || err != nil {
			return err
		}
		select {
		case <-s.notify:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Stream) take(e *Event) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owed != nil {
		s.owed.giveBack()
		s.owed = nil
	}
	if s.size == 0 {
		return false, s.end
	}
	from := &s.queue[s.first]
	text, parts := append(e.Text[:0], from.event.Text...), append(e.Parts[:0], from.event.Parts...)
	*e = from.event
	e.Text, e.Parts = text, parts
	if e.Logits != nil {
		s.owed = from.credit // the logits stay the reader's until it calls again
	} else if from.credit != nil {
		from.credit.giveBack()
	}
	from.credit, from.event.Logits, from.event.Top = nil, nil, nil
	s.first = (s.first + 1) % len(s.queue)
	s.size--
	return true, nil
}

// push adds an event, whose fields fill sets, with what it adds to the counts. Credits bound how many events wait.
func (s *Stream) push(c *credit, fill func(*Event, *Usage)) {
	s.mu.Lock()
	if s.size == len(s.queue) {
		s.grow() // a request that started again may hold credit of both its sequences
	}
	to := &s.queue[(s.first+s.size)%len(s.queue)]
	to.event = Event{Text: to.event.Text[:0], Parts: to.event.Parts[:0]}
	to.credit = c
	fill(&to.event, &s.usage)
	s.size++
	s.mu.Unlock()
	s.signal()
}

func (s *Stream) grow() {
	wider := make([]unseen, 0, 2*len(s.queue))
	for i := range s.size {
		wider = append(wider, s.queue[(s.first+i)%len(s.queue)])
	}
	s.queue, s.first = wider[:cap(wider)], 0
}

// finish ends the stream after what is queued; err is nil if the answer is whole. It is called once.
func (s *Stream) finish(err error) {
	if err == nil {
		err = io.EOF
	}
	s.mu.Lock()
	s.end = err
	s.mu.Unlock()
	s.signal()
}

// count changes what was counted.
func (s *Stream) count(change func(*Usage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.usage)
}

func (s *Stream) signal() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// Usage returns the counts so far. Those of the prompt are there with the first event, all of them once Next has
// returned io.EOF.
func (s *Stream) Usage() Usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usage
}

// Close cancels the request, whatever its state. It may be called at any time, also twice.
func (s *Stream) Close() { s.cancel() }
