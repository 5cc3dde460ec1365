package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/place"
)

// A GPU on which something does not end, in the middle of answers, is opened again, and the answers are what they were:
// law Survive. The driver never says another word of the one that hangs.
func TestSurviveHang(t *testing.T) {
	left := atomic.Int64{} // submits until one hangs
	trial := &vk.Trial{Patience: time.Second, Hangs: func() bool { return left.Add(-1) == 0 }}
	t.Cleanup(trial.Release)
	e := startFixture(t, fixture, onGPU(t, vulkan.Options{Cache: t.TempDir(), Trial: trial}))
	all := shortPrompts()
	want := alone(t, e, all, 24)
	left.Store(24) // of some 48: a step is one or more
	together(t, e, all, want)
	require.Negative(t, left.Load())
	require.NoError(t, e.Health())
	for _, a := range e.house.Status() {
		if a.ID == e.house.Device() {
			require.Positive(t, a.Restarts)
		}
	}
}

// Whatever hangs, be it while weights are loaded, or are brought for a step, it is done again.
func TestSurviveHangAnywhere(t *testing.T) {
	cache, all := t.TempDir(), shortPrompts()[:1]
	var want []string
	var whole int64 // bytes of weights
	for _, c := range []struct {
		at       int64 // submit, from 1; 0: none hangs
		streamed bool
	}{{0, false}, {1, false}, {9, false}, {0, true}, {5, true}, {47, true}, {53, true}} {
		t.Run(fmt.Sprintf("at %d, streamed %v", c.at, c.streamed), func(t *testing.T) {
			submits := atomic.Int64{}
			trial := &vk.Trial{Patience: 300 * time.Millisecond, Hangs: func() bool { return submits.Add(1) == c.at }}
			t.Cleanup(trial.Release)
			e := startFixture(t, fixture, func(cfg *Config) {
				onGPU(t, vulkan.Options{Cache: cache, Trial: trial})(cfg)
				if c.streamed {
					cfg.VRAM = place.ForWeights(whole, true)
				}
			})
			if c.streamed {
				t.Cleanup(trial.Release) // NVIDIA's driver closes no device while copies of another one hang
			}
			require.Equal(t, c.streamed, e.spec.streams())
			if got := alone(t, e, all, 8); want == nil {
				want, whole = got, e.Plan().Beyond().Weights
			} else {
				require.Equal(t, want, got)
			}
			t.Log(submits.Load(), "submits")
			require.GreaterOrEqual(t, submits.Load(), c.at)
			require.NoError(t, e.Health())
		})
	}
}

// A request whose step hangs the device each time ends with an error. Those beside it are answered.
func TestHangIsOfARequest(t *testing.T) {
	const poison = 7
	d := &beside{flight: 2, draws: true, hung: func(s *backend.Step) bool {
		return slices.Contains(s.Tokens, poison)
	}}
	e := startBeside(t, d, nil)
	all := [][]int32{{1, 2, 3}, {4, 5}, {6, poison}, {8, 9}}
	var wg sync.WaitGroup
	for i, p := range all {
		s := begin(t, e, plain(p, 3))
		wg.Go(func() {
			defer s.Close()
			var ev Event
			if i == 2 {
				var err error
				for err == nil {
					err = s.Next(context.Background(), &ev)
				}
				if !strings.Contains(err.Error(), "this request cannot be computed: computing it failed twice") {
					t.Errorf("of the poisonous one: %v", err)
				}
				return
			}
			for n, id := range expected(p, 3, e.Info.Vocab) {
				if err := s.Next(context.Background(), &ev); err != nil || ev.Token != id {
					t.Errorf("prompt %d, token %d: %d, want %d; error %v", i, n, ev.Token, id, err)
					return
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, e.Health())
}

// A device that comes back some time after it was lost is opened then, and answers go on.
func TestLostForAWhile(t *testing.T) {
	opened := atomic.Int64{}
	d := &beside{flight: 2, draws: true, lost: func(n int) bool { return n == 10 && opened.Load() == 1 },
		away: func() bool { n := opened.Add(1); return 2 <= n && n <= 4 }}
	e := startBeside(t, d, nil)
	p := []int32{1, 2, 3}
	require.Equal(t, expected(p, 30, e.Info.Vocab), collect(t, begin(t, e, plain(p, 30))).tokens)
	require.Equal(t, int64(5), opened.Load())
	require.NoError(t, e.Health())
}

// oneQueue has steps of all models computed one after the other, as they were given to the device. When one hangs,
// those after it end with it, until the device is opened again.
type oneQueue struct {
	mu          sync.Mutex
	given, done int
	moved       sync.Cond
	gone        bool
	last        bool // what hangs is told of after one that ended with it
	behind      int  // how many of those were told of
}

func newQueue() *oneQueue {
	q := &oneQueue{}
	q.moved.L = &q.mu
	return q
}

// enter returns a function that runs a step in its turn.
func (q *oneQueue) enter() (run func(compute func() error) error) {
	if q == nil {
		return func(compute func() error) error { return compute() }
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	turn := q.given
	q.given++
	return func(compute func() error) error {
		q.mu.Lock()
		defer q.mu.Unlock()
		for q.done != turn && !q.gone {
			q.moved.Wait()
		}
		err, first := fmt.Errorf("%w: %w", backend.ErrLost, backend.ErrHung), false
		if !q.gone {
			err = compute()
			first = errors.Is(err, backend.ErrHung)
			q.gone = first
		}
		q.done++
		q.moved.Broadcast()
		for first && q.last && q.behind == 0 {
			q.moved.Wait()
		}
		return err
	}
}

// told hears that the end of a step was told.
func (q *oneQueue) told() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.gone {
		q.behind++
		q.moved.Broadcast()
	}
}

// open begins anew, when all models were closed.
func (q *oneQueue) open() {
	if q != nil {
		q.mu.Lock()
		q.gone, q.behind = false, 0
		q.mu.Unlock()
	}
}

// asking has an engine answer prompts, one after the other, until stopped; each answer is what beside makes of it.
func asking(t *testing.T, e *Engine, all [][]int32) (stop func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-over:
					return
				default:
				}
				s, err := e.Generate(mixed(i, p, 20))
				if err != nil {
					t.Errorf("%s, prompt %d: %v", e.Info.Name, i, err)
					return
				}
				got, err := drain(s)
				if err != nil || !slices.Equal(got.tokens, expected(p, 20, e.Info.Vocab)) {
					t.Errorf("%s, prompt %d, round %d: %d; error %v", e.Info.Name, i, round, got.tokens, err)
					return
				}
			}
		})
	}
	return sync.OnceFunc(func() {
		close(over)
		wg.Wait()
	})
}

