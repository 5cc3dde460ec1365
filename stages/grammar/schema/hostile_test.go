package schema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/grammar"
)

// hostile are schemas made to cost much.
func hostile() map[string]string {
	repeat := func(n int, f func(i int) string) string {
		var parts []string
		for i := range n {
			parts = append(parts, f(i))
		}
		return strings.Join(parts, ",")
	}
	pairs := repeat(30, func(i int) string {
		return fmt.Sprintf(`{"anyOf":[{"properties":{"a%d":{"type":"string"}}},{"required":["b%d"]}]}`, i, i)
	})
	doubling := repeat(60, func(i int) string {
		return fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"allOf":[{"$ref":"#/$defs/d%d"},{"required":["k%d"]}]}]}`, i, i+1, i+1, i)
	})
	chain := repeat(5000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) })
	patterns := repeat(12, func(i int) string { return fmt.Sprintf(`"[%c-z].*[0-9]{%d}":{"type":"string"}`, 'a'+i, i+1) })
	names := repeat(3000, func(i int) string { return fmt.Sprintf(`"key_number_%d":{"type":"string","maxLength":%d}`, i, i+1) })
	oneOf := repeat(150, func(i int) string {
		return fmt.Sprintf(`{"properties":{"p%d":{"type":"string"},"q":{"minimum":%d}}}`, i, i)
	})
	lengths := repeat(300, func(i int) string { return fmt.Sprintf(`{"pattern":"^(a|b)*a.{%d}$"}`, i%14) })
	return map[string]string{
		"alternatives that multiply": `{"allOf":[` + pairs + `]}`,
		"references that double":     `{"$ref":"#/$defs/d0","$defs":{` + doubling + `,"d60":{"type":"object"}}}`,
		"references in a row":        `{"$ref":"#/$defs/d0","$defs":{` + chain + `,"d5000":{"type":"object"}}}`,
		"a loop":                     `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`,
		"an object within itself":    `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/a"}}}}}`,
		"deep":                       strings.Repeat(`{"items":`, 20_000) + `{}` + strings.Repeat(`}`, 20_000),
		"many items":                 `{"type":"array","items":{"type":"string"},"minItems":1000000000}`,
		"items of items":             `{"type":"array","maxItems":4000,"prefixItems":[` + repeat(4000, func(int) string { return `{"maximum":7}` }) + `]}`,
		"an expression":              `{"type":"string","pattern":"(a|b)*a(a|b){40}"}`,
		"expressions":                `{"allOf":[` + lengths + `]}`,
		"nested repeats":             `{"type":"string","pattern":"((((x{1,30}){1,30})y){1,30}){1,30}"}`,
		"patterns of keys":           `{"patternProperties":{` + patterns + `}}`,
		"classes":                    `{"type":"string","pattern":"^(\\p{L}{1,200}\\p{N}{1,200}\\p{P}{1,200})$"}`,
		"keys":                       `{"properties":{` + names + `},"minProperties":2000}`,
		"one of many":                `{"oneOf":[` + oneOf + `]}`,
		"contains":                   `{"type":"array","contains":{"const":1},"minContains":3000,"maxItems":4000}`,
		"lengths":                    `{"type":"string","pattern":"^[a-z]*$","maxLength":2000000000}`,
		"digits":                     `{"multipleOf":0.00000000000000000000000000000001234567,"minimum":-1e400}`,
		"large":                      `{"enum":["` + strings.Repeat("x", 1<<20) + `"]}`,
	}
}

// TestHostile: each is refused, or costs little. The limits are counts; this test is the one that looks at the clock,
// with room for a slow machine.
func TestHostile(t *testing.T) {
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			g, err := Compile(text, Options{}, grammar.DefaultLimits())
			if err == nil {
				var p *grammar.Program
				if p, err = grammar.Compile(g, grammar.DefaultLimits()); err == nil {
					_, _, err = p.Matcher().Check(`{"a":[[1,"x"],{}]}`)
				}
			}
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			grown := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%v, %d MB allocated in all, %.200v", took.Round(time.Millisecond), grown, err)
			require.Less(t, took, time.Second)
		})
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for text, want := range map[string]string{
		`{"properties":{"a/b":{"type":"array","uniqueItems":true}}}`: "schema: #/properties/a~1b: uniqueItems is not supported",
		`{"type":"strin"}`:                       `schema: #: type: "strin" is none: want null, boolean, number, integer, string, array or object`,
		`{"items":{"pattern":"(?=a)"}}`:          `schema: #/items: pattern: "(?=a)": look-around ((?=) is not supported`,
		`{"items":[{"minLength":-1}]}`:           `schema: #/items/0: minLength: want a whole number of at least 0`,
		`{"$ref":"#/x"}`:                         `schema: #: $ref: $ref "#/x": there is no "x" on the way`,
		`{"$ref":"http://a.b/c"}`:                `schema: #: $ref: $ref "http://a.b/c" leads outside of the schema: write what it means under $defs`,
		`{"$dynamicRef":"#a"}`:                   `schema: #: $dynamicRef: it is not supported`,
		`{"not":{"additionalProperties":false}}`: `schema: #: not: not (or oneOf, or if) of patternProperties, additionalProperties or propertyNames`,
		`{`:                                      `schema: not valid JSON: unexpected EOF`,
		`[]`:                                     `schema: #: a schema is an object, true or false`,
	} {
		_, err := Compile(text, Options{}, grammar.DefaultLimits())
		require.EqualError(t, err, want, text)
	}
}

func FuzzSchema(f *testing.F) {
	for _, text := range hostile() {
		if len(text) < 3000 {
			f.Add(text, `{"a":1}`)
		}
	}
	for _, text := range []string{
		`{"type":["string","integer"],"minLength":2,"minimum":-1.5e1,"multipleOf":0.5}`,
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a","z"],"additionalProperties":{"enum":[1,null,"x",[2],{"k":true}]}}`,
		`{"oneOf":[{"required":["a"]},{"properties":{"b":{"const":1}},"required":["b"]}],"maxProperties":2}`,
		`{"prefixItems":[{"type":"null"}],"items":false,"contains":{"type":"number"},"maxContains":2}`,
		`{"if":{"properties":{"a":{"const":1}}},"then":{"required":["b"]},"else":{"not":{"required":["c"]}}}`,
		`{"patternProperties":{"^x\\u0041[^]":{"format":"date"}},"propertyNames":{"maxLength":5},"dependencies":{"a":["b"]}}`,
	} {
		f.Add(text, `{"a":[1,"x"]}`)
	}
	limits := grammar.Limits{Steps: 1e5, States: 1000, Nodes: 10_000, Live: 10_000}
	f.Fuzz(func(t *testing.T, text, instance string) {
		began := time.Now()
		defer func() { require.Less(t, time.Since(began), 5*time.Second) }()
		g, err := Compile(text, Options{Formats: true}, limits)
		if err != nil {
			return
		}
		p, err := grammar.Compile(g, limits)
		if err != nil || len(instance) > 300 {
			return
		}
		_, _, _ = p.Matcher().Check(instance)
	})
}
