package actors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/bill"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// startHearing starts a model whose prompts an encoder reads.
func startHearing(t *testing.T, name string, edit func(*Config)) *Engine {
	t.Helper()
	f, err := gguf.Open(archtest.Specimen(t, name))
	require.NoError(t, err)
	return startFile(t, f, edit)
}

// TestHeardAnswersArePeers: answers to a prompt that an encoder reads are llama.cpp's, whole and in pieces.
func TestHeardAnswersArePeers(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "cpu", "ref", "testdata", "peer", "greedy.json"))
	require.NoError(t, err)
	recorded := map[string][]int32{}
	require.NoError(t, json.Unmarshal(text, &recorded))
	for _, name := range []string{"t5", "t5-relu"} {
		for _, rows := range []int{0, 5} {
			e := startHearing(t, name, func(c *Config) { c.Rows = rows })
			a := collect(t, generate(t, e, plain(backendtest.SpecimenTokens(), len(recorded[name]))))
			require.Equal(t, recorded[name], a.tokens, "%s, pieces of %d", name, rows)
			require.Equal(t, len(backendtest.SpecimenTokens())+1, a.usage.Prompt, "with what the answer begins behind")
			require.Positive(t, a.usage.Spent.Spent(bill.Pictures), "the encoder's cost is told")
		}
	}
}

// heardPrompts are prompts of which one begins as another one, and one is longer than a block.
func heardPrompts() [][]int32 {
	var long []int32
	for i := range int32(75) {
		long = append(long, 20+i*i*37%400)
	}
	more := append(slices.Clone(long), slices.Repeat([]int32{45, 260}, 10)...)
	return [][]int32{long, more, {5, 9, 17}, long[:len(long)-1]}
}

// TestHeardBesideOthers: what else is computed, and how often it has to be computed again for want of room, changes no
// answer; each prompt has its own.
func TestHeardBesideOthers(t *testing.T) {
	const most = 70
	for _, kv := range []string{"f32", "q8"} {
		format, err := backend.ParseKV(kv)
		require.NoError(t, err)
		alone := startHearing(t, "t5", func(c *Config) { c.KV = format })
		var want [][]int32
		for _, p := range heardPrompts() {
			want = append(want, collect(t, generate(t, alone, plain(p, most))).tokens)
		}
		require.NotEqual(t, want[0], want[1])
		require.NotEqual(t, want[0], want[3])
		e := startHearing(t, "t5", func(c *Config) { c.KV, c.Sequences, c.Blocks, c.Rows = format, 4, 5, 24 })
		got := make([]answer, len(want))
		var all sync.WaitGroup
		for i, p := range heardPrompts() {
			s := generate(t, e, plain(p, most))
			all.Go(func() { got[i], _ = drain(s) })
		}
		all.Wait()
		for i := range want {
			require.Equal(t, want[i], got[i].tokens, "%s, prompt %d", kv, i)
		}
	}
}

// TestHeardIsCached: the same prompt finds its rows in the cache, one that begins like it shares nothing: its rows are
// others from the first one on.
func TestHeardIsCached(t *testing.T) {
	e := startHearing(t, "t5", nil)
	prompts := heardPrompts()
	first := collect(t, generate(t, e, plain(prompts[0], 8)))
	require.Zero(t, first.usage.Cached)
	again := collect(t, generate(t, e, plain(prompts[0], 8)))
	require.Equal(t, backend.BlockSize, again.usage.Cached)
	require.Equal(t, first.tokens, again.tokens)
	require.Equal(t, 1, read(e), "what the encoder made of it is remembered")
	for _, p := range prompts[1:] {
		require.Zero(t, collect(t, generate(t, e, plain(p, 8))).usage.Cached)
	}
	require.Equal(t, len(prompts), read(e))
}

// read is how many prompts an engine's encoder has read, by its spans.
func read(e *Engine) (prompts int) {
	for _, s := range e.house.Spans() {
		if s.Kind == trace.Block && strings.HasSuffix(s.Track, "/encoder") && s.Work > 0 {
			prompts++
		}
	}
	return prompts
}

// TestPlanOfEncoder: an encoder's weights are planned, and come out of the budget for the decoder's.
func TestPlanOfEncoder(t *testing.T) {
	f, err := gguf.Open(archtest.Specimen(t, "t5"))
	require.NoError(t, err)
	m := Model{File: f}
	p, err := PlanFor(&m, devicetest.Processor(t, ""))
	require.NoError(t, err)
	bytes := int64(0)
	for i := range f.Tensors {
		if x := &f.Tensors[i]; strings.HasPrefix(x.Name, "enc.") || x.Name == "token_embd.weight" {
			require.NoError(t, f.View(x, func(data []byte) error {
				bytes += int64(len(data))
				return nil
			}))
		}
	}
	require.Equal(t, backend.Memory{Weights: bytes, Scratch: mostSeen}, p.Besides)
	s, err := specOf(&m)
	require.NoError(t, err)
	a := place.Ask{Budgets: []int64{bytes + 5}}
	require.NoError(t, fitBesides(s, &m, &a))
	require.EqualValues(t, 5, a.Budgets[0])
	m.TowerIfFits = true
	require.EqualError(t, fitBesides(s, &m, &a), "the encoder's weights alone take 0 MiB, more than the budget for weights")
}

// TestHeardHasNoScores: tokens of what an encoder reads have no logits, and it has to read something.
func TestHeardHasNoScores(t *testing.T) {
	e := startHearing(t, "t5", nil)
	_, err := e.Score([]int32{5, 6, 7})
	require.ErrorContains(t, err, "reads texts by an encoder and has no logits of their tokens: ask it for answers")
	require.Equal(t, ir.Decoder, e.spec.bound.Form())
}
