package actors

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// keepers are fixtures that keep of a sequence what is not keys and values of every layer: states alone, states beside
// attention, windows that layers share, latent vectors, states whose values decay each at its own rate, keys of chunks
// of positions beside the means that they come from.
var keepers = []string{"mamba2", "lfm2", "qwen3next", "gemma4", "deepseek3", "deepseek2", "gemma4moe",
	"rwkv7", "deepseek4"}

// eachKeeper runs a test with each.
func eachKeeper(t *testing.T, test func(t *testing.T, name string)) {
	for _, name := range onDevice(keepers) {
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

// onDevice leaves out fixtures whose ops the processor alone has.
func onDevice(names []string) []string {
	if devicetest.OnGPU() {
		return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "rwkv7" || name == "deepseek4" })
	}
	return names
}

// Law ChunkFree: prompts of any chunks, and answers row by row, give the bits that one piece gives.
func TestChunkFreeStates(t *testing.T) {
	eachKeeper(t, func(t *testing.T, name string) {
		prompt := longPrompts(1)[0]
		whole := startFixture(t, name, wide)
		answer := collect(t, begin(t, startFixture(t, name, tight), plain(prompt, 100)))
		tokens := slices.Concat(prompt, answer.tokens)
		want := score(t, whole, tokens)
		vocab := len(want) / len(tokens)
		for i, token := range answer.tokens {
			row := want[(len(prompt)+i-1)*vocab:][:vocab]
			requireLikeliest(t, whole, row, token, i)
		}
		for _, rows := range []int{1, 7, 64} {
			few := startFixture(t, name, func(c *Config) { tight(c); c.Rows, c.Sequences = rows, 1 })
			requireSameBits(t, want, score(t, few, tokens), fmt.Sprintf("%d rows a step", rows))
		}
	})
}

// requireLikeliest wants a token to be what the model says of a text that is read; where answers have other bits than
// prompts, as good as that.
func requireLikeliest(t *testing.T, e *Engine, logits []float32, token int32, i int) {
	t.Helper()
	best := slices.Max(logits)
	if apart := e.house.device.Traits().Apart; apart != nil && apart(e.spec.bound) {
		require.InDelta(t, best, logits[token], 0.05, "token %d", i)
		return
	}
	require.EqualValues(t, slices.Index(logits, best), token, "token %d", i)
}

// Law RowAlone: six sequences give the answers of each alone.
func TestRowAloneStates(t *testing.T) {
	eachKeeper(t, func(t *testing.T, name string) {
		want := alone(t, startFixture(t, name, wide), longPrompts(6), 60)
		e := startFixture(t, name, tight)
		together(t, e, longPrompts(6), want)
		require.Eventually(t, func() bool { return e.Snapshot().KV.Used == 0 }, patient, time.Millisecond)
	})
}

// Law Recompute: with too few blocks for all, sequences are evicted and computed again.
func TestRecomputeStates(t *testing.T) {
	eachKeeper(t, func(t *testing.T, name string) {
		all := longPrompts(6)
		want := alone(t, startFixture(t, name, wide), all, 60)
		e := startFixture(t, name, func(c *Config) { c.Context, c.Blocks, c.Sequences, c.Rows = 512, 9, 6, 32 })
		together(t, e, all, want)
		require.Positive(t, e.Snapshot().KV.Evictions)
	})
}

// A prompt that was answered is found again up to its last whole block, and goes on from the state there with the bits
// of a run that found nothing.
func TestPrefixHitOfStates(t *testing.T) {
	eachKeeper(t, func(t *testing.T, name string) {
		e := startFixture(t, name, tight)
		tokens := longPrompts(1)[0][:150]
		longer := slices.Concat(tokens, []int32{7, 7, 7})
		want := alone(t, startFixture(t, name, wide), [][]int32{longer}, 30)[0]
		collect(t, begin(t, e, ask(tokens, 4)))
		require.Equal(t, want, spelled(t, begin(t, e, ask(longer, 30))))
		again := collect(t, begin(t, e, ask(longer, 4)))
		require.Equal(t, 128, again.usage.Cached)
	})
}

// Choices of one request go on from the same states.
func TestForkedStates(t *testing.T) {
	eachKeeper(t, func(t *testing.T, name string) {
		r := ask(longPrompts(1)[0], 40)
		all := r.Choices(3)
		quiet := startFixture(t, name, wide)
		var want []string
		for _, c := range all {
			want = append(want, spelled(t, begin(t, quiet, c)))
		}
		require.NotEqual(t, want[0], want[1])
		e := startFixture(t, name, tight)
		var streams []*Stream
		for _, c := range all {
			streams = append(streams, begin(t, e, c))
		}
		for i, s := range streams {
			require.Equal(t, want[i], spelled(t, s), "choice %d", i)
		}
	})
}

// Law Survive: whichever actor dies, answers stay what they were.
func TestSurviveStates(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	eachKeeper(t, func(t *testing.T, name string) {
		survive(t, name, slices.Concat(ofModel, ofHouse), func(*Config) {})
	})
}

// halfway is a device of which every so many steps fail when all states are changed already.
type halfway struct {
	backend.Device
	every int64
	steps *atomic.Int64
}

func (d halfway) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.Device.Compile(p, c)
	return halfwayModel{m, len(p.Segments) - 1, d}, err
}

type halfwayModel struct {
	backend.Model
	last   int
	device halfway
}

func (m halfwayModel) Run(w backend.Work, s *backend.Step) error {
	if w.Segment == m.last && m.device.steps.Add(1)%m.device.every == 0 {
		return errors.New("it failed when it was nearly done")
	}
	return m.Model.Run(w, s)
}

// Law Survive, for steps that fail: what they left of a state is not gone on from.
func TestSurviveStatesHalfway(t *testing.T) {
	eachKeeper(t, func(t *testing.T, name string) {
		all := longPrompts(4)
		want := alone(t, startFixture(t, name, wide), all, 60)
		d := halfway{every: 53, steps: new(atomic.Int64)}
		e := startFixture(t, name, func(c *Config) { tight(c); d.Device = c.Device; c.Device = d })
		together(t, e, all, want)
		require.Greater(t, e.Snapshot().FailedSteps, uint64(0))
	})
}
