package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/place"
)

// inTiers has every second of the groups that stream wait in the host's memory, to be copied by the device: uploader
// and prefetcher bring the others from disk.
func inTiers(f few) func(*Config) {
	return func(c *Config) {
		c.hooks.plan = func(p *ir.Bound, m *place.Model) {
			f.Plan(p, m)
			second := false
			for g := range m.Homes {
				if h := &m.Homes[g]; h.Tier == place.Disk && h.Group.Use == ir.Matrix {
					if second = !second; second {
						h.Tier = place.Host
						m.Layout.Kept = append(m.Layout.Kept, g)
					}
				}
			}
		}
	}
}

// TestSurviveVRAM: law Survive on a GPU to whose slots weights stream, from the host's memory and from disk: if the
// device dies in the middle of an answer, or who brings its weights, the answer is what it was.
func TestSurviveVRAM(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	const tokens = 16
	on, prompt := onGPU(t, vulkan.Options{Cache: t.TempDir()}), shortPrompts()[1]
	for name, f := range map[string]few{fixture: {Ring: 2}, "qwen3moe": {Ring: 2, Shelf: 2}} {
		t.Run(name, func(t *testing.T) {
			want := spelled(t, begin(t, startFixture(t, name, on), ask(prompt, tokens)))
			e := startFixture(t, name, func(c *Config) { on(c); inTiers(f)(c) })
			require.True(t, e.spec.streams())
			for _, tier := range []place.Tier{place.Device, place.Host, place.Disk} {
				require.Positive(t, e.Plan().ByTier()[tier], "tier %v", tier)
			}
			require.Equal(t, want, spelled(t, begin(t, e, ask(prompt, tokens))), "undisturbed")
			for _, victim := range []string{"device/uploader", "device/prefetcher", "device"} {
				before := restarts(e, victim)
				require.Equal(t, want, killedAmid(t, e, ask(prompt, tokens), victim, tokens/4), victim)
				require.Greater(t, restarts(e, victim), before, "%s did not die", victim)
				require.NoError(t, e.Health())
			}
		})
	}
}

// restarts is how often an actor has died.
func restarts(e *Engine, name string) uint64 {
	for _, a := range e.Snapshot().Actors {
		if a.ID == e.at(name).Id {
			return a.Restarts
		}
	}
	return 0
}

// killedAmid is an answer after every few tokens of which an actor was killed.
func killedAmid(t *testing.T, e *Engine, r Request, victim string, every int) (out string) {
	s := begin(t, e, r)
	defer s.Close()
	var ev Event
	for n := 1; ; n++ {
		err := s.Next(context.Background(), &ev)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err, "%s, after %d tokens", victim, n)
		out += fmt.Sprintf("%d:%08x %q %s\n", ev.Token, math.Float32bits(ev.LogProb), ev.Text, ev.Finish)
		if n%every == 0 && ev.Finish == Running {
			e.crash(victim)
		}
	}
}
