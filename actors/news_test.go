package actors

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/kv"
)

// newsHeard is what a model's news left: the blocks that they say are there.
type newsHeard struct {
	mu      sync.Mutex
	there   map[kv.Key]int // in how many tiers
	cleared int
}

func (x *newsHeard) tell(all []kv.News) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range all {
		switch n.Kind {
		case kv.Cleared:
			x.there = map[kv.Key]int{}
			x.cleared++
		case kv.Stored:
			x.there[n.Key]++
		case kv.Removed:
			if x.there[n.Key]--; x.there[n.Key] == 0 {
				delete(x.there, n.Key)
			}
		}
	}
}

// has counts blocks at the beginning of a text that are there.
func (x *newsHeard) has(salt uint64, text []int32) (blocks int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, key := range kv.Keys(salt, text) {
		if x.there[key] == 0 {
			break
		}
		blocks++
	}
	return blocks
}

// TestNews: what a model tells of its cache is what prompts find, also after the owner of the blocks failed; of prompts
// that are apart it tells nothing, and at its end that all is gone.
func TestNews(t *testing.T) {
	x := &newsHeard{}
	e := startFixture(t, fixture, func(c *Config) { c.Context, c.News = 512, x.tell })
	prompts := longPrompts(4)
	knows := func(i int) {
		t.Helper()
		text := prompts[i][:whole(prompts[i])]
		require.Eventually(t, func() bool { return x.has(0, text) == len(text)/64 }, patient, time.Millisecond)
	}
	collect(t, generate(t, e, plain(prompts[0], 1)))
	knows(0)
	apart := plain(prompts[1], 1)
	apart.Salt = 7
	before := len(x.there)
	collect(t, generate(t, e, apart))
	require.Zero(t, x.has(7, prompts[1])+x.has(0, prompts[1]))
	require.Len(t, x.there, before)
	require.Equal(t, 1, x.cleared)

	e.crash("kv")
	require.Eventually(t, func() bool { return restarts(e, "kv") == 1 }, patient, time.Millisecond)
	collect(t, generate(t, e, plain(prompts[2], 1)))
	require.Equal(t, 2, x.cleared)
	require.Zero(t, x.has(0, prompts[0]))
	knows(2)
	shut(t, e)
	require.Empty(t, x.there)
	require.Equal(t, 3, x.cleared)
}
