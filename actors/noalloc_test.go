//go:build !race

package actors

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/incidents"
)

// Law NoAlloc: in the steady state, a token costs no allocation anywhere in the process.
func TestNoAlloc(t *testing.T) { noAlloc(t, fixture, func(*Config) {}) }

// Law NoAlloc, for states.
func TestNoAllocStates(t *testing.T) {
	eachKeeper(t, func(t *testing.T, name string) { noAlloc(t, name, func(*Config) {}) })
}

func noAlloc(t *testing.T, name string, edit func(*Config)) { noAllocOf(t, name, 1, edit) }

// noAllocOf is noAlloc for so many models that answer together.
func noAllocOf(t *testing.T, name string, models uint64, edit func(*Config)) {
	e := startFixture(t, name, func(c *Config) {
		c.Context = 1024
		edit(c)
	})
	r := plain([]int32{5, 6, 7}, 500)
	r.Thoughts = true
	s := begin(t, e, r)
	defer s.Close()
	var ev Event
	read := func(n int) (mallocs uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range n {
			require.NoError(t, s.Next(context.Background(), &ev))
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	fillRuntime()
	read(100)
	// The count is the whole process's, the runtime's own work included: the quietest of several windows tells.
	// A new KV block, of which a window needs one, costs a few allocations.
	least := read(64)
	for range 4 {
		least = min(least, read(64))
	}
	require.Less(t, least, 8*models, "allocations over 64 tokens")
}

// fillRuntime has the runtime keep more of ended goroutines, and of what waits at channels, than a test has at once. It
// keeps them by processor, and makes new ones where one has none left, until all have enough: that is no steady state.
func fillRuntime() {
	var all sync.WaitGroup
	gate := make(chan struct{})
	for range 1024 {
		all.Go(func() { <-gate })
	}
	close(gate)
	all.Wait()
}

// Law NoAlloc, for models on two devices.
func TestNoAllocHybrid(t *testing.T) { noAlloc(t, fixture, divided(t, 1, nil)) }

// Law NoAlloc, where tokens are proposed, and accepted as often as not.
func TestNoAllocProposals(t *testing.T) {
	known, r := texts{}, plain([]int32{5, 6, 7}, 500)
	known.learn(t, startFixture(t, fixture, func(c *Config) { c.Context = 1024 }), []Request{r})
	noAlloc(t, fixture, known.proposed(8))
}

// Law NoAlloc, where all is recorded.
func TestNoAllocTaped(t *testing.T) {
	folder, err := incidents.OpenFolder(t.TempDir(), incidents.Least)
	require.NoError(t, err)
	tape := KeepIncidents(folder, zerolog.Nop())
	t.Cleanup(tape.Close)
	noAlloc(t, fixture, func(c *Config) { c.Tapes = []*Tape{tape} })
}

// Law NoAlloc, where answers are guessed from what they say.
func TestNoAllocSpeculating(t *testing.T) {
	noAlloc(t, fixture, func(c *Config) { c.Speculate = true })
}

// Law NoAlloc, where a draft model guesses.
func TestNoAllocDrafted(t *testing.T) {
	noAllocOf(t, fixture, 2, func(c *Config) {
		c.Speculate = true
		draftedBy(t, fixture)(c)
	})
}
