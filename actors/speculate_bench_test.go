package actors

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// copied is how many tokens each answer of the benchmarks has.
const copied = 400

// BenchmarkSpeculation measures answers of 400 tokens with guesses and without, in turns: those that copy a text, those
// that write code again in which a name has changed, and those that tell something new, where guesses must cost
// nothing. times is the median of the ratios of the turns, and least and most are their quartiles. With SLUICE_MODEL it
// is another model. actors/speculate.sh makes a table of it.
func BenchmarkSpeculation(b *testing.B) {
	engines := bothWays(b, nil)
	for _, task := range []string{"copying", "editing", "telling"} {
		for _, sequences := range []int{1, 4, 8} {
			b.Run(fmt.Sprintf("%s/%d", task, sequences), func(b *testing.B) {
				all := answersOf(b, engines[false], task, sequences)
				speeds(b, engines, all)
			})
		}
	}
}

// BenchmarkForced measures likewise what guesses give of which so many are right, whatever the model says: seven at a
// time, of an answer that is known. With SLUICE_WEIGHTS, in MiB, the model is streamed, as SLUICE_MODEL's should be.
func BenchmarkForced(b *testing.B) {
	budget, _ := strconv.ParseInt(os.Getenv("SLUICE_WEIGHTS"), 10, 64) // 0: none
	for _, right := range []float64{0.5, 0.7, 0.9} {
		b.Run(fmt.Sprintf("%.0f%%/1", 100*right), func(b *testing.B) {
			known, random := texts{}, rand.New(rand.NewPCG(1, 2))
			engines := bothWaysOf(b, func(c *Config) {
				c.Weights, c.Sequences = budget<<20, 1
				if c.Speculate {
					c.propose = func(prompt []int32) batch.Proposer {
						return &sevens{known[fmt.Sprint(prompt)], right, random}
					}
				}
			})
			r := plain([]int32{5, 6, 7}, forced)
			s, err := engines[false].Generate(r)
			require.NoError(b, err)
			var ev Event
			for text := slices.Clone(r.Tokens); ; known[fmt.Sprint(r.Tokens)] = text {
				if err := s.Next(b.Context(), &ev); err != nil {
					require.ErrorIs(b, err, io.EOF)
					break
				}
				text = append(text, ev.Token)
			}
			s.Close()
			speeds(b, engines, []Request{r})
		})
	}
}

// forced is how many tokens each answer of BenchmarkForced has: streamed models take long.
const forced = 64

// BenchmarkDraft measures likewise what the small model's draft model gives: answers that go on with code or a novel as
// is likeliest, and others at temperature 1. With SLUICE_DRAFT that is another draft model, of SLUICE_MODEL's.
func BenchmarkDraft(b *testing.B) {
	path := cmp.Or(os.Getenv("SLUICE_DRAFT"), filepath.Join(testref.Dir(b), "models", "draft-bf16.gguf"))
	engines := bothWays(b, func(m *Model) {
		f, err := gguf.Open(path)
		require.NoError(b, err)
		m.Draft, m.DraftOnly = f, true
	})
	for _, task := range []string{"code", "novel", "telling"} {
		for _, sequences := range []int{1, 4} {
			b.Run(fmt.Sprintf("%s/%d", task, sequences), func(b *testing.B) {
				speeds(b, engines, answersOf(b, engines[false], task, sequences))
			})
		}
	}
}

// bothWays starts a model twice: without guesses, and with those that edit adds to n-grams.
func bothWays(b *testing.B, edit func(*Model)) map[bool]*Engine {
	return bothWaysOf(b, func(c *Config) {
		if c.Speculate && edit != nil {
			edit(&c.Model)
		}
	})
}

