package run

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// Turns runs the mailboxes of all actors that work in steps and hand on what comes of them, one at a time, on one
// goroutine. With a goroutine for each, as is usual, the runtime wakes a sleeping core several times a step, which
// costs more than all that these actors do. Whoever works for long leaves its turn meanwhile. See docs/adr/0008.
type Turns struct {
	Steps   Line // of those who make steps
	Outlets Line // of those who hand on what came of them, to readers that hold credits
	crowded bool // steps are computed on every core
	keep    int  // steps whose results may wait

	turn sync.Mutex // held by the goroutine that runs mailboxes
	run  func()     // t.work, bound once: a method value would allocate at every start
	look func()     // t.attend

	mu        sync.Mutex
	running   bool // a goroutine will look at both lines before it ends
	returning int  // goroutines that left and want the turn back

	attending bool // a goroutine, or the timer, will look at outlets while a step is computed
	timer     *time.Timer

	delivering  bool // outlets go before the next step
	delivered   time.Time
	undelivered int // steps since then
}

// Line is the dispatcher of some of the actors.
type Line struct {
	turns *Turns
	due   []func() // mailboxes with messages, the one that waits longest first
}

// NewTurns returns turns for steps that take every core, if crowded. Then what came of up to keep steps waits for
// company: fewer than a reader has credits for.
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

// pop takes the first mailbox of the line, nil if there is none.
func (l *Line) pop() func() {
	if len(l.due) == 0 {
		return nil
	}
	first := l.due[0]
	l.due = slices.Delete(l.due, 0, 1) // of a few, or a few hundred; it keeps no mailbox of an actor that is gone
	return first
}

func (t *Turns) work() {
	t.turn.Lock()
	defer t.turn.Unlock()
	for mailbox := t.next(); mailbox != nil; mailbox = t.next() {
		mailbox()
	}
}

// next returns nil when the goroutine has to end: nothing is due, or one that left goes on with what is.
func (t *Turns) next() func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.returning > 0 {
		return nil
	}
	first, second := &t.Steps, &t.Outlets
	if t.delivering {
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

// Compute is the way to leave for who computes a step. Outlets go on meanwhile where it leaves them a core.
func (t *Turns) Compute(work func()) {
	t.mu.Lock()
	attend := !t.crowded && !t.attending && len(t.Outlets.due) > 0
	t.attending = t.attending || attend
	yield := t.delivering
	t.delivering = false
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
	t.mu.Lock()
	t.returning++
	t.mu.Unlock()
	t.turn.Lock()
	t.mu.Lock()
	t.returning--
	t.running = true
	t.mu.Unlock()
}

// deliverEvery is how long what came of very short steps waits to be delivered together. To wake a core for each of
// them, or to let its reader have ours, takes as long as all that the actors do.
const deliverEvery = 4 * time.Millisecond

// attend runs what outlets have to do while a step is computed, and looks again after a while: a core that wakes by
// its own timer need not be woken by the one that computes.
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
	if len(t.Outlets.due) > 0 { // the step ended just now: before the next one, then
		t.delivering = true
	}
	t.mu.Unlock()
	t.timer.Reset(deliverEvery)
}

// BeforeStep is called before a step is handed to who computes it. Outlets and their readers go first if what they
// wait for is urgent or the step may be long. If it takes every core, they go first after a few short steps as well,
// or would wait until the runtime takes a core away, 10 ms and more; steps are counted because waiting must not use up
// a reader's credit.
func (t *Turns) BeforeStep(urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undelivered++
	at := now()
	if urgent || t.crowded && (t.undelivered >= t.keep || at.Sub(t.delivered) >= deliverEvery) {
		t.delivering, t.delivered, t.undelivered = true, at, 0
	}
}
