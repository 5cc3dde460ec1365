package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// fixture is the model of most laws: grouped heads, norms of Q and K, a tied head.
const fixture = "qwen3"

// prompts returns n prompts of different lengths that share no prefix.
func prompts(n int) [][]int32 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([][]int32, n)
	for i := range out {
		out[i] = make([]int32, 3+r.IntN(150))
		for j := range out[i] {
			out[i][j] = int32(1 + r.IntN(500))
		}
	}
	return out
}

// ask is a request with randomness and penalties in it, so that every way by which others could matter is open.
func ask(tokens []int32, most int) Request {
	p := sample.Defaults()
	p.Seed, p.RepeatPenalty, p.LogProbs, p.Mirostat = uint64(len(tokens)), 1.1, 0, 2*(len(tokens)%2)
	return Request{Tokens: tokens, MaxTokens: most, Sampling: p, IgnoreEOG: true}
}

// spelled is an answer in a form that differs if a single bit of a probability does.
func spelled(t require.TestingT, s *Stream) string {
	out, err := trySpelled(s)
	require.NoError(t, err)
	return out
}

func trySpelled(s *Stream) (string, error) {
	defer s.Close()
	var e Event
	out := ""
	for {
		err := s.Next(context.Background(), &e)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out += fmt.Sprintf("%d:%08x %q %s\n", e.Token, math.Float32bits(e.LogProb), e.Text, e.Finish)
	}
}

func begin(t require.TestingT, e *Engine, r Request) *Stream {
	s, err := e.Generate(r)
	require.NoError(t, err)
	return s
}

// alone answers each prompt with nothing else running.
func alone(t *testing.T, e *Engine, all [][]int32, most int) []string {
	out := make([]string, len(all))
	for i, p := range all {
		out[i] = spelled(t, begin(t, e, ask(p, most)))
	}
	return out
}

func score(t require.TestingT, e *Engine, tokens []int32) []float32 {
	s, err := e.Score(tokens)
	require.NoError(t, err)
	return allLogits(t, s)
}

// allLogits reads the logits of all positions, and closes the stream.
func allLogits(t require.TestingT, s *Stream) (all []float32) {
	defer s.Close()
	var ev Event
	for {
		err := s.Next(context.Background(), &ev)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all = append(all, ev.Logits...)
	}
}

