package run

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// Turns runs the mailboxes of the actors that make steps, and of those that deliver the results, one at a time, on one
// goroutine. With a goroutine for each, as is usual, the runtime wakes a sleeping core several times a step, which
// costs more than all that these actors do. An actor with long work leaves its turn meanwhile; see Leave. See
// docs/adr/0008.
type Turns struct {
	Steps   Line // the actors that make steps
	Outlets Line // the actors that deliver the steps' results, to readers that hold credits
	crowded bool // steps are computed on every core
	keep    int  // how many steps' results wait to be delivered together, if crowded

	turn sync.Mutex // held by the goroutine that runs mailboxes
	run  func()     // t.work, bound once: a method value would allocate at every start
	look func()     // t.attend

	mu        sync.Mutex
	pick      func(n int) int // see Shuffle; nil: the first
	running   bool            // a goroutine will look at both lines before it ends
	returning int             // goroutines that left and want the turn back

	attending bool // a goroutine, or the timer, will look at outlets while a step is computed
	timer     *time.Timer

	delivery struct {
		due   bool // outlets go before steps; BeforeStep sets it
		last  time.Time
		steps int // since then
	}
}

// Line is the dispatcher of some of the actors: a queue of their mailboxes.
type Line struct {
	turns *Turns
	due   []func() // mailboxes with messages, the one that waits longest first
}

// NewTurns returns turns. Crowded says that steps are computed on every core; then the results of up to keep steps
// wait to be delivered together, fewer than a reader has credits for.
func NewTurns(crowded bool, keep int) *Turns {
	t := &Turns{crowded: crowded, keep: keep}
	t.Steps.turns, t.Outlets.turns = t, t
	t.run, t.look = t.work, t.attend
	t.timer = time.AfterFunc(time.Hour, t.look)
	t.timer.Stop()
	return t
}

// Crowd says whether steps take every core from now on.
func (t *Turns) Crowd(crowded bool) {
	t.mu.Lock()
	t.crowded = crowded
	t.mu.Unlock()
}

// Schedule implements actor.Dispatcher.
func (l *Line) Schedule(mailbox func()) {
	t := l.turns
	t.mu.Lock()
	l.due = append(l.due, mailbox)
	start := !t.running
	t.running = true
	t.mu.Unlock()
	if start {
		go t.run()
	}
}

// Throughput implements actor.Dispatcher: after how many messages a mailbox lets other goroutines go first.
func (*Line) Throughput() int { return 300 }

// Shuffle is for tests: of n mailboxes that are due, the one runs next whose number pick returns. Each actor's messages
// keep their order, and nothing may depend on any other: what comes first between actors is chance where they do not
// share a goroutine.
func (t *Turns) Shuffle(pick func(n int) int) {
	t.mu.Lock()
	t.pick = pick
	t.mu.Unlock()
}

// pop takes the next mailbox of the line, nil if there is none.
func (l *Line) pop() func() {
	if len(l.due) == 0 {
		return nil
	}
	next := 0
	if l.turns.pick != nil {
		next = l.turns.pick(len(l.due))
	}
	mailbox := l.due[next]
	l.due = slices.Delete(l.due, next, next+1) // of a few, or a few hundred; it keeps no mailbox of an actor that is gone
	return mailbox
}

func (t *Turns) work() {
	t.turn.Lock()
	defer t.turn.Unlock()
	for mailbox := t.next(); mailbox != nil; mailbox = t.next() {
		mailbox()
	}
}

// next returns the mailbox that is run next. It is nil when the goroutine has to end: nothing is due, or a goroutine
// that had left its turn wants it back, and goes on with what is due.
func (t *Turns) next() func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.returning > 0 {
		return nil
	}
	first, second := &t.Steps, &t.Outlets
	if t.delivery.due {
		first, second = second, first
	}
	mailbox := first.pop()
	if mailbox == nil {
		mailbox = second.pop()
	}
	t.running = mailbox != nil
	return mailbox
}

// Leave is called by an actor that has the turn, to do long work. If the others have anything to do, they go on
// meanwhile, on another goroutine.
func (t *Turns) Leave(work func()) {
	t.mu.Lock()
	t.release(len(t.Steps.due)+len(t.Outlets.due) > 0)
	defer t.comeBack()
	work()
}

// Compute is the Leave of the actor that computes a step. Outlets go on meanwhile, unless steps take every core.
func (t *Turns) Compute(work func()) {
	t.mu.Lock()
	attend := !t.crowded && !t.attending && len(t.Outlets.due) > 0
	t.attending = t.attending || attend
	yield := t.delivery.due
	t.delivery.due = false
	t.release(len(t.Steps.due) > 0)
	if attend {
		go t.look()
	}
	if yield {
		runtime.Gosched() // to those who read the streams
	}
	defer t.comeBack()
	work()
}

// release gives the turn up; the caller holds t.mu, and does not afterwards.
func (t *Turns) release(more bool) {
	t.running = more
	t.mu.Unlock()
	t.turn.Unlock()
	if more {
		go t.run()
	}
}

func (t *Turns) comeBack() {
	if t.turn.TryLock() { // nobody has gone on meanwhile
		t.mu.Lock()
	} else {
		t.mu.Lock()
		t.returning++
		t.mu.Unlock()
		t.turn.Lock()
		t.mu.Lock()
		t.returning--
	}
	t.running = true
	t.mu.Unlock()
}

// deliverEvery is how long the results of very short steps wait to be delivered together. To wake a core for the
// results of each step, or to yield ours to the reader, takes as long as all that the actors do in a step.
const deliverEvery = 4 * time.Millisecond

// attend runs the outlets' mailboxes while a step is computed, and looks again after deliverEvery: a core that wakes
// by its own timer need not be woken by the one that computes.
func (t *Turns) attend() {
	t.mu.Lock()
	t.attending = len(t.Outlets.due) > 0
	again := t.attending
	t.mu.Unlock()
	if !again {
		return
	}
	t.work()
	t.mu.Lock()
	if len(t.Outlets.due) > 0 { // the step has ended and its goroutine has the turn: they go before the next step
		t.delivery.due = true
	}
	t.mu.Unlock()
	t.timer.Reset(deliverEvery)
}

// BeforeStep is called before a step, planned at a time, is handed to the actor that computes it. Outlets and
// their readers go first if urgent: what they wait for is, or the step may be long. If steps take every core,
// outlets also go first after keep steps, or after deliverEvery: else they would wait until the runtime preempts a
// core, 10 ms and more. Steps are counted because waiting must not use up a reader's credits.
func (t *Turns) BeforeStep(at time.Time, urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.delivery.steps++
	if urgent || t.crowded && (t.delivery.steps >= t.keep || at.Sub(t.delivery.last) >= deliverEvery) {
		t.delivery.due, t.delivery.last, t.delivery.steps = true, at, 0
	}
}
