package constrain

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// realTools are as many tools as asked for, whose parameters are real schemas of objects, and a call of each.
func realTools(b *testing.B, n int) (list []tools.Tool, calls []string) {
	type realCase struct {
		Schema string
		Tests  []struct {
			Text           string
			Valid, Ordered bool
		}
	}
	for c := range testref.Cases[realCase](b, "refdata", "structured", "real-schemas.jsonl") {
		for _, x := range c.Tests {
			if len(list) == n || !x.Valid || !x.Ordered || !strings.HasPrefix(x.Text, "{") || len(c.Schema) > 1<<10 {
				continue
			}
			name := fmt.Sprintf("tool_%d", len(list))
			list = append(list, tools.Tool{Name: name, Parameters: c.Schema})
			calls = append(calls, hermes.Open+name+hermes.Mid+x.Text+hermes.Close)
			break
		}
	}
	require.Len(b, list, n)
	return list, calls
}

// hermes is how most models that call tools write it.
var hermes = &tools.Form{Open: "<tool_call>\n{\"name\": \"", Mid: "\", \"arguments\": ",
	Next: "}\n</tool_call>\n<tool_call>\n{\"name\": \"", Close: "}\n</tool_call>"}

// BenchmarkTools writes a call of each tool of a request, token by token: what a mask costs, and how long it takes
// from the tools to the first mask.
func BenchmarkTools(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		list, calls := realTools(b, n)
		for _, name := range []string{"gpt-2", "qwen2"} {
			f, err := gguf.Parse(name+".gguf", testref.Vocab(b, name))
			require.NoError(b, err)
			v, err := token.New(&f.Meta)
			require.NoError(b, err)
			trie := grammar.NewTrie(v.Size(), v.Piece, v.EOG())
			b.Run(fmt.Sprintf("%d-%s", n, name), func(b *testing.B) {
				var masks, first []time.Duration
				mask, kept := make([]uint64, trie.Words()), 0
				for b.Loop() {
					began := time.Now()
					form, err := formOf(hermes, &tools.Choice{List: list}, false, true)
					if err != nil { // all schemas together are too much
						form, err = formOf(hermes, &tools.Choice{List: list}, false, false)
					} else {
						kept++
					}
					require.NoError(b, err)
					p := form.Program()
					m, k := p.Matcher(), p.Masker(trie)
					require.NoError(b, k.Mask(m, mask))
					first = append(first, time.Since(began))
					for _, text := range calls {
						m.Reset()
						ids, err := v.Encode(nil, text, token.Options{})
						require.NoError(b, err)
						for _, id := range ids {
							began := time.Now()
							require.NoError(b, k.Mask(m, mask))
							masks = append(masks, time.Since(began))
							if mask[id/64]>>(id%64)&1 == 0 {
								break
							}
							_, err := m.Read(v.Piece(id))
							require.NoError(b, err)
						}
					}
				}
				slices.Sort(masks)
				slices.Sort(first)
				at := func(list []time.Duration, q float64) float64 {
					return float64(list[int(q*float64(len(list)-1))].Nanoseconds()) / 1000
				}
				b.ReportMetric(at(masks, 0.5), "µs/mask-p50")
				b.ReportMetric(at(masks, 0.99), "µs/mask-p99")
				b.ReportMetric(at(masks, 0.999), "µs/mask-p99.9")
				b.ReportMetric(at(first, 0.5), "µs/first-p50")
				b.ReportMetric(float64(kept)/float64(len(first)), "kept")
				b.ReportMetric(float64(len(masks))/float64(len(first)), "masks")
			})
		}
	}
}
