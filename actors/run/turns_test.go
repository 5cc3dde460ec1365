package run

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// window is the credit of a reader.
const window = 32

// TestTurnsAreTakenOneAtATime: whatever is scheduled runs, once, and never beside another, though some leave and some
// schedule more. The race detector watches the plain counter.
func TestTurnsAreTakenOneAtATime(t *testing.T) {
	const senders, each = 8, 500
	for _, crowded := range []bool{false, true} {
		turns := NewTurns(crowded, window/4)
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
					turns.Steps.Schedule(func() {
						turns.BeforeStep(time.Now(), i%5 == 0)
						turns.Outlets.Schedule(count)
						switch i % 3 {
						case 0:
							turns.Leave(func() { time.Sleep(time.Microsecond) })
						case 1:
							turns.Compute(func() { time.Sleep(time.Microsecond) })
						}
						count()
					})
					turns.Outlets.Schedule(count)
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

// TestTurnsAreShuffled: of mailboxes that are due, the one runs that was picked, and each runs once.
func TestTurnsAreShuffled(t *testing.T) {
	for _, pick := range []func(int) int{nil, func(int) int { return 0 }, func(n int) int { return n - 1 }} {
		turns, over := NewTurns(false, 1), make(chan struct{})
		turns.Shuffle(pick)
		var ran []int
		turns.Steps.Schedule(func() {
			for i := range 4 {
				turns.Steps.Schedule(func() { ran = append(ran, i) })
			}
			turns.Outlets.Schedule(func() { close(over) })
		})
		<-over
		want := []int{0, 1, 2, 3}
		if pick != nil && pick(2) == 1 {
			slices.Reverse(want)
		}
		require.Equal(t, want, ran)
	}
}

// TestTurnsGoOnMeanwhile: who works for long keeps nobody from their turn.
func TestTurnsGoOnMeanwhile(t *testing.T) {
	for name, leave := range map[string]func(*Turns, func()){"leave": (*Turns).Leave, "compute": (*Turns).Compute} {
		synctest.Test(t, func(t *testing.T) {
			turns := NewTurns(false, window/4)
			var log []string
			logged := func() []string {
				synctest.Wait()
				turns.turn.Lock()
				defer turns.turn.Unlock()
				return slices.Clone(log)
			}
			turns.Steps.Schedule(func() {
				turns.Steps.Schedule(func() { log = append(log, "due before") })
				leave(turns, func() { time.Sleep(time.Second) })
				log = append(log, "back")
			})
			time.Sleep(100 * time.Millisecond)
			turns.Steps.Schedule(func() { log = append(log, "due meanwhile") })
			require.Equal(t, []string{"due before", "due meanwhile"}, logged(), name)
			time.Sleep(time.Second)
			require.Equal(t, []string{"due before", "due meanwhile", "back"}, logged(), name)
		})
	}
}

// TestTurnsSurviveAPanic: an actor that panics while it is away has its turn again when its mailbox recovers.
func TestTurnsSurviveAPanic(t *testing.T) {
	turns := NewTurns(true, window/4)
	done := make(chan any, 1)
	turns.Steps.Schedule(func() {
		defer func() { done <- recover() }()
		turns.Compute(func() { panic("broken kernel") })
	})
	require.Equal(t, "broken kernel", <-done)
	turns.Steps.Schedule(func() { done <- "alive" })
	require.Equal(t, "alive", <-done)
}

// lateness computes steps of the same length, as the device does, and notes for each token when its session got it. A
// token is sent after each step.
func lateness(t *testing.T, crowded bool, length time.Duration, steps int) (late []time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(crowded, window/4)
		finished := make(chan struct{})
		var step func()
		step = func() {
			turns.Compute(func() { time.Sleep(length) })
			sent := time.Now()
			turns.Outlets.Schedule(func() { late = append(late, time.Since(sent)) })
			if steps--; steps == 0 {
				close(finished)
				return
			}
			turns.BeforeStep(time.Now(), false)
			turns.Steps.Schedule(step)
		}
		turns.Steps.Schedule(step)
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
		turns := NewTurns(true, window/4)
		for range 10 {
			for waited := 0; !turns.delivery.due; waited++ {
				require.Less(t, waited, window/2)
				turns.BeforeStep(time.Now(), false)
			}
			turns.delivery.due = false
		}
	})
}

// TestUrgentNewsDoNotWait: nor does anything wait for the end of a long step.
func TestUrgentNewsDoNotWait(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			turns := NewTurns(crowded, window/4)
			var order []string
			var step func()
			step = func() {
				order = append(order, "step")
				turns.Compute(func() { time.Sleep(100 * time.Microsecond) })
				if len(order) < 4 {
					turns.Outlets.Schedule(func() { order = append(order, "news") })
					turns.BeforeStep(time.Now(), len(order) > 1)
					turns.Steps.Schedule(step)
				}
			}
			turns.BeforeStep(time.Now(), true)
			turns.Steps.Schedule(step)
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
		turns := NewTurns(crowded, window/4)
		done := make(chan struct{}, 1)
		var got atomic.Int64
		session := func() { got.Add(1) }
		work := func() {}
		step := func() {
			turns.Outlets.Schedule(session)
			turns.BeforeStep(time.Now(), false)
			turns.Compute(work)
			done <- struct{}{}
		}
		require.Zero(t, testing.AllocsPerRun(200, func() {
			turns.Steps.Schedule(step)
			<-done
		}), "crowded %v", crowded)
		require.Positive(t, got.Load())
	}
}

// TestTurnsForgetWhoIsGone: a line keeps nothing of a mailbox that it ran, or requests that ended would stay in memory.
func TestTurnsForgetWhoIsGone(t *testing.T) {
	l := Line{turns: new(Turns)}
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
