package actors

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// expectedApart is what beside answers if prompts leave other numbers than answers.
func expectedApart(prompt []int32, n, vocab int) []int32 {
	read := slices.Clone(prompt)
	for i := range read {
		read[i] = -read[i]
	}
	return expected(read, n, vocab)
}

// TestPromptsApart: on a device that computes prompts apart, a request has the same answer whoever else asks, whatever
// dies or gives way meanwhile, and whether or not the cache has what it goes on from: talks of three turns, whose
// prompts contain the answers before.
func TestPromptsApart(t *testing.T) {
	kills := []string{"device", "scheduler", "kv", "sampler", "model", "sessions"}
	for _, c := range []struct {
		name   string
		device *beside
		blocks int
		kill   []string
	}{
		{"at rest", &beside{flight: 2, draws: true, apart: true}, 400, nil},
		{"drawn by the host", &beside{flight: 1, apart: true}, 400, nil},
		{"giving way", &beside{flight: 3, draws: true, apart: true}, 17, nil},
		{"failing", &beside{flight: 2, draws: true, apart: true, fail: func(n int) bool { return n%37 == 0 }}, 400, nil},
		{"dying", &beside{flight: 2, draws: true, apart: true, pause: 200 * time.Microsecond}, 400, kills},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := startBeside(t, c.device, func(cfg *Config) { cfg.Blocks = c.blocks })
			var wg sync.WaitGroup
			for i, first := range prompts(6) {
				wg.Go(func() {
					found := 0
					for talk, turn := first, 0; turn < 3; turn++ {
						a, err := drain(begin(t, e, mixed(i, talk, 70)))
						want := expectedApart(talk, 70, e.Info.Vocab)
						if err != nil || !slices.Equal(want, a.tokens) {
							t.Errorf("talk %d, turn %d: %v, %v, want %v", i, turn, err, a.tokens, want)
							return
						}
						if c.name == "at rest" {
							assert.Equal(t, found, a.usage.Cached, "the blocks that are all prompt")
						}
						found = len(talk) / backend.BlockSize * backend.BlockSize
						talk = slices.Concat(talk, a.tokens, []int32{1, 2, 3})
					}
				})
			}
			for _, victim := range c.kill {
				time.Sleep(15 * time.Millisecond)
				e.crash(victim)
			}
			wg.Wait()
			require.Eventually(t, func() bool { s := e.Snapshot(); return s.Open == 0 && s.KV.Used == 0 },
				5*time.Second, time.Millisecond, fmt.Sprint(e.Snapshot().KV))
		})
	}
}
