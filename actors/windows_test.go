package actors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/synth"
	"github.com/sluice-ai/sluice/stages/place"
)

// windowed are fixtures with layers that see 24 positions, beside others that see all.
var windowed = []string{"gemma3", "gptoss"}

// longPrompts are n prompts of several blocks, all well beyond the windows. The first and the last begin alike.
func longPrompts(n int) [][]int32 {
	r := rand.New(rand.NewPCG(5, 6))
	out := make([][]int32, n)
	for i := range out {
		out[i] = make([]int32, 150+r.IntN(150))
		for j := range out[i] {
			out[i][j] = int32(1 + r.IntN(200))
		}
	}
	copy(out[n-1], out[0][:140])
	return out
}

// tight has blocks for all positions of six sequences where these are kept; of a window fewer than six use at once.
func tight(c *Config) { c.Context, c.Blocks, c.Sequences, c.Rows = 1024, 40, 6, 32 }

// wide computes a prompt in one piece, before anything is given back.
func wide(c *Config) { c.Context, c.Sequences, c.Rows = 1024, 1, 512 }

// Law ChunkFree: far beyond their windows, with blocks given back behind them, models give the bits that they give in
// one piece, when nothing was given back. What they decode is the likeliest token of the whole.
func TestChunkFreeBeyondWindows(t *testing.T) {
	for _, name := range windowed {
		t.Run(name, func(t *testing.T) {
			whole := startFixture(t, name, wide)
			prompt := longPrompts(1)[0]
			answer := collect(t, begin(t, startFixture(t, name, tight), plain(prompt, 270)))
			tokens := slices.Concat(prompt, answer.tokens)
			want := score(t, whole, tokens)
			vocab := len(want) / len(tokens)
			for i, token := range answer.tokens {
				row := want[(len(prompt)+i-1)*vocab:][:vocab]
				requireLikeliest(t, whole, row, token, i)
			}
			for _, rows := range []int{7, 64} {
				few := startFixture(t, name, func(c *Config) { tight(c); c.Rows, c.Sequences, c.Blocks = rows, 1, 16 })
				require.Less(t, slices.Min(few.spec.layout.Blocks), backend.BlocksFor(len(tokens)))
				requireSameBits(t, want, score(t, few, tokens), fmt.Sprintf("%d rows a step", rows))
			}
		})
	}
}

// Law RowAlone: six sequences that share too few blocks of a window for all of them give the answers of each alone.
func TestRowAloneBeyondWindows(t *testing.T) {
	for _, name := range windowed {
		t.Run(name, func(t *testing.T) {
			want := alone(t, startFixture(t, name, wide), longPrompts(6), 60)
			e := startFixture(t, name, tight)
			require.Len(t, e.spec.layout.Blocks, 2)
			require.Equal(t, 14, slices.Min(e.spec.layout.Blocks))
			require.Equal(t, 40, slices.Max(e.spec.layout.Blocks))
			together(t, e, longPrompts(6), want)
			require.Positive(t, e.Snapshot().KV.Evictions)
			require.Eventually(t, func() bool { return e.Snapshot().KV.Used == 0 }, patient, time.Millisecond)
		})
	}
}

// Law Recompute: with too few blocks for all, of any class, sequences are evicted and computed again.
func TestRecomputeWindows(t *testing.T) {
	for _, name := range windowed {
		t.Run(name, func(t *testing.T) {
			all := longPrompts(6)
			want := alone(t, startFixture(t, name, wide), all, 60)
			e := startFixture(t, name, func(c *Config) { c.Context, c.Blocks, c.Sequences, c.Rows = 512, 9, 6, 32 })
			together(t, e, all, want)
			require.Positive(t, e.Snapshot().KV.Evictions)
		})
	}
}

// together asks for all answers at once, and compares them.
func together(t *testing.T, e *Engine, all [][]int32, want []string) {
	t.Helper()
	readers(t, e, all, want).Wait()
}

// readers ask for all answers at once, of as many tokens as the first one wanted has, and compare them.
func readers(t *testing.T, e *Engine, all [][]int32, want []string) *sync.WaitGroup {
	t.Helper()
	streams := make([]*Stream, len(all))
	n := lines(want[0])
	for i, p := range all {
		streams[i] = begin(t, e, ask(p, n))
	}
	wg := &sync.WaitGroup{}
	for i, s := range streams {
		wg.Go(func() {
			if got, err := trySpelled(s); err != nil || got != want[i] {
				t.Errorf("prompt %d: error %v\n got %s\nwant %s", i, err, got, want[i])
			}
		})
	}
	return wg
}

// lines counts the tokens of a trace.
func lines(trace string) (n int) {
	for _, c := range trace {
		if c == '\n' {
			n++
		}
	}
	return n
}

