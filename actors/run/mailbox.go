package run

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/sluice-ai/sluice/internal/trace"
)

// Urgent marks messages that overtake the others: cancel, shutdown, restarts of a neighbour.
type Urgent interface{ Urgent() }

// Late marks messages whose receiver may rightly be gone when they arrive, as an answer's may: dropping them is no
// fault.
type Late interface{ Late() }

// Refusable is implemented by messages whose sender must learn if they were not taken: then Refused is called.
type Refusable interface{ Refused() }

// mailbox is a bounded mailbox with an urgent lane. It never blocks and never drops silently: what does not fit, or
// arrives when the actor is stopping, is counted and answered through Refusable. Credits of the senders keep it from
// ever being full; a refusal is therefore a defect, and tests fail on it. See docs/adr/0001.
type mailbox struct {
	mu        sync.Mutex
	room      *atomic.Int64 // messages that each lane holds
	user      ring
	urgent    ring
	system    []any
	scheduled bool
	suspended bool
	closed    bool

	invoker    actor.MessageInvoker
	dispatcher actor.Dispatcher
	run        func() // m.process, bound once: a method value would allocate at every wake-up
	load       *load
}

// Traced is implemented by messages that say of which kind the span of their handling is, and to which step or weights
// it belongs. Trace is called just before the message is handled, when its receiver owns it.
type Traced interface {
	Trace() (trace.Kind, trace.Of)
}

// load is the account of what an actor did. It outlives restarts.
type load struct {
	track             *trace.Track // of the messages it handled
	refused, restarts atomic.Uint64
	depth, peak       atomic.Int64
	slow              atomic.Int64 // see System.Slow
	stack             atomic.Pointer[[]byte]
}

// holds notes how many messages wait. Most notes change nothing, and a look costs less than writing.
func (l *load) holds(depth int64) {
	if depth != l.depth.Load() {
		l.depth.Store(depth)
	}
	if depth > l.peak.Load() {
		l.peak.Store(depth)
	}
}

// fell keeps the stack of a panic until the supervisor logs it, if the panic is a runtime error: a mistake in the
// program. A panic on purpose says by its reason what is wrong.
func (l *load) fell(reason any) {
	if _, ok := reason.(runtime.Error); ok {
		stack := debug.Stack()
		l.stack.Store(&stack)
	}
}

type envelope struct {
	message any
	at      time.Time
}

// newMailbox returns a mailbox whose lanes hold room messages each; room may grow.
func newMailbox(room *atomic.Int64, l *load) *mailbox {
	size := int(room.Load())
	m := &mailbox{room: room, user: newRing(size), urgent: newRing(size), load: l, scheduled: true} // until Start
	m.run = m.process
	return m
}

// RegisterHandlers implements actor.Mailbox.
func (m *mailbox) RegisterHandlers(invoker actor.MessageInvoker, dispatcher actor.Dispatcher) {
	m.invoker, m.dispatcher = invoker, dispatcher
}

// Start implements actor.Mailbox. An actor can be found by its name before it is started: messages that arrive earlier
// wait, and the handlers, which may not be registered yet, are not used.
func (m *mailbox) Start() { m.dispatcher.Schedule(m.run) }

// UserMessageCount implements actor.Mailbox.
func (m *mailbox) UserMessageCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.user.len() + m.urgent.len()
}

// PostUserMessage implements actor.Mailbox. Poison pills are taken even when it is full.
func (m *mailbox) PostUserMessage(message any) {
	bare := message
	if e, ok := message.(*actor.MessageEnvelope); ok {
		bare = e.Message
	}
	m.mu.Lock()
	closed := m.closed
	ok := !closed
	if ok {
		switch bare.(type) {
		case *actor.PoisonPill:
			ok = m.user.push(envelope{message, trace.Instant()}, m.user.size+1)
		case Urgent:
			ok = m.urgent.push(envelope{message, trace.Instant()}, int(m.room.Load()))
		default:
			ok = m.user.push(envelope{message, trace.Instant()}, int(m.room.Load()))
		}
	}
	m.load.holds(int64(m.user.len() + m.urgent.len()))
	wake := ok && m.wake()
	m.mu.Unlock()
	if !ok {
		m.refuse(bare, closed)
		return
	}
	if wake {
		m.dispatcher.Schedule(m.run)
	}
}

// PostSystemMessage implements actor.Mailbox.
func (m *mailbox) PostSystemMessage(message any) {
	m.mu.Lock()
	m.system = append(m.system, message)
	wake := m.wake()
	m.mu.Unlock()
	if wake {
		m.dispatcher.Schedule(m.run)
	}
}

