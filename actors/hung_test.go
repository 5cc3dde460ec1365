package actors

import (
	"context"
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
	"github.com/sluice-ai/sluice/internal/testref"
)

// A GPU on which something does not end, in the middle of answers, is opened again, and the answers are what they were:
// law Survive. The driver never says another word of the one that hangs.
func TestSurviveHang(t *testing.T) {
	if list, err := vulkan.List(); err != nil || len(list) == 0 {
		testref.Missing(t, "vulkan", "no Vulkan device: %v", err)
	}
	armed := atomic.Bool{}
	trial := &vk.Trial{Patience: time.Second, Hangs: func() bool { return armed.CompareAndSwap(true, false) }}
	t.Cleanup(trial.Release)
	e := startFixture(t, fixture, func(c *Config) {
		gpu, err := vulkan.Open(0, vulkan.Options{Cache: t.TempDir(), Trial: trial})
		require.NoError(t, err)
		require.NoError(t, c.Device.Close())
		c.Device = gpu
	})
	all := prompts(4)
	want := alone(t, e, all, 24)
	var wg sync.WaitGroup
	for i, p := range all {
		s := begin(t, e, ask(p, 24))
		wg.Go(func() {
			if got, err := trySpelled(s); err != nil || got != want[i] {
				t.Errorf("prompt %d: error %v\n got %s\nwant %s", i, err, got, want[i])
			}
		})
	}
	armed.Store(true)
	wg.Wait()
	require.False(t, armed.Load())
	require.NoError(t, e.Health())
	for _, a := range e.house.Status() {
		if a.ID == e.house.Device() {
			require.Positive(t, a.Restarts)
		}
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
