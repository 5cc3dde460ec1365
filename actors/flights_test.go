package actors

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func startBeside(t *testing.T, d *beside, edit func(*Config)) *Engine {
	f, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	cfg := Config{Model: Model{File: f, Context: 1024, Blocks: 400, Sequences: 6, Rows: 32}, Device: d, Log: zerolog.Nop()}
	if edit != nil {
		edit(&cfg)
	}
	e, err := Start(context.Background(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, e.Close(context.Background()))
		dead, unexpected := e.house.system.Faults()
		require.Zero(t, dead+unexpected)
	})
	return e
}

// expected is what beside answers, by plain arithmetic.
func expected(prompt []int32, n, vocab int) []int32 {
	tokens := slices.Clone(prompt)
	for range n {
		sum := uint32(2166136261)
		for _, id := range tokens {
			sum = (sum ^ uint32(id)) * 16777619
		}
		tokens = append(tokens, int32(sum>>8)%int32(vocab))
	}
	return tokens[len(prompt):]
}

// mixed are requests of which some can be drawn by a device and others cannot.
func mixed(i int, tokens []int32, most int) Request {
	r := plain(tokens, most)
	if i%3 == 1 {
		r.Sampling.Bias = []sample.Bias{{ID: 1, Add: 0}} // nothing changes, but the host has to see the logits
	}
	return r
}

// A device with three steps in flight gives the answers of one with one, whether or not it draws, and so does one whose
// steps fail now and then, or whose actors die.
func TestStepsInFlight(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(8)
	for _, c := range []struct {
		name   string
		device *beside
		most   int64
		kill   []string
	}{
		{"one", &beside{flight: 1}, 1, nil},
		{"three, drawn by the host", &beside{flight: 3, pause: 200 * time.Microsecond}, 3, nil},
		{"three", &beside{flight: 3, draws: true}, 3, nil},
		{"slow", &beside{flight: 3, draws: true, pause: 300 * time.Microsecond}, 3, nil},
		{"failing", &beside{flight: 3, draws: true, fail: func(n int) bool { return n%37 == 0 }}, 3, nil},
		{"lost twice", &beside{flight: 3, draws: true, pause: 100 * time.Microsecond, lost: lostTimes(2)}, 3, nil},
		{"dying", &beside{flight: 3, draws: true, pause: 200 * time.Microsecond}, 3,
			[]string{"device", "scheduler", "kv", "sampler", "model", "sessions"}},
		{"failing and dying", &beside{flight: 3, draws: true, pause: time.Millisecond,
			fail: func(n int) bool { return n == 12 }}, 3, []string{"kv", "scheduler", "sampler", "kv", "kv"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := startBeside(t, c.device, nil)
			var wg sync.WaitGroup
			for i, p := range all {
				wg.Go(func() {
					want := expected(p, 100, e.Info.Vocab)
					s := begin(t, e, mixed(i, p, 100))
					defer s.Close()
					var ev Event
					for n, id := range want {
						if err := s.Next(context.Background(), &ev); err != nil || ev.Token != id {
							t.Errorf("prompt %d, token %d: %d, want %d; error %v", i, n, ev.Token, id, err)
							return
						}
					}
				})
			}
			for _, victim := range c.kill {
				time.Sleep(15 * time.Millisecond)
				e.crash(victim)
			}
			wg.Wait()
			require.Equal(t, c.most, c.device.most.Load(), "steps in flight")
			require.Eventually(t, func() bool { s := e.Snapshot(); return s.Open == 0 && s.KV.Used == 0 },
				patient, time.Millisecond)
		})
	}
}

// lostTimes has a device lost at its 20th step, so often.
func lostTimes(times int) func(n int) bool {
	return func(n int) bool {
		if n != 20 || times == 0 {
			return false
		}
		times--
		return true
	}
}

// A device that is lost whenever it is opened is given up, with an error that says why.
func TestLostForGood(t *testing.T) {
	e := startBeside(t, &beside{flight: 2, draws: true, lost: func(int) bool { return true }}, nil)
	_, err := drain(begin(t, e, plain([]int32{1, 2}, 10)))
	require.Error(t, err)
	require.Eventually(t, func() bool { return e.Health() != nil }, patient, time.Millisecond)
	require.ErrorContains(t, e.Health(), "given up, for the 6th time within 10m0s: the device is lost: unplugged")
}

