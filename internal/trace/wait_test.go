package trace

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWait: one wait at a time, its pieces without a gap between them, their sums by cause, and what is open.
func TestWait(t *testing.T) {
	r := New(16, after(0))
	w := r.Track("device").Waits()
	w.End(after(5))
	w.Until(after(6), KV)
	_, since, _ := w.Total()
	require.Negative(t, since)
	w.Begin(after(10), Unknown, Nothing())
	w.Until(after(13), Sampler)
	w.Until(after(13), KV)
	w.Until(after(12), KV)
	w.Until(after(17), Scheduler)
	cause, open := w.Open()
	require.True(t, open)
	require.Equal(t, Unknown, cause)
	w.Begin(after(20), Reader, Of{7, 3, 1, 9}) // what began was not explained up to here
	_, since, cause = w.Total()
	require.EqualValues(t, 20, since)
	require.Equal(t, Reader, cause)
	w.End(after(25))
	w.End(after(26))
	w.Begin(after(30), Credit, Nothing())
	w.Begin(after(30), NoWork, Nothing())
	w.End(after(31))

	idle := func(c Cause, of Of, at, work time.Duration) Span { return Span{"device", Idle, c, of, at, 0, work} }
	require.Equal(t, []Span{
		idle(Sampler, Nothing(), 10, 3), idle(Scheduler, Nothing(), 13, 4), idle(Unknown, Nothing(), 17, 3),
		idle(Reader, Of{7, 3, 1, 9}, 20, 5), idle(NoWork, Nothing(), 30, 1),
	}, r.Snapshot(nil))
	totals, since, _ := w.Total()
	require.Equal(t, [Causes]time.Duration{Sampler: 3, Scheduler: 4, Unknown: 3, Reader: 5, NoWork: 1}, totals)
	require.EqualValues(t, -1, since)
}

// TestWaitIsWhole: a reader never sees time that was counted twice, or was not yet.
func TestWaitIsWhole(t *testing.T) {
	w := New(16, after(0)).Track("device").Waits()
	w.Begin(after(0), NoWork, Nothing())
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 1; n <= 20000; n++ {
			w.Begin(after(n), Cause(n%int(Causes)), Nothing())
		}
	})
	for past := time.Duration(0); past < 20000; {
		totals, since, cause := w.Total()
		sum := time.Duration(0)
		for _, t := range totals {
			sum += t
		}
		require.Equal(t, sum, since)
		if since > 0 {
			require.EqualValues(t, int(since)%int(Causes), cause)
		}
		past = since
	}
	writing.Wait()
}

// TestTogether: readers see nothing of changes that belong together before the last one.
func TestTogether(t *testing.T) {
	w := New(64, after(0)).Track("device").Waits()
	var writing sync.WaitGroup
	writing.Go(func() {
		for n := 0; n < 20000; n += 2 {
			w.Together(func() {
				w.Begin(after(n), Unknown, Nothing())
				w.Until(after(n+1), Sampler)
				w.Until(after(n+2), Scheduler)
				w.End(after(n + 2))
			})
		}
	})
	for past := time.Duration(0); past < 10000; {
		totals, since, _ := w.Total()
		require.EqualValues(t, -1, since, "none is seen open")
		require.Equal(t, totals[Sampler], totals[Scheduler])
		past = totals[Sampler]
	}
	writing.Wait()
	w.Together(func() {
		w.Begin(after(0), Unknown, Nothing())
		require.EqualValues(t, -1, w.begun.Load())
		require.EqualValues(t, 1, w.turn.Load()%2, "readers wait")
		w.End(after(0))
	})
	w.Begin(after(0), NoWork, Nothing())
	_, since, cause := w.Total()
	require.Zero(t, since)
	require.Equal(t, NoWork, cause, "what is alone is seen, too")
}

func TestWaitAllocatesNothing(t *testing.T) {
	w := New(8, after(0)).Track("a").Waits()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		w.Begin(after(1), Unknown, Nothing())
		w.Until(after(2), Sampler)
		w.End(after(3))
		w.Together(func() { w.Begin(after(4), Unknown, Nothing()) })
	}))
}
