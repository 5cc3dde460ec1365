package actors

import (
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A life goes on and never back, whoever has it go on; of those who have it reach a stage, one is the first.
func TestLifeGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l life
		at := lifeOpened
		for _, to := range rapid.SliceOf(rapid.SampledFrom([]stage{lifeOpened, lifeEncoded, lifeSubmitted, lifeAnswering,
			lifeEnded})).Draw(t, "stages") {
			require.Equal(t, to > at, l.reach(to))
			at = max(at, to)
			for s := lifeOpened; s <= lifeEnded; s++ {
				require.Equal(t, s <= at, l.past(s))
			}
		}
	})
	var l life
	var all sync.WaitGroup
	var first atomic.Int32
	for range 8 {
		all.Go(func() {
			if l.reach(lifeEnded) {
				first.Add(1)
			}
			l.reach(lifeAnswering)
		})
	}
	all.Wait()
	require.EqualValues(t, 1, first.Load())
	require.True(t, l.past(lifeEnded))
}

// A request whose sessions restart is no younger for it, is counted once, and has its whole answer.
func TestLifeOfARequest(t *testing.T) {
	e := startFixture(t, fixture, nil)
	r := ask([]int32{1, 2, 3}, 100)
	want, err := drain(begin(t, e, r))
	require.NoError(t, err)
	before := e.Snapshot()
	require.NoError(t, e.enter())
	rec := &record{id: "one", asked: asked{Request: r, opened: now()}, leave: e.exit, stream: newStream(streamCapacity)}
	rec.stream.cancel = func() {}
	require.False(t, rec.life.past(lifeEncoded))
	e.wiring.facade.open.Send(&open{rec})
	var tokens []int32
	var ev Event
	for {
		if err = rec.stream.Next(t.Context(), &ev); err != nil {
			break
		}
		require.True(t, rec.life.past(lifeAnswering))
		if ev.HasToken {
			tokens = append(tokens, ev.Token)
		}
		if len(tokens) == 5 {
			require.False(t, rec.life.past(lifeEnded))
			e.crash("sessions")
		}
	}
	require.Equal(t, io.EOF, err)
	require.True(t, rec.life.past(lifeEnded))
	require.Equal(t, want.tokens, tokens)
	u := rec.stream.Usage()
	require.Equal(t, want.usage.Prompt, u.Prompt)
	require.Equal(t, len(tokens), u.Generated)
	require.Positive(t, u.Queue)
	require.Positive(t, u.Prefill)
	require.Positive(t, u.Decode)
	left(t, e)
	require.Equal(t, before.PromptTokens+3, e.Snapshot().PromptTokens, "it was counted again after a restart")
}