func requireSameBits(t *testing.T, want, got []float32, what string) {
	t.Helper()
	require.Equal(t, len(want), len(got), what)
	for i := range want {
		if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// Law RowAlone: an answer does not depend on what else runs.
func TestRowAlone(t *testing.T) {
	all := prompts(12)
	want := alone(t, startFixture(t, fixture, nil), all, 24)
	e := startFixture(t, fixture, nil)
	streams := make([]*Stream, len(all))
	for i, p := range all {
		streams[i] = begin(t, e, ask(p, 24))
	}
	for i, s := range streams {
		require.Equal(t, want[i], spelled(t, s), "prompt %d", i)
	}
}

// Law ChunkFree: the rows of a step, and so the chunks of a prompt, change no bit.
func TestChunkFree(t *testing.T) {
	tokens := prompts(12)[7]
	var want []float32
	for _, rows := range []int{512, 1, 7, 64} {
		e := startFixture(t, fixture, func(c *Config) { c.Rows, c.Sequences = rows, 1 })
		got := score(t, e, tokens)
		if want == nil {
			want = got
		}
		requireSameBits(t, want, got, fmt.Sprintf("%d rows a step", rows))
	}
}

// Law Recompute: with too few blocks for all, sequences are evicted and computed again; nobody can tell.
func TestRecompute(t *testing.T) {
	all := prompts(6)
	want := alone(t, startFixture(t, fixture, nil), all, 60)
	e := startFixture(t, fixture, func(c *Config) { c.Context, c.Blocks, c.Sequences = 256, 7, 6 })
	streams := make([]*Stream, len(all))
	for i, p := range all {
		streams[i] = begin(t, e, ask(p, 60))
	}
	var wg sync.WaitGroup
	for i, s := range streams {
		wg.Go(func() {
			got, err := trySpelled(s)
			if err != nil || got != want[i] {
				t.Errorf("prompt %d: error %v\n got %s\nwant %s", i, err, got, want[i])
			}
		})
	}
	wg.Wait()
}

// A second request with the same long prompt does not prefill it again.
func TestPrefixIsShared(t *testing.T) {
	e := startFixture(t, fixture, nil)
	tokens := make([]int32, 200)
	for i := range tokens {
		tokens[i] = int32(i)
	}
	first := collect(t, begin(t, e, ask(tokens, 4)))
	second := collect(t, begin(t, e, ask(tokens, 4)))
	require.Equal(t, 0, first.usage.Cached)
	require.Equal(t, 192, second.usage.Cached)
	require.Equal(t, first.tokens, second.tokens)
}

// Law Survive: whichever actor dies, and whenever, answers stay what they were.
func TestSurvive(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(6)
	want := alone(t, startFixture(t, fixture, nil), all, 40)
	for _, victim := range []string{"scheduler", "kv", "sampler", "device", "device/uploader", "device/packer",
		"device/prefetcher", "reader", "pool", "sessions", "session", "model"} {
		t.Run(victim, func(t *testing.T) {
			e := startFixture(t, fixture, nil)
			streams := make([]*Stream, len(all))
			for i, p := range all {
				streams[i] = begin(t, e, ask(p, 40))
			}
			name := victim
			if name == "session" {
				name = "sessions/3"
			}
			var wg sync.WaitGroup
			blamed := atomic.Int32{}
			for i, s := range streams {
				wg.Go(func() {
					got, err := trySpelled(s)
					switch {
					case err == nil && got == want[i]:
					case err != nil && victim == "device" && twice.MatchString(err.Error()) && strings.HasPrefix(want[i], got):
						blamed.Add(1)
					default:
						t.Errorf("prompt %d: error %v\n got %s\nwant %s", i, err, got, want[i])
					}
				})
			}
			for range 3 {
				time.Sleep(15 * time.Millisecond) // a moment, whichever
				e.crash(name)
			}
			wg.Wait()
			require.LessOrEqual(t, blamed.Load(), int32(1), "two deaths for one request")
			require.NoError(t, e.Health())
		})
	}
}

// lawTries is how often a test tries whether something is over in time: a machine that is busy with something else may
// miss that for once, and we may not miss it each time.
const lawTries = 8

// Law Cancel: a request that nobody waits for gives everything back within 250 ms, wherever it is.
func TestCancel(t *testing.T) {
	long := make([]int32, 3000)
	for i := range long {
		long[i] = int32(i % 500)
	}
	tests := map[string]func(*testing.T, *Engine) *Stream{
		"decoding": func(t *testing.T, e *Engine) *Stream {
			s := begin(t, e, ask([]int32{1, 2, 3}, 100_000))
			var ev Event
			require.NoError(t, s.Next(context.Background(), &ev))
			return s
		},
		"in prefill": func(t *testing.T, e *Engine) *Stream { return begin(t, e, ask(long, 10)) },
		"queued": func(t *testing.T, e *Engine) *Stream {
			holder := begin(t, e, ask([]int32{1, 2}, 100_000)) // has the only place
			t.Cleanup(holder.Close)
			return begin(t, e, ask(long, 10))
		},
		"starved": func(t *testing.T, e *Engine) *Stream {
			s := begin(t, e, ask([]int32{1, 2, 3}, 100_000))
			require.Eventually(t, func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.size == batch.Window },
				patient, time.Millisecond)
			return s
		},
		"at once": func(t *testing.T, e *Engine) *Stream { return begin(t, e, ask(long, 10)) },
	}
	for name, open := range tests {
		t.Run(name, func(t *testing.T) {
			e := startFixture(t, fixture, func(c *Config) { c.Context, c.Sequences = 4096, 1 })
			holders := int64(0)
			if name == "queued" {
				holders = 1
			}
			left := holders
			var took time.Duration
			for range lawTries {
				s := open(t, e)
				if name != "at once" {
					time.Sleep(20 * time.Millisecond)
				}
				began := now()
				s.Close()
				require.Eventually(t, func() bool {
					n := e.Snapshot()
					return n.Open == left && n.Running+n.Waiting == left && (left > 0 || n.KV.Used == 0)
				}, patient, time.Millisecond)
				if took = now().Sub(began); took < 250*time.Millisecond {
					break
				}
				left += holders // they stay
			}
			require.Less(t, took, 250*time.Millisecond)
			require.Zero(t, e.Snapshot().FailedSteps, "a step that nobody waits for is no failure")
		})
	}
}

// Law Survive, for a file that is cut while its weights are computed from: whoever asks gets a clear error, the model
// says that it cannot serve, and those beside it go on.
func TestSurviveCutFile(t *testing.T) {
	devicetest.OnProcessor(t, inPlace)
	t.Cleanup(func() { goleak.VerifyNone(t) })
	data, err := os.ReadFile(fixturePath(t, fixture))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "cut.gguf")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	cut, err := gguf.Open(path)
	require.NoError(t, err)
	whole, err := gguf.Open(fixturePath(t, fixture))
	require.NoError(t, err)
	h, err := Open(context.Background(), HouseConfig{Device: newDevice(t), Models: []Model{
		{Name: "cut", File: cut, KV: backend.KVF32, NoRepack: true}, {Name: "whole", File: whole, KV: backend.KVF32},
	}})
	require.NoError(t, err)
	t.Cleanup(func() { shut(t, h.Engines()[0]) })
	p := prompts(1)[0]
	a, b := h.Engines()[0], h.Engines()[1]
	want := spelled(t, begin(t, b, ask(p, 20)))
	require.Equal(t, want, spelled(t, begin(t, a, ask(p, 20))))
	s := begin(t, a, ask(p, 100_000))
	next(t, s, 2)
	require.NoError(t, os.Truncate(path, 0))
	require.Error(t, a.Health(), "before anybody notices")
	_, err = drain(s)
	require.ErrorContains(t, err, "a page of the weights cannot be read")
	require.Eventually(t, func() bool { return strings.Contains(a.Health().Error(), "a page of the weights cannot be read") },
		patient, time.Millisecond)
	_, err = a.Generate(ask(p, 20))
	require.Error(t, err)
	require.NoError(t, b.Health())
	require.Equal(t, want, spelled(t, begin(t, b, ask(p, 20))))
}

// Law Survive, for weights in place: they give the answers that loaded ones give, and a device that died finds them
// again.
func TestSurviveInPlace(t *testing.T) {
	devicetest.OnProcessor(t, inPlace)
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := prompts(4)
	want := alone(t, startFixture(t, fixture, nil), all, 40)
	e := startFixture(t, fixture, func(c *Config) { c.NoRepack = true })
	loaded, total := e.Loaded()
	require.Equal(t, total, loaded)
	streams := make([]*Stream, len(all))
	for i, p := range all {
		streams[i] = begin(t, e, ask(p, 40))
	}
	e.crash("device")
	for i, s := range streams {
		require.Equal(t, want[i], spelled(t, s))
	}
}
