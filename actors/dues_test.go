package actors

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// costly is how long a step takes of which a row of an answer takes a millisecond, and one of a prompt thirty.
func costly(s *backend.Step) time.Duration {
	answers := len(s.Wanted)
	return time.Duration(answers+30*(len(s.Tokens)-answers)) * time.Millisecond
}

// TestStrangersTime: beside a client that sends long prompts, a stranger's answer takes at most twice as long as alone,
// and what the steps take that run when it comes; the prompts have as much of the time.
func TestStrangersTime(t *testing.T) {
	timed := func(t *testing.T, hogs int) (first, rest time.Duration) {
		e := startNull(t, func(c *Config) { c.Device = sluggish{takes: costly} })
		for range hogs {
			r := plain(make([]int32, 15_000), 1)
			r.Client = "hog"
			s := begin(t, e, r)
			defer s.Close()
		}
		time.Sleep(10 * time.Second)
		r := plain([]int32{1, 2, 3}, 4000)
		r.Client = "stranger"
		from := time.Now()
		s := begin(t, e, r)
		defer s.Close()
		next(t, s, 1)
		began := time.Now()
		next(t, s, 3999)
		return began.Sub(from), time.Since(began)
	}
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) }) // goroutines of dead letters end with their time
		_, alone := timed(t, 0)
		first, rest := timed(t, 4)
		t.Logf("alone %v, beside prompts %v and %v", alone, first, rest)
		require.Less(t, first, 5*time.Second)
		require.Less(t, rest, 2*alone)
		require.Greater(t, rest, alone*3/2, "prompts go on")
	})
}

// TestStrangersTimeBesideDeepAnswers: beside a client's answers behind long texts, a stranger's takes at most twice as
// long as alone, and those go on.
func TestStrangersTimeBesideDeepAnswers(t *testing.T) {
	const tokens = 300
	pass := 0
	takes := func(s *backend.Step) time.Duration { // a step's own time is that of a row, or of attending to pass positions
		rows, seen := len(s.Wanted), 0
		for i := range s.Spans {
			if s.Spans[i].Rows == 1 {
				seen += s.Spans[i].Seen()
			}
		}
		return time.Millisecond * time.Duration(1+rows+seen/pass)
	}
	timed := func(t *testing.T, hogs int) (took time.Duration, others uint64) {
		e := startNull(t, func(c *Config) { c.Device = sluggish{takes: takes} })
		pass = e.spec.limits.Pass
		for range hogs {
			r := plain(make([]int32, 20*pass), 1<<18)
			r.Client = "hog"
			s := begin(t, e, r)
			defer s.Close()
			next(t, s, 1)
			go func() {
				for ev := (Event{}); s.Next(t.Context(), &ev) == nil; {
				}
			}()
		}
		time.Sleep(10 * time.Second)
		r := plain([]int32{1, 2, 3}, tokens+1)
		r.Client = "stranger"
		s := begin(t, e, r)
		defer s.Close()
		next(t, s, 1)
		before, began := e.stats.generated.Load(), time.Now()
		next(t, s, tokens)
		return time.Since(began), e.stats.generated.Load() - before - tokens
	}
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Second) })
		alone, _ := timed(t, 0)
		took, others := timed(t, 4)
		t.Logf("alone %v, beside deep answers %v, which had %d tokens", alone, took, others)
		require.Less(t, took, alone*21/10)
		require.Greater(t, others, uint64(tokens/40))
	})
}
