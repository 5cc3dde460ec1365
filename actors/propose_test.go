package actors

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/batch"
)

// guesser proposes tokens of an answer that it knows: of ten so many are right, and the others are any.
type guesser struct {
	text  []int32 // with the prompt
	right int
	rand  *rand.Rand
}

func (*guesser) Ready([]int32) bool { return true }

func (g *guesser) Propose(tokens []int32, n int, out []int32) []int32 {
	for i := range g.rand.IntN(n + 1) {
		token := int32(g.rand.IntN(200))
		if at := len(tokens) + i; at < len(g.text) && g.rand.IntN(10) < g.right {
			token = g.text[at]
		}
		out = append(out, token)
	}
	return out
}

// texts are prompts with the answers to them, by the prompts.
type texts map[string][]int32

// proposed has tokens of these answers proposed, and none of others.
func (a texts) proposed(right int) func(*Config) {
	return func(c *Config) { c.hooks.propose = a.proposer(right) }
}

func (a texts) proposer(right int) func(prompt []int32) batch.Proposer {
	return func(prompt []int32) batch.Proposer {
		text := a[fmt.Sprint(prompt)]
		if text == nil {
			return nil
		}
		return &guesser{text, right, rand.New(rand.NewPCG(3, uint64(len(prompt))))}
	}
}

// learn answers requests one after the other, and returns them as spelled does.
func (a texts) learn(t *testing.T, e *Engine, all []Request) (want []string) {
	for _, r := range all {
		want = append(want, spelled(t, begin(t, e, r)))
		prepared, err := e.Prepare(r, nil)
		require.NoError(t, err)
		text := append([]int32{}, prepared.prompt.Tokens...)
		for line := range strings.Lines(want[len(want)-1]) {
			var id int32
			if n, _ := fmt.Sscanf(line, "%d:", &id); n == 1 {
				text = append(text, id)
			}
		}
		a[fmt.Sprint(prepared.prompt.Tokens)] = text
	}
	return want
}

// requests are likely tokens and drawn ones, with and without penalties, log-probabilities and mirostat; ends are after
// more tokens and fewer, and by texts.
func requests(t *testing.T, e *Engine) (all []Request) {
	for i, p := range prompts(8) {
		r := ask(p, 40+i)
		switch i % 4 {
		case 0:
			r.Sampling.Mirostat = 2
		case 1:
			r = plain(p, 40+i)
		case 2:
			r.Sampling.RepeatPenalty, r.Sampling.LogProbs, r.Sampling.Mirostat = 1, -1, 0
		case 3:
			r = plain(p, 40)
			all := []rune(collect(t, begin(t, e, r)).text)
			require.Greater(t, len(all), 20)
			r.Stop = []string{string(all[len(all)/2 : len(all)/2+2])}
		}
		all = append(all, r)
	}
	return all
}

// Whatever is proposed, answers are what they are when nothing is, bit for bit: however often proposals are right,
// beside each other and others that go away, with too few blocks for all.
func TestProposals(t *testing.T) {
	for _, name := range []string{fixture, "gemma3", "mamba2", "lfm2"} {
		t.Run(name, func(t *testing.T) {
			e, known := startFixture(t, name, wide), texts{}
			all := requests(t, e)
			want := known.learn(t, e, all)
			delete(known, fmt.Sprint(all[5].Tokens))
			for _, right := range []int{5, 7, 9} {
				e := startFixture(t, name, func(c *Config) {
					c.Context, c.Blocks, c.Sequences, c.Rows = 512, 9, 6, 32
					known.proposed(right)(c)
				})
				proposedTogether(t, e, all, want)
			}
		})
	}
}

// proposedTogether asks for all at once, and for some that nobody waits for.
func proposedTogether(t *testing.T, e *Engine, all []Request, want []string) {
	t.Helper()
	var wg sync.WaitGroup
	for i, r := range all {
		s := begin(t, e, r)
		wg.Go(func() {
			if got, err := trySpelled(s); err != nil || got != want[i] {
				t.Errorf("request %d: error %v\n got %s\nwant %s", i, err, got, want[i])
			}
		})
		left := begin(t, e, r)
		next(t, left, 1)
		left.Close()
	}
	wg.Wait()
	n := e.Snapshot()
	require.Positive(t, n.Accepted)
	require.Less(t, n.Accepted, n.Proposed)
	require.Zero(t, n.FailedSteps)
	require.Eventually(t, func() bool { return e.Snapshot().KV.Used == 0 }, patient, time.Millisecond)
}

// Law Survive, where tokens are proposed.
func TestProposalsSurvive(t *testing.T) {
	e, known := startFixture(t, fixture, nil), texts{}
	all := requests(t, e)
	want := known.learn(t, e, all)
	for _, victim := range []string{"scheduler", "sampler", "kv"} {
		e := startFixture(t, fixture, known.proposed(7))
		streams := make([]*Stream, len(all))
		for i, r := range all {
			streams[i] = begin(t, e, r)
		}
		var wg sync.WaitGroup
		for i, s := range streams {
			wg.Go(func() {
				if got, err := trySpelled(s); err != nil || got != want[i] {
					t.Errorf("%s, request %d: error %v\n got %s\nwant %s", victim, i, err, got, want[i])
				}
			})
		}
		accepted := func() bool { return e.Snapshot().Accepted > 0 }
		require.Eventually(t, accepted, patient, time.Millisecond)
		e.crash(victim)
		wg.Wait()
	}
}

// On a card that draws tokens itself, and has two steps in flight of what nothing is proposed for, it is the same, of
// programs with states, too.
func TestProposalsOnCard(t *testing.T) {
	for _, name := range []string{fixture, "mamba2", "lfm2"} {
		t.Run(name, func(t *testing.T) {
			known := texts{}
			start := func(edit func(*Config)) *Engine {
				return startFixture(t, name, func(c *Config) {
					c.Device, c.Context, c.Sequences, c.Rows = devicetest.Played(t), 512, 6, 32
					edit(c)
				})
			}
			e := start(func(*Config) {})
			all := requests(t, e)[:4]
			want := known.learn(t, e, all)
			delete(known, fmt.Sprint(all[1].Tokens))
			proposedTogether(t, start(known.proposed(7)), all, want)
		})
	}
}

// A token trace has what was proposed, how much of it was accepted, and the tokens of the answers.
func TestProposalsAreRecorded(t *testing.T) {
	known := texts{}
	r := plain(prompts(1)[0], 60)
	known.learn(t, startFixture(t, fixture, nil), []Request{r})
	tape := newReel()
	e := startFixture(t, fixture, func(c *Config) {
		c.Tapes = []*Tape{tape.Tape}
		known.proposed(7)(c)
	})
	got := collect(t, begin(t, e, r)).tokens
	n := e.Snapshot()
	shut(t, e)

	in, err := tokentrace.NewReader(bytes.NewReader(tape.end()))
	require.NoError(t, err)
	var tokens []int32
	var proposed, accepted int
	for {
		event, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch x := event.(type) {
		case *tokentrace.Step:
			for _, s := range x.Spans {
				proposed += s.Proposed
			}
		case *tokentrace.Settled:
			accepted += x.Accepted
		case *tokentrace.Drawn:
			tokens = append(tokens, x.Token)
		}
	}
	require.Equal(t, got, tokens)
	require.EqualValues(t, n.Proposed, proposed)
	require.EqualValues(t, n.Accepted, accepted)
	require.Positive(t, accepted)
}