// Law Survive: a device that is lost while two models answer computes the sequences of both again, to the same bits.
func TestLostWithTwoModels(t *testing.T) {
	steps, opened := atomic.Int64{}, atomic.Int64{}
	d := &beside{flight: 3, draws: true, pause: 100 * time.Microsecond,
		lost: func(int) bool { return steps.Add(1)%60 == 0 && opened.Load() < 7 },
		away: func() bool { opened.Add(1); return false }}
	h := openHouse(t, d, []string{fixture, "llama"}, func(m *Model) {
		m.Context, m.Blocks, m.Sequences, m.Rows = 1024, 400, 6, 32
	})
	for _, e := range h.Engines() {
		defer asking(t, e, prompts(3))()
	}
	require.Eventually(t, func() bool { return opened.Load() >= 7 && steps.Load() > 500 || t.Failed() }, patient,
		time.Millisecond)
	require.NoError(t, h.Health())
	for _, e := range h.Engines() {
		require.NoError(t, e.Health())
	}
}

// A model that hangs the device twice while another one is there is refused, with an error that says why, and is not
// let in again. The other one goes on: its answers are what they were. That holds, too, if a step of it, which ended
// with the one that hung, is told of first.
func TestHangIsOfAModel(t *testing.T) {
	for _, last := range []bool{false, true} {
		t.Run(fmt.Sprintf("told last %v", last), func(t *testing.T) { hangOfAModel(t, last) })
	}
}

func hangOfAModel(t *testing.T, last bool) {
	const poison = 7
	queue := newQueue()
	queue.last = last
	d := &beside{flight: 4, draws: true, pause: 100 * time.Microsecond, queue: queue,
		hung: func(s *backend.Step) bool { return slices.Contains(s.Tokens, poison) }}
	h := openHouse(t, d, []string{fixture, "llama"}, func(m *Model) {
		m.Context, m.Blocks, m.Sequences, m.Rows = 1024, 400, 6, 32
	})
	first, second := h.Engines()[0], h.Engines()[1]
	clean := [][]int32{{1, 2, 3}, {4, 5}, {8, 9, 10, 11}}
	for _, p := range clean {
		require.NotContains(t, expected(p, 20, first.Info.Vocab), int32(poison))
	}
	stop := asking(t, first, clean)
	_, err := drain(begin(t, second, plain([]int32{6, poison}, 3)))
	require.Error(t, err)
	require.Eventually(t, func() bool { return second.Health() != nil }, patient, time.Millisecond)
	require.ErrorContains(t, second.Health(), "computing it hung the device 2 times within 10m0s, which other models need")
	_, err = second.Generate(plain([]int32{1}, 1))
	require.ErrorContains(t, err, "run it alone, or on another device")
	require.NoError(t, second.Leave(t.Context()))
	_, err = h.Enter(t.Context(), modelOf(t, "llama"))
	require.ErrorContains(t, err, "computing it hung the device 2 times")
	stop()
	require.NoError(t, first.Health())
	require.NoError(t, h.Health())
	require.Equal(t, expected(clean[0], 20, first.Info.Vocab),
		collect(t, begin(t, first, plain(clean[0], 20))).tokens)
}

// Of steps in flight that end together it was the one begun first that hung.
func TestOldestIsToBlame(t *testing.T) {
	began := time.Unix(1, 0)
	at := func(ms int) *step {
		m := &step{}
		m.times.started = began.Add(time.Duration(ms) * time.Millisecond)
		return m
	}
	first, second, third := at(1), at(2), at(3)
	k := &deviceMemory{}
	k.put(&guest{index: 0, flying: []*step{third}})
	k.put(&guest{index: 2, flying: []*step{first}})
	require.Same(t, first, k.oldest(second))
	require.Same(t, first, k.oldest(first))
}
