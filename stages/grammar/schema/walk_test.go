package schema

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/grammar"
)

// TestWalksAreValid writes random texts under the real schemas, byte by byte, in the way of a model that knows nothing,
// and has them judged by a validator that we did not write.
func TestWalksAreValid(t *testing.T) {
	type realCase struct{ ID, Schema string }
	r := rand.New(rand.NewPCG(1, 2))
	judged, skipped := 0, 0
	for c := range testref.Cases[realCase](t, "refdata", "structured", "real-schemas.jsonl") {
		p, err := program(c.Schema, Options{Formats: true})
		if err != nil {
			continue
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(c.Schema))
		require.NoError(t, err)
		compiler := jsonschema.NewCompiler()
		require.NoError(t, compiler.AddResource("mem:schema.json", doc))
		judge, err := compiler.Compile("mem:schema.json")
		if err != nil {
			skipped++ // it wants a $schema that it has no copy of, or an $id that it can load
			continue
		}
		for range 4 {
			text, done := walk(p, r, 400)
			if !done {
				continue
			}
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			require.NoError(t, err, "%s: %s", c.ID, text)
			require.NoError(t, judge.Validate(value), "%s: %s\n%s", c.ID, c.Schema, text)
			judged++
		}
	}
	t.Log(judged, "texts judged,", skipped, "schemas without a judge")
	require.Greater(t, judged, 500)
}

// walk writes bytes that may follow, those that end something first once the text is long.
func walk(p *grammar.Program, r *rand.Rand, most int) (text string, done bool) {
	trie := grammar.NewTrie(256, func(id int32) []byte { return []byte{byte(id)} }, nil)
	m, k, mask := p.Matcher(), p.Masker(trie), make([]uint64, trie.Words())
	var out []byte
	for len(out) < 4*most {
		if m.Done() && (len(out) > most || r.IntN(2) == 0) {
			return string(out), true
		}
		if k.Mask(m, mask) != nil {
			return "", false
		}
		var may []byte
		for b := range 256 {
			if mask[b/64]>>(b%64)&1 == 1 && (b > ' ' || r.IntN(8) == 0) {
				may = append(may, byte(b))
			}
		}
		if len(may) == 0 {
			continue
		}
		b := may[r.IntN(len(may))]
		for _, end := range []byte(`"}]`) { // close what is open, one time of three, and always in the end
			if strings.IndexByte(string(may), end) >= 0 && (len(out) > most || r.IntN(3) == 0) {
				b = end
			}
		}
		_, _ = m.Read([]byte{b})
		out = append(out, b)
	}
	return "", false
}
