package actors

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/batch"
)

// TestTurnsAreTakenOneAtATime: whatever is scheduled runs, once, and never beside another, though some leave and some
// schedule more. The race detector watches the plain counter.
func TestTurnsAreTakenOneAtATime(t *testing.T) {
	const senders, each = 8, 500
	for _, crowded := range []bool{false, true} {
		turns := newTurns(crowded)
		ran := 0
		var left sync.WaitGroup
		left.Add(3 * senders * each)
		count := func() {
			ran++
			left.Done()
		}
		var posting sync.WaitGroup
		for range senders {
			posting.Go(func() {
				for i := range each {
					turns.steps.Schedule(func() {
						turns.beforeStep(i%5 == 0)
						turns.sessions.Schedule(count)
						switch i % 3 {
						case 0:
							turns.leave(func() { time.Sleep(time.Microsecond) })
						case 1:
							turns.compute(func() { time.Sleep(time.Microsecond) })
						}
						count()
					})
					turns.sessions.Schedule(count)
				}
			})
		}
		posting.Wait()
		left.Wait()
		turns.turn.Lock()
		require.Equal(t, 3*senders*each, ran)
		turns.turn.Unlock()
	}
}

// TestTurnsGoOnMeanwhile: who works for long keeps nobody from their turn.
func TestTurnsGoOnMeanwhile(t *testing.T) {
	for name, leave := range map[string]func(*turns, func()){"leave": (*turns).leave, "compute": (*turns).compute} {
		synctest.Test(t, func(t *testing.T) {
			turns := newTurns(false)
			var log []string
			logged := func() []string {
				synctest.Wait()
				turns.turn.Lock()
				defer turns.turn.Unlock()
				return slices.Clone(log)
			}
			turns.steps.Schedule(func() {
				turns.steps.Schedule(func() { log = append(log, "due before") })
				leave(turns, func() { time.Sleep(time.Second) })
				log = append(log, "back")
			})
			time.Sleep(100 * time.Millisecond)
			turns.steps.Schedule(func() { log = append(log, "due meanwhile") })
			require.Equal(t, []string{"due before", "due meanwhile"}, logged(), name)
			time.Sleep(time.Second)
			require.Equal(t, []string{"due before", "due meanwhile", "back"}, logged(), name)
		})
	}
}

// TestTurnsSurviveAPanic: an actor that panics while it is away has its turn again when its mailbox recovers.
func TestTurnsSurviveAPanic(t *testing.T) {
	turns := newTurns(true)
	done := make(chan any, 1)
	turns.steps.Schedule(func() {
		defer func() { done <- recover() }()
		turns.compute(func() { panic("broken kernel") })
	})
	require.Equal(t, "broken kernel", <-done)
	turns.steps.Schedule(func() { done <- "alive" })
	require.Equal(t, "alive", <-done)
}

// lateness computes steps of the same length, as the device does, and notes for each token when its session got it. A
// token is sent after each step.
func lateness(t *testing.T, crowded bool, length time.Duration, steps int) (late []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(crowded)
		finished := make(chan struct{})
		var step func()
		step = func() {
			turns.compute(func() { time.Sleep(length) })
			sent := time.Now()
			turns.sessions.Schedule(func() { late = append(late, time.Since(sent)) })
			if steps--; steps == 0 {
				close(finished)
				return
			}
			turns.beforeStep(false)
			turns.steps.Schedule(step)
		}
		turns.steps.Schedule(step)
		<-finished
		synctest.Wait()
	})
	return late
}

// TestTokensOfLongStepsAreNotKept: what waits for company are tokens of steps that are shorter than deliverEvery. They
// wait no longer than that and, when the timer's look falls between two steps, for the end of the next one. The last
// token waits for nothing.
func TestTokensOfLongStepsAreNotKept(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		for _, late := range lateness(t, crowded, 5*time.Millisecond, 50) {
			require.Zero(t, late, "crowded %v", crowded)
		}
		short := lateness(t, crowded, time.Millisecond, 50)
		require.Len(t, short, 50)
		kept := 0
		for _, late := range short {
			require.LessOrEqual(t, late, deliverEvery+time.Millisecond, "crowded %v", crowded)
			if late > 0 {
				kept++
			}
		}
		require.Greater(t, kept, 25, "crowded %v: most of them wait a little", crowded)
		require.Zero(t, short[len(short)-1], "crowded %v: the last one", crowded)
	}
}

// TestWaitingKeepsCredit: tokens of the shortest steps are delivered while their client has credit left.
func TestWaitingKeepsCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(true)
		for range 10 {
			for waited := 0; !turns.delivering; waited++ {
				require.Less(t, waited, batch.Window/2)
				turns.beforeStep(false)
			}
			turns.delivering = false
		}
	})
}

// TestUrgentNewsDoNotWait: nor does anything wait for the end of a long step.
func TestUrgentNewsDoNotWait(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			turns := newTurns(crowded)
			var order []string
			var step func()
			step = func() {
				order = append(order, "step")
				turns.compute(func() { time.Sleep(100 * time.Microsecond) })
				if len(order) < 4 {
					turns.sessions.Schedule(func() { order = append(order, "news") })
					turns.beforeStep(len(order) > 1)
					turns.steps.Schedule(step)
				}
			}
			turns.beforeStep(true)
			turns.steps.Schedule(step)
			time.Sleep(time.Second)
			synctest.Wait()
			turns.turn.Lock()
			defer turns.turn.Unlock()
			require.Equal(t, []string{"step", "step", "news", "news", "step"}, order)
		})
	}
}

// TestTurnsAllocateNothing: a decode token takes several turns.
func TestTurnsAllocateNothing(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		turns := newTurns(crowded)
		done := make(chan struct{}, 1)
		var got atomic.Int64
		session := func() { got.Add(1) }
		work := func() {}
		step := func() {
			turns.sessions.Schedule(session)
			turns.beforeStep(false)
			turns.compute(work)
			done <- struct{}{}
		}
		require.Zero(t, testing.AllocsPerRun(200, func() {
			turns.steps.Schedule(step)
			<-done
		}), "crowded %v", crowded)
		require.Positive(t, got.Load())
	}
}

// TestTokensKnowTheirTime: however tokens are delivered, each says when it was there.
func TestTokensKnowTheirTime(t *testing.T) {
	e := startNull(t, nil)
	s := begin(t, e, plain([]int32{5, 6, 7}, 20))
	defer s.Close()
	var ev Event
	last := time.Now()
	for s.Next(t.Context(), &ev) == nil {
		require.True(t, ev.At.After(last), "%v is not after %v", ev.At, last)
		last = ev.At
	}
	require.True(t, time.Now().After(last))
	require.Equal(t, Length, ev.Finish)
}

// TestTurnsForgetWhoIsGone: a line keeps nothing of a mailbox that it ran, or requests that ended would stay in memory.
func TestTurnsForgetWhoIsGone(t *testing.T) {
	var l line
	for range 8 {
		l.due = append(l.due, func() {})
	}
	for range 8 {
		require.NotNil(t, l.pop())
	}
	require.Nil(t, l.pop())
	for _, mailbox := range l.due[:cap(l.due)] {
		require.Nil(t, mailbox)
	}
}
