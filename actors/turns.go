package actors

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
)

// turns runs the mailboxes of all actors that steps and tokens go through, one at a time, on one goroutine. With a
// goroutine for each, as is usual, the runtime wakes a sleeping core several times a token, which costs more than all
// that these actors do. Whoever works for long leaves its turn meanwhile. See docs/adr/0008.
type turns struct {
	steps    line // scheduler, KV owner, device and sampler
	sessions line
	crowded  bool // the device computes on every core

	turn sync.Mutex // held by the goroutine that runs mailboxes
	run  func()     // t.work, bound once: a method value would allocate at every start
	look func()     // t.attend

	mu        sync.Mutex
	running   bool // a goroutine will look at both lines before it ends
	returning int  // goroutines that left and want the turn back

	attending bool // a goroutine, or the timer, will look at sessions while the device computes
	timer     *time.Timer

	delivering  bool // sessions go before the next step
	delivered   time.Time
	undelivered int // steps since then
}

// line is the dispatcher of some of the actors.
type line struct {
	turns *turns
	due   []func() // mailboxes with messages, the one that waits longest first
}

func newTurns(crowded bool) *turns {
	t := &turns{crowded: crowded}
	t.steps.turns, t.sessions.turns = t, t
	t.run, t.look = t.work, t.attend
	t.timer = time.AfterFunc(time.Hour, t.look)
	t.timer.Stop()
	return t
}

// Schedule implements actor.Dispatcher.
func (l *line) Schedule(mailbox func()) {
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
func (*line) Throughput() int { return 300 }

// pop takes the first mailbox of the line, nil if there is none.
func (l *line) pop() func() {
	if len(l.due) == 0 {
		return nil
	}
	first := l.due[0]
	l.due = slices.Delete(l.due, 0, 1) // of a few, or a few hundred; it keeps no mailbox of a session that is gone
	return first
}

func (t *turns) work() {
	t.turn.Lock()
	defer t.turn.Unlock()
	for mailbox := t.next(); mailbox != nil; mailbox = t.next() {
		mailbox()
	}
}

// next returns nil when the goroutine has to end: nothing is due, or one that left goes on with what is.
func (t *turns) next() func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.returning > 0 {
		return nil
	}
	first, second := &t.steps, &t.sessions
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

// leave is called by an actor that has the turn, to do long work. If the others have anything to do, they go on
// meanwhile, on another goroutine.
func (t *turns) leave(work func()) {
	t.mu.Lock()
	t.release(len(t.steps.due)+len(t.sessions.due) > 0)
	defer t.comeBack()
	work()
}

// compute is the device's way to leave. Sessions go on meanwhile where the device leaves them a core.
func (t *turns) compute(work func()) {
	t.mu.Lock()
	attend := !t.crowded && !t.attending && len(t.sessions.due) > 0
	t.attending = t.attending || attend
	yield := t.delivering
	t.delivering = false
	t.release(len(t.steps.due) > 0)
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
func (t *turns) release(more bool) {
	t.running = more
	t.mu.Unlock()
	t.turn.Unlock()
	if more {
		go t.run()
	}
}

func (t *turns) comeBack() {
	t.mu.Lock()
	t.returning++
	t.mu.Unlock()
	t.turn.Lock()
	t.mu.Lock()
	t.returning--
	t.running = true
	t.mu.Unlock()
}

// deliverEvery is how long tokens of very short steps wait to be delivered together. To wake a core for each of them,
// or to let its reader have ours, takes as long as all that the actors do.
const deliverEvery = 4 * time.Millisecond

// attend runs what sessions have to do while the device computes, and looks again after a while: a core that wakes by
// its own timer need not be woken by the one that computes.
func (t *turns) attend() {
	t.mu.Lock()
	t.attending = len(t.sessions.due) > 0
	again := t.attending
	t.mu.Unlock()
	if !again {
		return
	}
	t.work()
	t.mu.Lock()
	if len(t.sessions.due) > 0 { // the device came back just now: before its next step, then
		t.delivering = true
	}
	t.mu.Unlock()
	t.timer.Reset(deliverEvery)
}

// beforeStep is called by the scheduler before the device gets a step. Sessions and their readers go first if what they
// wait for is urgent or the step may be long. If it takes every core, they go first after a few short steps as well, or
// would wait until the runtime takes a core away, 10 ms and more; steps are counted because waiting must not use up a
// client's credit.
func (t *turns) beforeStep(urgent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.undelivered++
	at := now()
	if urgent || t.crowded && (t.undelivered >= batch.Window/4 || at.Sub(t.delivered) >= deliverEvery) {
		t.delivering, t.delivered, t.undelivered = true, at, 0
	}
}
