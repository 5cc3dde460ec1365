package run

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// taking computes for a while, in turns of some length with gaps between them, and returns how long it has computed.
func taking(t *testing.T, s *Sharer, until time.Time, turn, gap time.Duration, alone *sync.Mutex) (had time.Duration) {
	for time.Now().Before(until) {
		if s.Take(t.Context()) != nil {
			return had
		}
		require.True(t, alone.TryLock(), "two have a turn")
		time.Sleep(turn)
		alone.Unlock()
		s.Give()
		had += turn
		time.Sleep(gap)
	}
	return had
}

// TestCoresAreShared: who has long turns and who has short ones, with pauses between them, have equal shares; who wants
// turns later has its share from then on.
func TestCoresAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, alone := &Cores{}, &sync.Mutex{}
		begin := time.Now()
		until := begin.Add(time.Minute)
		had := make([]time.Duration, 3)
		var all sync.WaitGroup
		for i, turn := range []time.Duration{2 * time.Second, 7 * time.Millisecond} {
			s := c.Join()
			all.Go(func() { had[i] = taking(t, s, until, turn, 100*time.Microsecond, alone) })
		}
		s := c.Join()
		all.Go(func() {
			defer s.Part()
			time.Sleep(30 * time.Second)
			had[2] = taking(t, s, until, 50*time.Millisecond, 0, alone)
		})
		all.Wait()
		require.InDelta(t, 25, had[0].Seconds(), 4) // half of 30 s, a third of 30 s
		require.InDelta(t, 25, had[1].Seconds(), 4)
		require.InDelta(t, 10, had[2].Seconds(), 4)
	})
}

// TestTextsKeepHalf: beside a picture, however long its segments are, an answer takes at least half as many steps as
// alone, but for those of one segment; and the picture has as much of the time as answers leave.
func TestTextsKeepHalf(t *testing.T) {
	for _, segment := range []time.Duration{time.Millisecond, 70 * time.Millisecond, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			const step, between = 20 * time.Millisecond, 300 * time.Microsecond
			steps := func(beside bool) (text, picture time.Duration) {
				c, alone := &Cores{}, &sync.Mutex{}
				until := time.Now().Add(time.Minute)
				var all sync.WaitGroup
				if s := c.Join(); beside {
					all.Go(func() { picture = taking(t, s, until, segment, 10*time.Microsecond, alone) })
				}
				s := c.Join()
				all.Go(func() { text = taking(t, s, until, step, between, alone) })
				all.Wait()
				return text / step, picture
			}
			quiet, _ := steps(false)
			beside, picture := steps(true)
			require.GreaterOrEqual(t, beside+segment/step, quiet/2, "of %d", quiet)
			require.Greater(t, picture, 28*time.Second)
		})
	}
}

// TestTextsKeepHalfLate: so it does if its steps come late now and then. Who wants next to nothing, or is late whenever
// it has had a turn, is not waited for.
func TestTextsKeepHalfLate(t *testing.T) {
	const minute = 60 * time.Second
	for _, x := range []struct {
		segment, reads, step, gap, late time.Duration // of a picture, and of a text, which is late after every tenth step
		text                            time.Duration
	}{
		{segment: 700 * time.Millisecond, step: 20 * time.Millisecond, late: 30 * time.Millisecond, text: 28 * time.Second},
		{segment: 700 * time.Millisecond, step: time.Millisecond, gap: 20 * time.Millisecond, text: 86 * time.Millisecond},
		{segment: 50 * time.Millisecond, reads: 60 * time.Millisecond, step: 2 * time.Millisecond, text: 29 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, alone := &Cores{}, &sync.Mutex{}
			until := time.Now().Add(minute)
			var picture, text time.Duration
			var all sync.WaitGroup
			p, s := c.Join(), c.Join()
			all.Go(func() { picture = taking(t, p, until, x.segment, x.reads+10*time.Microsecond, alone) })
			all.Go(func() {
				for n := 1; time.Now().Before(until); n++ {
					text += taking(t, s, time.Now().Add(1), x.step, x.gap+300*time.Microsecond, alone)
					if n%10 == 0 {
						time.Sleep(x.late)
					}
				}
			})
			all.Wait()
			require.InDelta(t, x.text.Seconds(), text.Seconds(), x.text.Seconds()/20)
			require.Greater(t, picture, 25*time.Second)
		})
	}
}

// TestCoresAreFree: who is alone, or beside those who want nothing, waits for nobody.
func TestCoresAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cores{}
		idle, s := c.Join(), c.Join()
		require.NoError(t, idle.Take(t.Context()))
		idle.Give()
		time.Sleep(time.Second)
		begin := time.Now()
		taking(t, s, begin.Add(10*time.Second), time.Second, 0, &sync.Mutex{})
		require.Equal(t, 10*time.Second, time.Since(begin))
		idle.Part()
		require.NoError(t, s.Take(t.Context()))
		s.Give()
		require.Zero(t, testing.AllocsPerRun(100, func() {
			_ = s.Take(t.Context())
			s.Give()
		}))
	})
}

// TestCoresAreLeft: who gives up waiting keeps nobody from the next turn.
func TestCoresAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Cores{}
		a, b := c.Join(), c.Join()
		require.NoError(t, a.Take(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { failed <- b.Take(ctx) }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-failed, context.Canceled)
		a.Give()
		time.Sleep(time.Second)
		require.NoError(t, a.Take(t.Context()), "the turn is free")
		a.Give()
		require.NoError(t, b.Take(t.Context()))
		b.Give()
	})
}