// A prompt that was answered is found again as far as its window's blocks are still there, and says so.
func TestPrefixIsSharedBehindWindows(t *testing.T) {
	for _, name := range windowed {
		t.Run(name, func(t *testing.T) {
			e := startFixture(t, name, tight)
			tokens := longPrompts(1)[0][:150]
			first := collect(t, begin(t, e, ask(tokens, 4)))
			second := collect(t, begin(t, e, ask(tokens, 4)))
			require.Equal(t, 0, first.usage.Cached)
			require.Equal(t, 128, second.usage.Cached)
			require.Equal(t, first.tokens, second.tokens)
		})
	}
}

// The KV cache of real shapes at a context of 32768, in f16: one sequence at once, and as many as by default.
func TestWindowedMemory(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		shape              string
		seqs               int
		all, mib, sequence int // MiB with all blocks kept; now; blocks of the windowed class
	}{
		{"gemma-3-1b", 1, 832, 165, 27},
		{"gemma-3-4b", 1, 4352, 893, 35},
		{"gemma-3-12b", 1, 12288, 2748, 35},
		{"gpt-oss-20b", 1, 1536, 799, 21},
		{"gpt-oss-120b", 1, 2304, 1199, 21},
		{"qwen3-8b", 1, 4608, 4608, 512},
	} {
		t.Run(test.shape, func(t *testing.T) {
			c, err := synth.Find(test.shape)
			require.NoError(t, err)
			program, err := arch.Record(c.Meta(test.shape), func(string) bool { return true }, arch.Options{})
			require.NoError(t, err)
			types := make([]quant.Type, len(program.Weights))
			for i := range types {
				types[i] = quant.F32
			}
			ask := place.Ask{Program: &ir.Bound{Program: program, Types: types}, Context: 32768, Sequences: test.seqs}
			p, err := place.Make([]place.Ask{ask}, place.Machine{Memory: []int64{1 << 50}})
			require.NoError(t, err)
			layout := p.Models[0].Layout
			var bytes, all int64
			for _, l := range program.KV {
				bytes += int64(layout.Blocks[l.Class]) * int64(layout.KV.Format.BlockBytes(l))
				all += 512 * int64(layout.KV.Format.BlockBytes(l))
			}
			t.Logf("%d MiB, %d MiB with all blocks kept; blocks %v", bytes/mib, all/mib, layout.Blocks)
			require.EqualValues(t, test.all, all/mib)
			require.EqualValues(t, test.mib, bytes/mib)
			require.Equal(t, test.sequence, slices.Min(layout.Blocks))
		})
	}
}

// Laws RowAlone and Recompute where full blocks are sealed in fewer bits, in one class of two: sequences that share
// prefixes, are evicted and computed again give the answers of each alone. Neither scheduler nor KV owner knows.
func TestLawsSealed(t *testing.T) {
	sealed := func(change func(*Config)) func(*Config) {
		return func(c *Config) { change(c); caches(t, c, backendtest.Toy()) }
	}
	all := longPrompts(6)
	want := alone(t, startFixture(t, "gemma3", sealed(wide)), all, 60)
	require.NotEqual(t, want, alone(t, startFixture(t, "gemma3", wide), all, 60), "fewer bits are seen in answers")
	e := startFixture(t, "gemma3", sealed(tight))
	require.Len(t, e.spec.layout.Blocks, 3)
	together(t, e, all, want)
	require.Positive(t, e.Snapshot().KV.Evictions)
	few := startFixture(t, "gemma3", sealed(func(c *Config) { c.Context, c.Blocks, c.Sequences, c.Rows = 512, 9, 6, 32 }))
	together(t, few, all, want)
	hits := few.Snapshot().KV.Hits
	require.Equal(t, want[5:], alone(t, few, all[5:], 60))
	require.Equal(t, want[5:], alone(t, few, all[5:], 60))
	require.Greater(t, few.Snapshot().KV.Hits, hits, "sealed blocks are found by prefix")
}

// Laws RowAlone and Recompute where each cache has a format of its own: of two caches of a class one seals its blocks.
func TestLawsMixedLayers(t *testing.T) {
	var types [][2]string
	for i := range len(startFixture(t, "gemma3", wide).spec.bound.KV) {
		types = append(types, [][2]string{{"q4", "tq2"}, {"f16", "q8"}, {"f16", "f16"}, {"tq3", "f16"}}[i%4])
	}
	kv, err := backend.LayersKV("mix", types)
	require.NoError(t, err)
	mixed := func(change func(*Config)) func(*Config) { return func(c *Config) { change(c); caches(t, c, kv) } }
	all := longPrompts(6)
	want := alone(t, startFixture(t, "gemma3", mixed(wide)), all, 60)
	e := startFixture(t, "gemma3", mixed(tight))
	together(t, e, all, want)
	require.Positive(t, e.Snapshot().KV.Evictions)
	require.Equal(t, "mix", e.Info.KV.Type)
}
