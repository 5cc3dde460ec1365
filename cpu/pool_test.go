package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// tally counts how often each chunk ran; do is all that a chunk does besides.
type tally struct {
	ran []atomic.Int32
	do  func(worker, chunk int)
}

func (t *tally) run(worker, chunk int) {
	t.ran[chunk].Add(1)
	if t.do != nil {
		t.do(worker, chunk)
	}
}

func TestPoolRunsEachChunkOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		threads := rapid.IntRange(1, 5).Draw(rt, "threads")
		p := newPool(threads)
		defer p.close()
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 300), 1, 30).Draw(rt, "chunks") {
			work := &tally{ran: make([]atomic.Int32, n), do: func(worker, _ int) {
				if worker < 0 || worker >= threads {
					panic("no such worker")
				}
			}}
			if n%7 == 0 {
				time.Sleep(50 * time.Microsecond) // the workers park
			}
			p.do(work, n)
			for i := range work.ran {
				require.EqualValues(rt, 1, work.ran[i].Load(), "chunk %d of %d", i, n)
			}
		}
	})
}

// TestPoolStops: once a task is stopped, no more chunks begin than workers have claimed; the next task has all of its
// own.
func TestPoolStops(t *testing.T) {
	for _, threads := range []int{1, 3} {
		p := newPool(threads)
		stop := &atomic.Bool{}
		work := &tally{ran: make([]atomic.Int32, 200), do: func(int, int) { stop.Store(true) }}
		p.until(stop, work, 200)
		ran := int32(0)
		for i := range work.ran {
			ran += work.ran[i].Load()
		}
		require.LessOrEqual(t, ran, int32(threads))
		require.Positive(t, ran)
		work = &tally{ran: make([]atomic.Int32, 200)}
		p.do(work, 200)
		for i := range work.ran {
			require.EqualValues(t, 1, work.ran[i].Load())
		}
		p.close()
	}
}

func TestPoolOnOneProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := newPool(3)
	defer p.close()
	require.Zero(t, p.patience, "spinning on one processor keeps the others from working")
	for range 2000 {
		work := &tally{ran: make([]atomic.Int32, 9)}
		p.do(work, 9)
		for i := range work.ran {
			require.EqualValues(t, 1, work.ran[i].Load())
		}
	}
}

// TestPoolWithBusyNeighbours: others that never yield slow a task down and do not stop it.
func TestPoolWithBusyNeighbours(t *testing.T) {
	var stop atomic.Bool
	var busy sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !stop.Load() {
			}
		})
	}
	p := newPool(2)
	work := &tally{ran: make([]atomic.Int32, 16)}
	for range 20 {
		p.do(work, 16)
	}
	stop.Store(true)
	busy.Wait()
	p.close()
	for i := range work.ran {
		require.EqualValues(t, 20, work.ran[i].Load())
	}
}

func TestPoolCarriesPanics(t *testing.T) {
	p := newPool(3)
	defer p.close()
	for bad := range 20 {
		work := &tally{ran: make([]atomic.Int32, 20), do: func(_, chunk int) {
			if chunk == bad {
				panic("broken invariant")
			}
		}}
		func() {
			defer func() {
				f, ok := recover().(*workerPanic)
				require.True(t, ok)
				require.Equal(t, "broken invariant", f.value)
				require.ErrorContains(t, f, "tally")
			}()
			p.do(work, 20)
		}()
		for i := range work.ran {
			require.EqualValues(t, 1, work.ran[i].Load(), "the others run all the same")
		}
	}
	p.do(&tally{ran: make([]atomic.Int32, 5)}, 5)
}

func TestPoolCloseEndsThreads(t *testing.T) {
	p := newPool(4)
	p.do(&tally{ran: make([]atomic.Int32, 8)}, 8)
	p.close()
	p.close()
	goleak.VerifyNone(t) // which waits a little: a goroutine is counted until its thread has ended
}

func TestPoolOfOneStartsNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	p := newPool(1)
	require.Equal(t, before, runtime.NumGoroutine())
	p.do(&tally{ran: make([]atomic.Int32, 8)}, 8)
	p.close()
}

// BenchmarkBarrier is the cost of a phase that does nothing: back to back, and after the workers have parked.
func BenchmarkBarrier(b *testing.B) {
	p := newPool(2)
	defer p.close()
	work := &tally{ran: make([]atomic.Int32, 8)}
	b.Run("warm", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			p.do(work, 8)
		}
	})
	b.Run("parked", func(b *testing.B) {
		for range b.N {
			b.StopTimer()
			time.Sleep(time.Millisecond)
			b.StartTimer()
			p.do(work, 8)
		}
	})
}
