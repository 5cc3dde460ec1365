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

// BenchmarkMasks writes the valid instances of the real schemas token by token, each schema compiled anew: what a mask
// costs, and how long it takes from the text of a schema to the first mask.
func BenchmarkMasks(b *testing.B) {
	type realCase struct {
		ID, Schema string
		Tests      []struct {
			Text, How      string
			Valid, Ordered bool
		}
	}
	for _, name := range []string{"gpt-2", "llama-bpe", "qwen2"} {
		v := vocabulary(b, name)
		began := time.Now()
		trie := grammar.NewTrie(v.Size(), v.Piece, v.EOG())
		b.Logf("%s: trie of %d tokens in %v", name, v.Size(), time.Since(began))
		b.Run(fmt.Sprintf("%s-%d", name, v.Size()), func(b *testing.B) {
			var masks, first, reads []time.Duration
			slow := map[string]time.Duration{}
			mask := make([]uint64, trie.Words())
			for b.Loop() {
				for c := range reference[realCase](b, "real-schemas.jsonl") {
					began := time.Now()
					p, err := program(c.Schema, Options{})
					if err != nil {
						continue
					}
					m, k := p.Matcher(), p.Masker(trie)
					require.NoError(b, k.Mask(m, mask))
					first = append(first, time.Since(began))
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
							took := time.Since(began)
							masks = append(masks, took)
							slow[c.ID] = max(slow[c.ID], took)
							if mask[id/64]>>(id%64)&1 == 0 {
								break // the piece of a text that begins with a space in this vocabulary
							}
							began = time.Now()
							_, err := m.Read(v.Piece(id))
							reads = append(reads, time.Since(began))
							require.NoError(b, err)
						}
					}
				}
			}
			at := func(list []time.Duration, q float64) float64 {
				slices.Sort(list)
				return float64(list[int(q*float64(len(list)-1))].Nanoseconds()) / 1000
			}
			b.ReportMetric(at(masks, 0.5), "µs/mask-p50")
			b.ReportMetric(at(masks, 0.99), "µs/mask-p99")
			b.ReportMetric(at(masks, 1), "µs/mask-max")
			b.ReportMetric(at(reads, 0.5), "µs/read-p50")
			b.ReportMetric(at(first, 0.5), "µs/first-p50")
			b.ReportMetric(at(first, 0.99), "µs/first-p99")
			b.Log(len(masks), "masks")
			if testing.Verbose() {
				for id, d := range slow {
					if d > 3*time.Millisecond {
						b.Log(id, d)
					}
				}
			}
		})
	}
}