// bothWaysOf starts a model twice, each as edit has it.
func bothWaysOf(b *testing.B, edit func(*Config)) map[bool]*Engine {
	engines := map[bool]*Engine{}
	for _, guesses := range []bool{false, true} {
		f, err := gguf.Parse(mini.Name, mini.GGUF)
		if path := os.Getenv("SLUICE_MODEL"); path != "" {
			f, err = gguf.Open(path)
		}
		require.NoError(b, err)
		m := Model{File: f, KV: backend.KVF16, Context: 2048, Sequences: 8, Speculate: guesses}
		c := Config{Log: zerolog.Nop(), Device: devicetest.New(b), Model: m}
		edit(&c)
		e, err := Start(b.Context(), c)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, e.Close(context.Background())) })
		engines[guesses] = e
	}
	return engines
}

// answersOf are requests that begin in the middle of a text: its second copy, or what was not there before.
func answersOf(b *testing.B, e *Engine, task string, n int) (all []Request) {
	name := "heldout-go.txt"
	if task == "novel" {
		name = "heldout-en.txt"
	}
	text, err := os.ReadFile(filepath.Join(testref.Dir(b), "models", name))
	require.NoError(b, err)
	ids, err := e.spec.vocab.Encode(nil, string(text[:60000]), token.Options{})
	require.NoError(b, err)
	for i := range n {
		r := plain(slices.Clone(ids[i*600:][:500]), copied)
		switch task {
		case "copying":
			r.Tokens = append(append(r.Tokens, r.Tokens...), r.Tokens[:50]...)
		case "editing":
			code := string(text[i*2400:][:1600])
			edited := strings.ReplaceAll(code, "err", "fault")
			r.Tokens, err = e.spec.vocab.Encode(nil, code+"\n\n"+edited[:200], token.Options{})
			require.NoError(b, err)
		case "telling":
			r.Sampling.Temp, r.Sampling.Seed = 1, uint64(i)
		}
		all = append(all, r)
	}
	return all
}

// speeds answers requests together, in turns with guesses and without.
func speeds(b *testing.B, engines map[bool]*Engine, all []Request) {
	var ratios, with []float64
	before := engines[true].Snapshot()
	for b.Loop() {
		rate := map[bool]float64{}
		first := len(ratios)%2 == 0
		for _, guesses := range []bool{first, !first} {
			rate[guesses] = allTogether(b, engines[guesses], all)
		}
		ratios = append(ratios, rate[true]/rate[false])
		with = append(with, rate[true])
	}
	after := engines[true].Snapshot()
	slices.Sort(ratios)
	slices.Sort(with)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratios[len(ratios)/2], "times")
	b.ReportMetric(ratios[len(ratios)/4], "least")
	b.ReportMetric(ratios[len(ratios)*3/4], "most")
	b.ReportMetric(with[len(with)/2], "tokens/s")
	if n := after.Proposed - before.Proposed; n > 0 {
		b.ReportMetric(float64(after.Accepted-before.Accepted)/float64(n), "right")
		b.ReportMetric(float64(n)/float64(len(ratios)*len(all)*all[0].MaxTokens), "tried")
	}
}

// allTogether is how many tokens a second answers have together while all of them go on: from the last of their first
// tokens to the first of their last ones.
func allTogether(b *testing.B, e *Engine, all []Request) float64 {
	var wg sync.WaitGroup
	at := make([][]time.Time, len(all))
	for i, r := range all {
		s, err := e.Generate(r)
		require.NoError(b, err)
		wg.Go(func() {
			defer s.Close()
			var ev Event
			for s.Next(b.Context(), &ev) == nil {
				at[i] = append(at[i], ev.At)
			}
		})
	}
	wg.Wait()
	from, until := at[0][0], at[0][len(at[0])-1]
	for _, times := range at[1:] {
		if times[0].After(from) {
			from = times[0]
		}
		if last := times[len(times)-1]; last.Before(until) {
			until = last
		}
	}
	n := 0
	for _, times := range at {
		for _, t := range times {
			if t.After(from) && !t.After(until) {
				n++
			}
		}
	}
	return float64(n) / until.Sub(from).Seconds()
}
