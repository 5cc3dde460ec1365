package hub

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/hub/hubtest"
	"github.com/sluice-ai/sluice/storage/store"
)

// TestPullCutTenTimes: connections break at random, and the pull ends at random, ten times each; what has come is kept.
func TestPullCutTenTimes(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		h, s, c := fixture(t)
		h.NoRanges, h.Uses = !ranges, 7
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		cuts := 10
		h.Cut = func(length int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			if cuts == 0 || random.IntN(3) > 0 {
				return -1
			}
			cuts--
			return random.Int64N(length)
		}
		const size = 3_000_000
		if !ranges {
			h.Cut = nil // each would begin again
		}
		kept := int64(0)
		for range 10 {
			ctx, cancel := context.WithCancel(context.Background())
			mu.Lock()
			stop, begun := random.Int64N(size/10), int64(-1)
			mu.Unlock()
			c.Progress = func(p Progress) {
				if begun < 0 {
					begun = p.Done
				}
				if p.Done >= begun+stop {
					cancel()
				}
			}
			_, err := c.Pull(ctx, s, named(t, "Ann/Small-GGUF:Q8_0"))
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			cancel()
			now := arrived(t, s)
			require.GreaterOrEqual(t, now, kept, "what has come is kept")
			kept = now
		}
		c.Progress = nil
		got, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
		require.NoError(t, err)
		same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])
		require.Len(t, files(t, s), 3, "%v", files(t, s))
		if ranges && !got.Fresh {
			require.Positive(t, kept)
			require.EqualValues(t, size-kept, got.Received, "and does not come again")
		}
	}
}

// arrived is how much is there of the only model, complete or not.
func arrived(t testing.TB, s *store.Store) int64 {
	t.Helper()
	all, err := s.List()
	require.NoError(t, err)
	unfinished, err := s.Unfinished()
	require.NoError(t, err)
	all = append(all, unfinished...)
	require.NotEmpty(t, all)
	return s.Arrived(&all[0].Manifest)
}

// Connections that break lose nothing within one pull.
func TestPullGoesOnWhereConnectionsBroke(t *testing.T) {
	h, s, c := fixture(t)
	n := 0
	var mu sync.Mutex
	h.Cut = func(length int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		if n++; n > 10 {
			return -1
		}
		return length / 3
	}
	got, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.NoError(t, err)
	require.EqualValues(t, 3_000_000, got.Received)
	same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])

	h.Change(func(s *hubtest.Settings) { s.Cut = func(int64) int64 { return 0 } })
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q4_K_M"))
	require.ErrorContains(t, err, "the connection ended at byte", "a hub that sends nothing is given up")
}

// TestPullThatGoesOnIsNotGivenUp: a hub that breaks every connection off, but sends something on each, is asked more
// often in a row than one that sends nothing.
func TestPullThatGoesOnIsNotGivenUp(t *testing.T) {
	h, s, c := fixture(t)
	h.Cut = func(length int64) int64 {
		if length < 10_000 {
			return -1
		}
		return length / 3
	}
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.NoError(t, err)
	require.Greater(t, h.Requests.Load(), int64(2*tries*connections), "interruptions")
	same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])
}

// Two pulls of one model, and of others with the same file, fetch each byte once.
func TestPullsAtOnce(t *testing.T) {
	h, s, c := fixture(t)
	h.Slow = 2 * time.Millisecond
	h.Repositories["Bob/Again"] = map[string][]byte{"x.gguf": h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"]}
	var wg sync.WaitGroup
	for _, name := range []string{"Ann/Small-GGUF:Q8_0", "Ann/Small-GGUF:Q8_0", "Bob/Again"} {
		wg.Go(func() {
			own := *c
			if _, err := own.Pull(context.Background(), s, named(t, name)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 3_000_000, h.Sent.Load())
	require.Len(t, files(t, s), 5, "one blob, two names, two links: %v", files(t, s))
}

func TestWrongChecksum(t *testing.T) {
	h, s, c := fixture(t)
	small := h.Repositories["Ann/Small-GGUF"]
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q4_K_M"))
	require.NoError(t, err)
	before := files(t, s)
	wrong := bytes.Clone(small["F16/small-F16-00002-of-00003.gguf"])
	wrong[500_000] ^= 1
	h.Change(func(s *hubtest.Settings) {
		s.Content[hubtest.Digest(small["F16/small-F16-00002-of-00003.gguf"])] = wrong
	})
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:F16"))
	require.ErrorAs(t, err, new(*store.WrongContent))
	require.ErrorContains(t, err, "small-F16-00002-of-00003.gguf: what came has the checksum sha256:"+hubtest.Digest(wrong))
	require.Equal(t, before, files(t, s), "nothing is left")
	h.Change(func(s *hubtest.Settings) { clear(s.Content) })
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:F16"))
	require.NoError(t, err)
}
