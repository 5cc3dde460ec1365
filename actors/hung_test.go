package actors

import (
	"context"
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
	var wg sync.WaitGroup
	for i, p := range all {
		s := begin(t, e, ask(p, 24))
		wg.Go(func() {
			if got, err := trySpelled(s); err != nil || got != want[i] {
				t.Errorf("prompt %d: error %v\n got %s\nwant %s", i, err, got, want[i])
			}
		})
	}
	wg.Wait()
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