// wake says whether the caller must schedule the mailbox.
func (m *mailbox) wake() bool {
	if m.scheduled {
		return false
	}
	m.scheduled = true
	return true
}

// refuse turns a message away. That is counted as a fault, unless the actor is stopping and the message is marked
// Late.
func (m *mailbox) refuse(message any, closed bool) {
	if _, expected := message.(Late); !closed || !expected {
		m.load.refused.Add(1)
	}
	if r, ok := message.(Refusable); ok {
		r.Refused()
	}
}

// process handles messages until there are none, then goes idle.
func (m *mailbox) process() {
	var current any
	defer func() {
		if reason := recover(); reason != nil {
			m.load.fell(reason)
			m.invoker.EscalateFailure(reason, current)
			m.mu.Lock()
			again := len(m.system) > 0
			m.scheduled = again
			m.mu.Unlock()
			if again {
				m.dispatcher.Schedule(m.run)
			}
		}
	}()
	for n := 1; ; n++ {
		e, system, ok := m.next()
		if !ok {
			return
		}
		current = e.message
		if system {
			m.control(e.message)
		} else {
			m.handle(e)
		}
		if n%m.dispatcher.Throughput() == 0 {
			runtime.Gosched()
		}
	}
}

func (m *mailbox) handle(e envelope) {
	kind, of := trace.Message, trace.Nothing()
	if t, ok := e.message.(Traced); ok {
		kind, of = t.Trace()
	}
	start := trace.Instant()
	if d := m.load.slow.Load(); d > 0 {
		sleep(time.Duration(d))
	}
	m.invoker.InvokeUserMessage(e.message)
	m.load.track.Record(kind, of, e.at, start, trace.Instant())
}

// next takes the next message in order: system, urgent, user. Without one the mailbox becomes idle.
func (m *mailbox) next() (e envelope, system, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.system) > 0 {
		e.message = m.system[0]
		m.system = m.system[1:]
		if len(m.system) == 0 {
			m.system = nil
		}
		return e, true, true
	}
	if !m.suspended {
		if e, ok = m.urgent.pop(); !ok {
			e, ok = m.user.pop()
		}
	}
	if !ok {
		m.scheduled = false
	}
	m.load.holds(int64(m.user.len() + m.urgent.len()))
	return e, false, ok
}

// control handles a system message. After Stop nothing is taken any more and what was queued is refused:
// protoactor itself would lose it without a trace.
func (m *mailbox) control(message any) {
	switch message.(type) {
	case *actor.SuspendMailbox:
		m.setSuspended(true)
	case *actor.ResumeMailbox:
		m.setSuspended(false)
	case *actor.Stop:
		for _, e := range m.close() {
			m.refuse(e.message, true)
		}
		m.invoker.InvokeSystemMessage(message)
	case *actor.Restart:
		if !m.isClosed() { // a restart that was due when the actor was stopped would bring it back to life
			m.invoker.InvokeSystemMessage(message)
		}
	default:
		m.invoker.InvokeSystemMessage(message)
	}
}

func (m *mailbox) setSuspended(s bool) {
	m.mu.Lock()
	m.suspended = s
	m.mu.Unlock()
}

func (m *mailbox) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed
}

// close refuses messages from now on and returns those that were waiting.
func (m *mailbox) close() []envelope {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	var left []envelope
	for _, r := range []*ring{&m.urgent, &m.user} {
		for e, ok := r.pop(); ok; e, ok = r.pop() {
			left = append(left, e)
		}
	}
	return left
}

// ring is a queue in a circular buffer, which push enlarges as far as its caller allows.
type ring struct {
	items       []envelope
	first, size int
}

func newRing(capacity int) ring { return ring{items: make([]envelope, capacity)} }

func (r *ring) len() int { return r.size }

// push adds an item, unless the queue holds most items already.
func (r *ring) push(e envelope, most int) bool {
	if r.size >= most {
		return false
	}
	if r.size == len(r.items) {
		r.grow(most)
	}
	r.items[(r.first+r.size)%len(r.items)] = e
	r.size++
	return true
}

func (r *ring) grow(size int) {
	wider := make([]envelope, 0, size)
	for range r.size {
		old, _ := r.pop()
		wider = append(wider, old)
	}
	r.items, r.first, r.size = wider[:cap(wider)], 0, len(wider)
}

func (r *ring) pop() (envelope, bool) {
	if r.size == 0 {
		return envelope{}, false
	}
	e := r.items[r.first]
	r.items[r.first] = envelope{}
	r.first = (r.first + 1) % len(r.items)
	r.size--
	return e, true
}
