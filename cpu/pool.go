package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/internal/system"
)

// task is work in chunks that may run at the same time, in any order, each on any worker.
type task interface {
	run(worker, chunk int)
}

// spin is how long a worker polls for work without a break: longer than the serial part between two operations. Then it
// polls until patience ends, but yields its core between two polls: another worker may be waiting for this core. Only
// then it parks, since waking a thread costs about as much as a small operation.
const (
	spin     = 20 * time.Microsecond
	patience = 300 * time.Microsecond
)

// pool runs tasks on the calling goroutine, worker 0, and on threads of its own.
//
// Chunks are claimed one by one from a single word, so a worker whose core is half taken just claims fewer. The word
// holds the number of chunks (upper half) and of the next one (lower half). A claim that is below the number of chunks
// belongs to the running task, even if its worker slept through the ones before: do does not return before every
// claimed chunk is done, so after a claim, and only then, task may be read.
type pool struct {
	word atomic.Uint64
	_    [56]byte // its own cache line: every worker writes it often
	left atomic.Int64
	_    [56]byte

	turn     sync.Mutex // held by the caller whose task runs: models on different goroutines take turns
	task     task
	stop     *atomic.Bool // of the task: chunks that are not begun are left out once it is true; nil: none is
	patience time.Duration

	waiting  atomic.Bool   // do is parked until left is 0
	finished chan struct{} // wakes it
	failure  atomic.Pointer[workerPanic]

	workers []worker
	closed  atomic.Bool
	ended   sync.WaitGroup
}

type worker struct {
	parked atomic.Bool
	wake   chan struct{}
	_      [48]byte
}

// workerPanic is what do panics with if a chunk did.
type workerPanic struct {
	value any
	stack []byte
}

func (p *workerPanic) Error() string {
	return fmt.Sprintf("cpu: a worker panicked: %v\n%s", p.value, p.stack)
}

// newPool starts threads-1 threads. They end with close.
func newPool(threads int) *pool {
	p := &pool{finished: make(chan struct{}, 1), workers: make([]worker, threads-1)}
	if threads <= runtime.GOMAXPROCS(0) {
		p.patience = patience // else spinning would only keep others from working
	}
	for i := range p.workers {
		p.workers[i].wake = make(chan struct{}, 1)
		p.ended.Add(1)
		go p.serve(i + 1)
	}
	return p
}

// close ends the threads. No task may be running.
func (p *pool) close() {
	if p.closed.Swap(true) {
		return
	}
	for i := range p.workers {
		p.workers[i].unpark()
	}
	p.ended.Wait()
}

// size is the number of workers, the caller included.
func (p *pool) size() int { return len(p.workers) + 1 }

// do runs chunks 0…n−1 of t and returns when all are done. Goroutines that call it take turns of about a millisecond
// while several have much to do: one that has waited that long is next (sync.Mutex, starvation mode). If chunks panic,
// do panics with a *workerPanic after the others are done.
func (p *pool) do(t task, n int) { p.until(nil, t, n) }

// until is do, but leaves out the chunks that are not begun yet once stop is true; nil: it never is.
func (p *pool) until(stop *atomic.Bool, t task, n int) {
	if n == 1 || len(p.workers) == 0 {
		for i := range n {
			if stop == nil || !stop.Load() {
				t.run(0, i)
			}
		}
		return
	}
	if n <= 0 {
		return
	}
	p.turn.Lock()
	defer p.turn.Unlock()
	p.task, p.stop = t, stop
	p.left.Store(int64(n))
	p.word.Store(uint64(n) << 32)
	for i := range min(n-1, len(p.workers)) {
		p.workers[i].unpark()
	}
	p.work(0)
	p.wait()
	p.task, p.stop = nil, nil
	if f := p.failure.Swap(nil); f != nil {
		panic(f)
	}
}

// available says whether an unclaimed chunk is left.
func (p *pool) available() bool {
	next, n := halves(p.word.Load())
	return next < n
}

func halves(word uint64) (next, n uint32) { return uint32(word), uint32(word >> 32) }

// work claims chunks until none is left, and subtracts from left what it did at the end: each of both words then moves
// between cores as seldom as can be. A claim that finds nothing leaves the word higher than it has to be, once a call.
func (p *pool) work(id int) {
	done := int64(0)
	for {
		chunk, n := halves(p.word.Add(1) - 1)
		if chunk >= n {
			break
		}
		p.chunk(id, int(chunk))
		done++
	}
	if done > 0 && p.left.Add(-done) == 0 && p.waiting.CompareAndSwap(true, false) {
		p.finished <- struct{}{}
	}
}

func (p *pool) chunk(id, chunk int) {
	if p.stop != nil && p.stop.Load() {
		return
	}
	defer func() {
		if v := recover(); v != nil {
			p.failure.CompareAndSwap(nil, &workerPanic{v, debug.Stack()})
		}
	}()
	p.task.run(id, chunk)
}

// wait returns when all claimed chunks are done.
func (p *pool) wait() {
	for !p.spinUntil(func() bool { return p.left.Load() == 0 }) {
		p.waiting.Store(true)
		if p.left.Load() == 0 && p.waiting.CompareAndSwap(true, false) {
			return
		}
		// A worker that was descheduled before it signalled the end of an earlier task may wake us too early: look
		// again.
		<-p.finished
	}
}

// spinUntil polls for a while, and says whether ok holds.
func (p *pool) spinUntil(ok func() bool) bool {
	if ok() {
		return true
	}
	if p.patience == 0 {
		return false
	}
	for start := time.Now(); ; {
		for range 16 {
			if ok() {
				return true
			}
			pause()
		}
		switch waited := time.Since(start); {
		case waited > p.patience:
			return false
		case waited > spin:
			system.Yield()
		}
	}
}

// serve is the loop of a worker's thread. The goroutine stays locked to it, so that the thread ends with the goroutine.
func (p *pool) serve(id int) {
	defer p.ended.Done()
	runtime.LockOSThread()
	system.Settle()
	debug.SetPanicOnFault(true) // weights may be pages of a file, which can be cut: see chunk
	w := &p.workers[id-1]
	for !p.closed.Load() {
		p.work(id)
		if !p.spinUntil(func() bool { return p.available() || p.closed.Load() }) {
			w.park(p)
		}
	}
}

// park sleeps until unpark, unless there is already something to do.
func (w *worker) park(p *pool) {
	w.parked.Store(true)
	if (p.available() || p.closed.Load()) && w.parked.CompareAndSwap(true, false) {
		return
	}
	<-w.wake
}

func (w *worker) unpark() {
	if w.parked.Load() && w.parked.CompareAndSwap(true, false) {
		w.wake <- struct{}{}
	}
}
