package actors

import (
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
)

// requestsUnseen is how many requests are asked for, with guesses and without.
func requestsUnseen(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_UNSEEN")); err == nil {
		return n
	}
	return 96
}

// mixedRequest is the i-th of many requests: their prompts repeat themselves, so that there is something to guess.
func mixedRequest(t *testing.T, i int) Request {
	p := prompts(i%8 + 1)[i%8]
	r := ask(append(append(append([]int32{}, p...), p...), int32(i%50+5)), 12+i%30)
	r.Sampling.Seed = uint64(i)
	switch i % 6 {
	case 0:
		r = plain(r.Tokens, r.MaxTokens)
	case 1:
		r.Sampling.RepeatPenalty, r.Sampling.LogProbs = 1, -1
	case 2:
		r.Sampling.Temp, r.Sampling.Mirostat = 0.3, 2
	case 3:
		r.Sampling.Temp, r.Sampling.RepeatPenalty = 1.5, 1.3
	case 4:
		r = plain(r.Tokens, r.MaxTokens)
		r.Sampling.LogProbs = 3
	}
	return r
}

// Law Unseen: what is guessed changes no token and no bit of a log-probability, whatever the sampling, alone or
// together with others, with too few places for all.
func TestUnseen(t *testing.T) { unseenWith(t, requestsUnseen(t), func(*Config) {}) }

// Law Unseen, on a card that draws tokens itself and has two steps in flight of what nothing is guessed for.
func TestUnseenOnCard(t *testing.T) {
	unseenWith(t, 24, func(c *Config) { c.Device = devicetest.Played(t) })
}

func unseenWith(t *testing.T, n int, edit func(*Config)) {
	t.Helper()
	start := func(guesses bool) *Engine {
		return startFixture(t, fixture, func(c *Config) {
			c.Context, c.Sequences, c.Rows, c.Speculate = 512, 6, 64, guesses
			edit(c)
		})
	}
	without, with := start(false), start(true)
	want := make([]string, n)
	for i := range n {
		want[i] = spelled(t, begin(t, without, mixedRequest(t, i)))
		if i%4 == 0 {
			require.Equal(t, want[i], spelled(t, begin(t, with, mixedRequest(t, i))), "request %d, alone", i)
		}
	}
	const atOnce = 16
	for from := 0; from < n; from += atOnce {
		var wg sync.WaitGroup
		for i := from; i < min(from+atOnce, n); i++ {
			s := begin(t, with, mixedRequest(t, i))
			wg.Go(func() {
				if got, err := trySpelled(s); err != nil || got != want[i] {
					t.Errorf("request %d, with others: error %v\n got %s\nwant %s", i, err, got, want[i])
				}
			})
		}
		wg.Wait()
	}
	s := with.Snapshot()
	t.Logf("%d tokens were guessed, %d right", s.Proposed, s.Accepted)
	require.Positive(t, s.Accepted)
	require.Zero(t, without.Snapshot().Proposed)
	require.Zero(t, s.FailedSteps)
}

// A grammar's tokens, and models with states, have nothing guessed, and answer as ever.
func TestNothingIsGuessedOfStates(t *testing.T) {
	e := startFixture(t, "mamba2", func(c *Config) { c.Speculate = true })
	spelled(t, begin(t, e, mixedRequest(t, 0)))
	require.Zero(t, e.Snapshot().Proposed)
}
