package actors

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/batch"
)

// recorded are the events of a trace.
func recorded(t *testing.T, trace []byte) (all []tokentrace.Event) {
	r, err := tokentrace.NewReader(bytes.NewReader(trace))
	require.NoError(t, err)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, e)
	}
}

// TestStrangerGetsAPlace: while a client holds all places and has more requests waiting, another one's request is in
// the step after next, and in each step from then on, beside few rows. Law Recompute: whoever gave way gets the answer
// that it gets alone.
func TestStrangerGetsAPlace(t *testing.T) {
	const tokens = batch.Window // so many need no reader that keeps up
	all := prompts(13)
	stranger := all[12][:3]
	want := alone(t, startFixture(t, fixture, nil), append(all[:12:12], stranger), tokens)
	tape := newReel()
	e := startFixture(t, fixture, func(c *Config) { c.Sequences, c.Tapes = 4, []*Tape{tape.Tape} })
	of := func(client string, prompt []int32) *Stream {
		r := ask(prompt, tokens)
		r.Client = client
		return begin(t, e, r)
	}
	var hogs sync.WaitGroup
	var answered atomic.Bool
	got := make([]string, 13)
	for i, p := range all[:12] {
		hogs.Go(func() {
			for got[i] == "" || !answered.Load() { // there are always some that wait
				got[i] = spelled(t, of("hog", p))
			}
		})
	}
	require.Eventually(t, func() bool { s := e.Snapshot(); return s.Running == 4 && s.Waiting > 0 }, patient,
		time.Millisecond)
	got[12] = spelled(t, of("stranger", stranger))
	answered.Store(true)
	hogs.Wait()
	require.Equal(t, want, got)
	shut(t, e)

	number, steps, first, last, before := uint64(0), 0, 0, 0, 0
	clients := map[uint64]int{}
	for _, event := range recorded(t, tape.end()) {
		switch x := event.(type) {
		case *tokentrace.Open:
			if clients[x.Client]++; len(x.Prompt) == 3 && x.Prompt[0] == stranger[0] {
				number, before = x.Sequence, steps
			}
		case *tokentrace.Step:
			steps++
			require.Positive(t, x.Budget.Rows)
			for _, s := range x.Spans {
				if s.Sequence == number && number > 0 {
					last = steps
				}
				if s.Sequence == number && number > 0 && first == 0 {
					first = steps
				}
			}
		}
	}
	require.Len(t, clients, 2)
	require.Equal(t, 1, clients[1])
	require.LessOrEqual(t, first-before, 3, "steps until it has a place")
	took := last - first + 1
	if devicetest.OnGPU() { // the host draws these tokens, behind two steps in flight: a sequence is in each second one
		require.Equal(t, tokens, (took+1)/2, "of its %d steps", took)
		return
	}
	require.Equal(t, tokens, took, "steps from its first row to its last")
}
