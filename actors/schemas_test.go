package actors

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
)

// realSchemas are those of the reference data that can be kept, every stepth of them, with what judges texts by them.
func realSchemas(t *testing.T, step int) (grammars []*grammar.Grammar, judges []*jsonschema.Schema) {
	type realCase struct{ Schema string }
	for c := range testref.Cases[realCase](t, "refdata", "structured", "real-schemas.jsonl") {
		g, err := schema.Compile(c.Schema, schema.Options{Formats: true}, grammar.DefaultLimits())
		if err != nil {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Schema))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("mem:schema.json", doc))
		judge, err := compiler.Compile("mem:schema.json")
		if err != nil {
			continue // it wants a $schema that there is no copy of here, or an $id that can be loaded
		}
		grammars, judges = append(grammars, g), append(judges, judge)
	}
	at := 0
	for i := 0; i < len(grammars); i += step {
		grammars[at], judges[at] = grammars[i], judges[i]
		at++
	}
	return grammars[:at], judges[:at]
}

// everySchema has TestRealSchemas take all schemas, and longer answers, which takes minutes.
const everySchema = "SLUICE_EVERY_SCHEMA"

// TestRealSchemas: at temperature 1.5 what the model writes under real schemas parses and validates, if it ends, and is
// the same among eight others.
func TestRealSchemas(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	step, most := 12, 160
	if os.Getenv(everySchema) != "" {
		step, most = 1, 400
	}
	grammars, judges := realSchemas(t, step)
	e := startMini(t)
	var alone []answer
	ended := 0
	request := func(i int) Request {
		r := bound(grammars[i], uint64(i))
		r.MaxTokens = most
		return r
	}
	for i, judge := range judges {
		a := collect(t, begin(t, e, request(i)))
		if alone = append(alone, a); a.finish != Stopped {
			continue
		}
		ended++
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(a.text))
		require.NoError(t, err, a.text)
		require.NoError(t, judge.Validate(v), a.text)
	}
	for from := 0; from < len(grammars); from += 9 {
		var streams []*Stream
		for i := from; i < min(from+9, len(grammars)); i++ {
			streams = append(streams, begin(t, e, request(i)))
		}
		for i, s := range streams {
			together := collect(t, s)
			require.Equal(t, alone[from+i].text, together.text)
			require.Equal(t, alone[from+i].finish, together.finish)
		}
	}
	t.Logf("%d schemas, %d answers ended by themselves", len(grammars), ended)
	require.Greater(t, ended, len(grammars)/5)
}

// BenchmarkSchemas writes as many tokens with a schema as without, in turns, one sequence at a time: what decoding
// costs more by it. Other work on the machine strikes both.
func BenchmarkSchemas(b *testing.B) {
	const most = 256
	for name, text := range map[string]string{
		"records": `{"type":"array","minItems":100,"items":{"type":"object","properties":{"name":{"type":"string","maxLength":40},
			"kind":{"enum":["red","green","blue"]},"n":{"type":"integer","minimum":0,"maximum":5000},"on":{"type":"boolean"}},
			"required":["name","kind","n","on"],"additionalProperties":false}}`,
		"text": `{"type":"string","minLength":5000}`,
	} {
		b.Run(name, func(b *testing.B) {
			g, err := schema.Compile(text, schema.Options{Formats: true}, grammar.DefaultLimits())
			require.NoError(b, err)
			e := startMini(b)
			rate := func(g *grammar.Grammar, seed uint64) float64 {
				r := bound(g, seed)
				r.MaxTokens, r.Sampling.Temp, r.IgnoreEOG = most, 0.8, g == nil
				u := collect(b, begin(b, e, r)).usage
				require.Equal(b, most, u.Generated)
				return float64(u.Generated-1) / u.Decode.Seconds()
			}
			var ratios, rates []float64
			for b.Loop() {
				seed := uint64(len(ratios))
				free := rate(nil, seed)
				rates = append(rates, rate(g, seed))
				ratios = append(ratios, rates[seed]/free)
			}
			slices.Sort(ratios)
			slices.Sort(rates)
			b.ReportMetric(ratios[len(ratios)/2], "with/without")
			b.ReportMetric(rates[len(rates)/2], "tokens/s")
		})
	}
}
