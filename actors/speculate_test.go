package actors

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/speculate"
	"github.com/sluice-ai/sluice/stages/tools"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// requestsUnseen is how many requests are asked for, with guesses and without: so many, or with SLUICE_UNSEEN=N one of
// share of N.
func requestsUnseen(usual, share int) int {
	if n, err := strconv.Atoi(os.Getenv("SLUICE_UNSEEN")); err == nil {
		return max(n/share, usual)
	}
	return usual
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
func TestUnseen(t *testing.T) { unseenWith(t, requestsUnseen(96, 1), func(*Config) {}) }

// Law Unseen, on a card that draws tokens itself and has two steps in flight of what nothing is guessed for.
func TestUnseenOnCard(t *testing.T) {
	unseenWith(t, 24, func(c *Config) { c.Device = devicetest.Played(t) })
}

func unseenWith(t *testing.T, n int, edit func(*Config)) {
	require.Positive(t, unseenOf(t, fixture, n, edit).Accepted)
}

func unseenOf(t *testing.T, name string, n int, edit func(*Config)) Snapshot {
	t.Helper()
	return unseenFile(t, fixturePath(t, name), n, edit)
}

func unseenFile(t *testing.T, path string, n int, edit func(*Config)) Snapshot {
	t.Helper()
	start := func(guesses bool) *Engine {
		f, err := gguf.Open(path)
		require.NoError(t, err)
		return startFile(t, f, func(c *Config) {
			c.Context, c.Sequences, c.Rows, c.Speculate, c.took = 512, 6, 64, guesses, time.Millisecond
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
	require.Zero(t, without.Snapshot().Proposed)
	require.Zero(t, s.FailedSteps)
	return s
}

// TestPredicted: where a client expects the answer, most of it is guessed, and it is the same; where it expects another
// one, or wants nothing guessed, too. The usage says what was guessed of it.
func TestPredicted(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	start := func(guesses bool) *Engine {
		return startFile(t, f, func(c *Config) { c.Speculate, c.took, c.Log = guesses, time.Millisecond, zerolog.Nop() })
	}
	with, without := start(true), start(false)
	r := Request{Text: "Once upon a time", Sampling: greedy(), MaxTokens: 60}
	said := collect(t, begin(t, without, r)).text
	tries := func(e *Engine, edit func(*Request)) Usage {
		r := r
		edit(&r)
		s := begin(t, e, r)
		require.Equal(t, said, collect(t, s).text)
		return s.Usage()
	}
	u := tries(with, func(r *Request) { r.Prediction = said })
	require.Greater(t, u.Accepted, 45)
	require.Less(t, u.Proposed-u.Accepted, 5)
	require.EqualValues(t, u.Accepted, with.Snapshot().Accepted)
	u = tries(with, func(r *Request) { r.Prediction = "All of it is something else, and nothing comes of it." })
	require.Less(t, u.Accepted, 45)
	u = tries(with, func(r *Request) { r.Prediction, r.Unguessed = said, true })
	require.Zero(t, u.Proposed)
	u = tries(without, func(r *Request) { r.Prediction = said })
	require.Zero(t, u.Proposed)
	tries(with, func(r *Request) { r.Prediction = strings.Repeat("It is far too long. ", 1<<14) })
}

// sevens proposes seven tokens at a time of an answer that it knows, each right so often.
type sevens struct {
	text  []int32
	right float64
	rand  *rand.Rand
}

func (*sevens) Ready([]int32) bool { return true }

func (s *sevens) Propose(tokens []int32, n int, out []int32) []int32 {
	for i := range min(n, 7) {
		token := int32(1)
		if at := len(tokens) + i; at < len(s.text) && s.rand.Float64() < s.right {
			token = s.text[at]
		}
		out = append(out, token)
	}
	return out
}

// TestStreamedGuesses: a dense model that is streamed passes its weights through memory once a step. With guesses that
// are right so often it takes as many fewer passes as is to be expected, and a clock that knows how long passes take
// has as many guessed.
func TestStreamedGuesses(t *testing.T) {
	r := plain([]int32{5, 6, 7}, 400)
	known := texts{}
	start := func(edit func(*Config)) *Engine {
		return startFixture(t, fixture, func(c *Config) {
			c.Context = 512
			streamed(few{Ring: 2})(c)
			edit(c)
		})
	}
	quiet := start(func(*Config) {})
	want := known.learn(t, quiet, []Request{r})
	passes := func(e *Engine) float64 { return float64(e.Snapshot().Steps.Decode.Steps) }
	for _, right := range []float64{0.5, 0.7, 0.9} {
		e := start(func(c *Config) {
			c.propose = func(prompt []int32) batch.Proposer {
				return &sevens{known[fmt.Sprint(prompt)], right, rand.New(rand.NewPCG(1, 2))}
			}
		})
		require.Equal(t, want[0], spelled(t, begin(t, e, r)))
		gain, due := passes(quiet)/passes(e), speculate.Expected(right, 7)
		require.InEpsilon(t, due, gain, 0.1, "%.1f are right", right)

		const pass, row = time.Second, 5 * time.Millisecond // by which a row costs no more than it does on two cores
		clock := speculate.NewClock(e.spec.rowCosts())
		for range 8 {
			clock.Observe(1, 0, pass)
			clock.Observe(8, 7, pass+7*row)
		}
		require.InDelta(t, 1.035, clock.Cost(7, 0), 0.001)
		require.Less(t, clock.Cost(15, 0), 1.2)
	}
}

// Law Unseen, of models with states: rows of right guesses are computed again.
func TestUnseenStates(t *testing.T) {
	guessed, names := uint64(0), onDevice([]string{"mamba2", "lfm2", "rwkv7"})
	for _, name := range names {
		fixturePath(t, name) // it may skip
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { guessed += unseenOf(t, name, 24, func(*Config) {}).Proposed })
	}
	require.Positive(t, guessed)
}

// boundRequests are answers with grammars, and with tools that are to be called or may be, by every way to draw. Their
// prompts have what they are to say in them, so that it is guessed.
func boundRequests(t *testing.T) (all []Request) {
	weather := tools.Tool{Name: "get_weather", Parameters: `{"type":"object","properties":{"place":{"type":"string"},
		"days":{"type":"integer"}},"required":["place","days"],"additionalProperties":false}`}
	kinds := forms(t)
	for i := range requestsUnseen(10, 20) {
		r := bound(kinds[i%len(kinds)], uint64(i))
		r.Text = fmt.Sprintf(`{"name":"Anna%d","n":31,"tags":["a","bc","a"]} {"v":true,"next":{"v":true,"next":null}}`, i)
		r.MaxTokens = 40
		if i%5 > 2 {
			r.Form, r.Text = nil, ""
			said := "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"place\": \"Oslo\", \"days\": 3}}\n</tool_call>"
			r.Chat = &chat.Input{Messages: []chat.Message{chat.Say("user", fmt.Sprintf("Say %d: %s", i, said))},
				AddGenerationPrompt: true}
			r.Tools = &tools.Choice{List: []tools.Tool{weather}, Must: i%2 == 0}
		}
		switch i % 4 {
		case 0:
			r.Sampling.Temp = 0
		case 1:
			r.Sampling.Temp, r.Sampling.LogProbs = 0.4, 2
		case 2:
			r.Sampling.Temp, r.Sampling.RepeatPenalty = 0.4, 1.2
		}
		all = append(all, r)
	}
	return all
}

// Law Unseen, where a grammar or tools say what may come: by n-grams, and by guesses of which so many are right, be
// the masks of guessed rows found at once, not always, or never.
func TestUnseenBound(t *testing.T) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	start := func(edit func(*Config)) *Engine {
		return startFile(t, f, func(c *Config) {
			c.Context, c.Sequences, c.Rows, c.Log = 1024, 4, 64, zerolog.Nop()
			edit(c)
		})
	}
	known, all := texts{}, boundRequests(t)
	want := known.learn(t, start(func(*Config) {}), all)
	for name, edit := range map[string]func(*Config){
		"n-grams":    func(c *Config) { c.Speculate, c.took = true, time.Millisecond },
		"known":      known.proposed(8),
		"cut short":  func(c *Config) { known.proposed(9)(c); c.quick = 300 },
		"not at all": func(c *Config) { known.proposed(9)(c); c.quick = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			boundAs(t, start(edit), all, want)
		})
	}
}

// boundAs asks an engine that guesses for all at once, and wants the same answers.
func boundAs(t *testing.T, e *Engine, all []Request, want []string) {
	var wg sync.WaitGroup
	for i, r := range all {
		if i%64 == 0 {
			wg.Wait() // a model has no more than 256 open
		}
		s := begin(t, e, r)
		wg.Go(func() {
			if got, err := trySpelled(s); err != nil || got != want[i] {
				t.Errorf("request %d: error %v\n got %s\nwant %s", i, err, got, want[i])
			}
		})
	}
	wg.Wait()
	n := e.Snapshot()
	t.Logf("%d tokens were guessed, %d right", n.Proposed, n.Accepted)
	require.Positive(t, n.Proposed)
	require.Zero(t, n.FailedSteps)
}
