package schema

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func vocabulary(t testing.TB, name string) *token.Vocab {
	f, err := gguf.Parse(name+".gguf", testref.Vocab(t, name))
	require.NoError(t, err)
	v, err := token.New(&f.Meta)
	require.NoError(t, err)
	return v
}

// sizes are the classes of schemas that are told apart, by their bytes.
var sizes = [...]struct {
	name string
	most int
}{{"below 1 KB", 1 << 10}, {"1 to 4 KB", 4 << 10}, {"above 4 KB", 1 << 30}}

// costs are what the schemas of a class, or of all, took.
type costs struct {
	schemas             int
	masks, first, reads []time.Duration
}

// quantile is one, in microseconds.
func quantile(list []time.Duration, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return float64(list[int(q*float64(len(list)-1))].Nanoseconds()) / 1000
}

type realCase struct {
	ID, Schema string
	Tests      []struct {
		Text, How      string
		Valid, Ordered bool
	}
}

// BenchmarkMasks writes the valid instances of the real schemas token by token, each schema compiled anew: what a mask
// costs, and how long it takes from the text of a schema to the first mask.
func BenchmarkMasks(b *testing.B) {
	for _, name := range []string{"gpt-2", "llama-bpe", "qwen2"} {
		v := vocabulary(b, name)
		began := time.Now()
		trie := grammar.NewTrie(v.Size(), v.Piece, v.EOG())
		b.Logf("%s: trie of %d tokens in %v", name, v.Size(), time.Since(began))
		b.Run(fmt.Sprintf("%s-%d", name, v.Size()), func(b *testing.B) {
			var all [len(sizes) + 1]costs // the last: of all
			for b.Loop() {
				for c := range testref.Cases[realCase](b, "refdata", "structured", "real-schemas.jsonl") {
					class := 0
					for len(c.Schema) > sizes[class].most {
						class++
					}
					one := written(b, c, v, trie)
					for _, sum := range [...]*costs{&all[class], &all[len(sizes)]} {
						sum.schemas += one.schemas
						sum.masks, sum.first = append(sum.masks, one.masks...), append(sum.first, one.first...)
						sum.reads = append(sum.reads, one.reads...)
					}
				}
			}
			whole := all[len(sizes)]
			for i, s := range sizes {
				b.Logf("%s: %d schemas, %d masks: %.1f µs, %.0f µs, 99.9th percentile %.0f µs; first %.0f µs, %.0f µs "+
					"(medians, 99th percentiles)", s.name, all[i].schemas, len(all[i].masks), quantile(all[i].masks, 0.5),
					quantile(all[i].masks, 0.99), quantile(all[i].masks, 0.999),
					quantile(all[i].first, 0.5), quantile(all[i].first, 0.99))
			}
			b.ReportMetric(quantile(whole.masks, 0.5), "µs/mask-p50")
			b.ReportMetric(quantile(whole.masks, 0.99), "µs/mask-p99")
			b.ReportMetric(quantile(whole.masks, 0.999), "µs/mask-p99.9")
			b.ReportMetric(quantile(whole.masks, 1), "µs/mask-max")
			b.ReportMetric(quantile(whole.reads, 0.5), "µs/read-p50")
			b.ReportMetric(quantile(whole.first, 0.5), "µs/first-p50")
			b.ReportMetric(quantile(whole.first, 0.99), "µs/first-p99")
		})
	}
}

// written is what it costs to write up to three valid instances of a schema. One that is refused costs nothing.
func written(b *testing.B, c realCase, v *token.Vocab, trie *grammar.Trie) (sum costs) {
	mask := make([]uint64, trie.Words())
	began := time.Now()
	p, err := program(c.Schema, Options{})
	if err != nil {
		return sum
	}
	m, k := p.Matcher(), p.Masker(trie)
	require.NoError(b, k.Mask(m, mask))
	sum.first, sum.schemas = append(sum.first, time.Since(began)), 1
	n := 0
	for _, x := range c.Tests {
		if !x.Valid || !x.Ordered || n > 2 {
			continue
		}
		n++
		m.Reset()
		ids, err := v.Encode(nil, x.Text, token.Options{})
		require.NoError(b, err)
		for _, id := range ids {
			began := time.Now()
			require.NoError(b, k.Mask(m, mask))
			sum.masks = append(sum.masks, time.Since(began))
			if mask[id/64]>>(id%64)&1 == 0 {
				break // the piece of a text that begins with a space in this vocabulary
			}
			began = time.Now()
			_, err := m.Read(v.Piece(id))
			sum.reads = append(sum.reads, time.Since(began))
			require.NoError(b, err)
		}
	}
	return sum
}