// One request that is cancelled with steps in flight gives its blocks back when these have ended, and not before.
func TestCancelInFlight(t *testing.T) {
	d := &beside{flight: 3, draws: true, pause: 20 * time.Millisecond}
	e := startBeside(t, d, nil)
	for range 5 {
		s := begin(t, e, plain([]int32{1, 2, 3}, 500))
		var ev Event
		require.NoError(t, s.Next(context.Background(), &ev))
		s.Close()
		require.Eventually(t, func() bool { n := e.Snapshot(); return n.Open == 0 && n.Running == 0 && n.KV.Used == 0 },
			patient, time.Millisecond)
	}
	got := collect(t, begin(t, e, plain([]int32{4, 5}, 50)))
	require.Equal(t, expected([]int32{4, 5}, 50, e.Info.Vocab), got.tokens)
}

// Steps that nobody wants any more come back behind those before them, which the host may still draw from: else the
// next step would be formed in one of these.
func TestAbandonedInFlight(t *testing.T) {
	e := startBeside(t, &beside{flight: 2}, func(c *Config) { c.Context, c.Blocks, c.Sequences, c.Rows = 256, 60, 4, 64 })
	all := prompts(8)
	over := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	for n := range all {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for time.Now().Before(over) {
				i := r.IntN(len(all))
				s, err := e.Generate(plain(all[i], 60))
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), patient)
				var ev Event
				for at, id := range expected(all[i], 60, e.Info.Vocab)[:r.IntN(30)] {
					if err := s.Next(ctx, &ev); err != nil || ev.Token != id {
						t.Errorf("prompt %d, token %d: %d, want %d; error %v", i, at, ev.Token, id, err)
						break
					}
				}
				cancel()
				s.Close()
			}
		})
	}
	wg.Wait()
}

// Law Survive for a scheduler that dies while a step waits for the drive, and the next one for that: what was queued is
// taken back, while the device is still at what it has of the first.
func TestQueuedStepIsTakenBack(t *testing.T) {
	f := &faults{r: rand.New(rand.NewPCG(1, 2))}
	e := startBeside(t, &beside{flight: 2, draws: true, pause: time.Millisecond}, func(c *Config) {
		c.hooks.plan, c.hooks.disk = few{Ring: 2}.Plan, f.open
	})
	s := begin(t, e, plain([]int32{1, 2, 3}, 900))
	defer s.Close()
	var ev Event
	tokens := expected([]int32{1, 2, 3}, 900, e.Info.Vocab)
	for n, id := range tokens[:200] {
		require.NoError(t, s.Next(context.Background(), &ev))
		require.Equal(t, id, ev.Token)
		if n%50 != 20 {
			continue
		}
		gate := make(chan struct{})
		f.hang.Store(&gate)
		time.Sleep(20 * time.Millisecond) // a step waits, and the next one for that
		e.crash("scheduler")
		time.Sleep(5 * time.Millisecond)
		f.hang.Store(nil)
		close(gate)
	}
	for _, a := range e.Snapshot().Actors {
		require.True(t, a.ID != "house/device" || a.Restarts == 0, "the device restarted")
	}
}

// Two models on a device that works beside the program answer as each does alone.
func TestTwoModelsInFlight(t *testing.T) {
	d := &beside{flight: 3, draws: true, pause: 100 * time.Microsecond}
	h := openHouse(t, d, []string{fixture, fixture}, func(m *Model) {
		m.Context, m.Blocks, m.Sequences, m.Rows = 1024, 400, 6, 32
	})
	var wg sync.WaitGroup
	for _, e := range h.Engines() {
		for i, p := range prompts(5) {
			s := begin(t, e, mixed(i, p, 60))
			wg.Go(func() {
				defer s.Close()
				var ev Event
				for n, id := range expected(p, 60, e.Info.Vocab) {
					if err := s.Next(context.Background(), &ev); err != nil || ev.Token != id {
						t.Errorf("%s, prompt %d, token %d: %d, want %d; error %v", e.Info.Name, i, n, ev.Token, id, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	for _, e := range h.Engines() {
		require.Zero(t, e.Snapshot().FailedSteps)
	}
}
