package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/bill"
)

// timedDevice is a null device whose steps take a time of their own, and one more for each row.
type timedDevice struct {
	nullDevice
	step, row time.Duration
}

func (d timedDevice) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.nullDevice.Compile(p, c)
	return &timedModel{m, d}, err
}

type timedModel struct {
	backend.Model
	of timedDevice
}

func (m *timedModel) Run(w backend.Work, s *backend.Step) error {
	if w.Segment == 0 && w.Ends() {
		time.Sleep(m.of.step + m.of.row*time.Duration(len(s.Tokens)))
	}
	return m.Model.Run(w, s)
}

// billed reads an answer, and returns what its time went to, and how long it took for its client, who pauses after each
// event; nil: not.
func billed(e *Engine, r Request, pause func() time.Duration) (bill.Bill, time.Duration, error) {
	began := time.Now()
	r.Spent = bill.Begin(began)
	s, err := e.Generate(r)
	if err != nil {
		return bill.Bill{}, 0, err
	}
	defer s.Close()
	var ev Event
	for {
		if err = s.Next(context.Background(), &ev); err != nil {
			break
		}
		if pause != nil {
			time.Sleep(pause())
		}
	}
	if !errors.Is(err, io.EOF) {
		return bill.Bill{}, 0, err
	}
	spent := s.Usage().Spent
	if took := time.Since(began); pause == nil {
		return spent, took, nil
	}
	spent.Until(time.Now(), bill.Write) // as the server does
	return spent, time.Since(began), nil
}

// virtually runs a test in virtual time. What a system that closed has yet to do ends before the test does.
func virtually(t *testing.T, run func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) })
		run(t)
	})
}

// In virtual time only what takes time by itself does: a lone request's is its steps, all of it.
func TestTimeOfALoneRequest(t *testing.T) {
	virtually(t, func(t *testing.T) {
		e := startNull(t, func(c *Config) { c.Device = timedDevice{step: time.Millisecond, row: 100 * time.Microsecond} })
		spent, took, err := billed(e, plain([]int32{1, 2, 3, 4}, 11), nil)
		require.NoError(t, err)
		require.Equal(t, took, spent.Sum())
		require.Equal(t, 1400*time.Microsecond, spent.Spent(bill.Compute))
		require.Equal(t, 11*time.Millisecond, spent.Decoding(bill.Compute))
		require.Equal(t, 12400*time.Microsecond, took)
	})
}

// Whose client does not read has the time until it does under write; a step is shared with the rows of others.
func TestTimeOfOthers(t *testing.T) {
	virtually(t, func(t *testing.T) {
		e := startNull(t, func(c *Config) { c.Device = timedDevice{step: time.Millisecond, row: time.Millisecond} })
		var wg sync.WaitGroup
		wg.Go(func() {
			spent, took, err := billed(e, plain([]int32{1}, 200), func() time.Duration { return 50 * time.Millisecond })
			require.NoError(t, err)
			require.Equal(t, took, spent.Sum())
			require.InEpsilon(t, 10*time.Second, spent.Spent(bill.Write), 0.15, "all but the first window's steps")
		})
		wg.Go(func() {
			spent, took, err := billed(e, plain([]int32{1}, 200), nil)
			require.NoError(t, err)
			require.Equal(t, took, spent.Sum())
			require.Zero(t, spent.Spent(bill.Write))
			require.Positive(t, spent.Decoding(bill.Others))
			require.Greater(t, spent.Decoding(bill.Compute), 3*spent.Decoding(bill.Others))
		})
		wg.Wait()
	})
}

// What was computed before an actor died stays computed; the step that was lost with it is done again.
func TestTimeOfRestarts(t *testing.T) {
	for _, victim := range []string{"scheduler", "device"} {
		virtually(t, func(t *testing.T) {
			e := startNull(t, func(c *Config) { c.Device = timedDevice{step: time.Millisecond} })
			var killer sync.WaitGroup
			killer.Go(func() {
				time.Sleep(10500 * time.Microsecond)
				e.crash(victim)
			})
			spent, took, err := billed(e, plain([]int32{1, 2}, 31), nil)
			killer.Wait()
			require.NoError(t, err)
			require.Equal(t, took, spent.Sum())
			require.GreaterOrEqual(t, spent.Spent(bill.Compute)+spent.Decoding(bill.Compute), 31*time.Millisecond, victim)
			require.Less(t, spent.Spent(bill.Restart), 2*time.Millisecond, victim)
			require.Equal(t, victim == "scheduler", spent.Spent(bill.Restart) > 0, "a step is lost with it")
		})
	}
}

// Causes sum to the wall time of each of many requests, whatever dies meanwhile: in virtual time there is no residual.
func TestCausesUnderChaos(t *testing.T) {
	requests := 10_000
	if testing.Short() {
		requests = 1000
	}
	const clients = 40
	virtually(t, func(t *testing.T) {
		e := startNull(t, func(c *Config) {
			c.Device = timedDevice{step: time.Millisecond, row: 50 * time.Microsecond}
			c.Context, c.Blocks, c.Sequences, c.Rows = 256, 24, 8, 64
		})
		over, end := context.WithCancel(context.Background())
		var killer, all sync.WaitGroup
		killer.Go(func() {
			r := rand.New(rand.NewPCG(1, 1))
			for _, victim := range []string{"scheduler", "kv", "sampler", "device", "scheduler", "session", "sampler"} {
				if victim == "session" {
					victim = fmt.Sprintf("sessions/%d", e.opened.Load())
				}
				select {
				case <-time.After(time.Duration(r.IntN(100*requests)) * time.Microsecond):
					e.crash(victim)
				case <-over.Done():
				}
			}
		})
		var mu sync.Mutex
		var sum [bill.Causes]time.Duration
		residuals := map[time.Duration]int{}
		failed := 0
		for c := range clients {
			all.Go(func() {
				r := rand.New(rand.NewPCG(2, uint64(c)))
				for range requests / clients {
					ask := plain([]int32{int32(r.IntN(9)), 2, 3, 4, 5}, 1+r.IntN(12))
					if r.IntN(8) == 0 {
						ask = plain(make([]int32, 1+r.IntN(200)), 40)
					}
					ask.Client = fmt.Sprint(c % 5)
					var pause func() time.Duration
					if r.IntN(4) == 0 {
						pause = func() time.Duration { return time.Duration(r.Int64N(int64(3 * time.Millisecond))) }
					}
					spent, took, err := billed(e, ask, pause)
					mu.Lock()
					if err != nil {
						failed++
					} else {
						residuals[took-spent.Sum()]++
					}
					for c := range bill.Causes {
						sum[c] += spent.Spent(c)
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		end()
		killer.Wait()
		t.Logf("residuals: %v; without an answer: %d; causes until the first token, and apart from it: %v", residuals, failed, sum)
		require.Equal(t, map[time.Duration]int{0: requests - failed}, residuals)
		require.LessOrEqual(t, failed, 20)
		for _, c := range []bill.Cause{bill.Queue, bill.Write, bill.Restart, bill.Compute, bill.Others} {
			require.Positive(t, sum[c], "%v", c)
		}
	})
}
