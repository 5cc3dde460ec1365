package schema

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/stages/grammar"
)

// hostileCase is a schema made to cost much, and what the error says of it; "": it is cheap after all.
type hostileCase struct{ name, schema, want string }

// repeated are texts with commas between.
func repeated(n int, f func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

const (
	tooManySteps  = "too many steps to compile"
	tooManyStates = "too many states"
	tooManyNodes  = "needs more than 70000 nodes"
	multiply      = "its alternatives multiply to more than 200"
)

func hostile() []hostileCase {
	return slices.Concat(hostileAlternatives(), hostileReferences(), hostileBounds(), hostileTexts(), hostileObjects())
}

func hostileAlternatives() []hostileCase {
	pairs := repeated(30, func(i int) string {
		return fmt.Sprintf(`{"anyOf":[{"properties":{"a%d":{"type":"string"}}},{"required":["b%d"]}]}`, i, i)
	})
	oneOf := repeated(150, func(i int) string {
		return fmt.Sprintf(`{"properties":{"p%d":{"type":"string"},"q":{"minimum":%d}}}`, i, i)
	})
	many := func(keyword, schema string, n int) string {
		return `{"` + keyword + `":[` + repeated(n, func(i int) string { return strings.ReplaceAll(schema, "%d", fmt.Sprint(i)) }) + `]}`
	}
	words := func(n int) string {
		return `{"enum":[` + repeated(n, func(i int) string { return fmt.Sprintf(`"%d"`, i) }) + `]}`
	}
	nested := strings.Repeat(`{"anyOf":[{"required":["a"]},{"allOf":[`, 70) + `{}` + strings.Repeat(`]}]}`, 70)
	return []hostileCase{
		{"alternatives that multiply", `{"allOf":[` + pairs + `]}`, multiply},
		{"one of many", `{"oneOf":[` + oneOf + `]}`, tooManySteps},
		{"one of nothings", many("oneOf", "false", 40_000), tooManySteps},
		{"one of nulls", many("oneOf", `{"type":"null"}`, 15_000), tooManySteps},
		{"any of words", many("anyOf", `{"const":"%d"}`, 15_000), tooManySteps},
		{"any of fewer words", many("anyOf", `{"const":"%d"}`, 5000), ""},
		{"one of words", many("oneOf", `{"const":"%d","title":"x"}`, 5000), ""},
		{"any of lengths", many("anyOf", `{"type":"string","minLength":%d,"maxLength":9000}`, 4000), multiply},
		{"any of arrays", many("anyOf", `{"items":{"const":%d}}`, 8000), "alternatives"},
		{"all of arrays", many("allOf", `{"items":{"minLength":%d}}`, 8000), tooManySteps},
		{"all of objects", many("allOf", `{"properties":{"a":{"minLength":%d}}}`, 6000), tooManySteps},
		{"all of words", `{"allOf":[` + repeated(2000, func(int) string { return `{"$ref":"#/$defs/w"}` }) +
			`],"$defs":{"w":` + words(10_000) + `}}`, tooManySteps},
		{"words and words", `{"allOf":[` + words(25_000) + `,` + words(25_000) + `]}`, tooManySteps},
		{"fewer words and words", `{"allOf":[` + words(8000) + `,` + words(8000) + `]}`, ""},
		{"words but for words", `{"allOf":[` + words(25_000) + `],"not":` + words(25_000) + `}`, tooManyStates},
		{"an enormous enum", words(80_000), tooManySteps},
		{"an enum of lists", `{"enum":[` + repeated(40_000, func(int) string { return `[]` }) + `]}`, "alternatives"},
		{"an enum of nulls", `{"enum":[` + repeated(50_000, func(int) string { return `null` }) + `]}`, ""},
		{"alternatives in each other", nested, ""},
		{"nots in each other", strings.Repeat(`{"not":{"properties":{"a":`, 90) + `{}` + strings.Repeat(`}}}`, 90), ""},
	}
}

func hostileReferences() []hostileCase {
	doubling := repeated(60, func(i int) string {
		return fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"allOf":[{"$ref":"#/$defs/d%d"},{"required":["k%d"]}]}]}`, i, i+1, i+1, i)
	})
	chain := repeated(5000, func(i int) string { return fmt.Sprintf(`"d%d":{"$ref":"#/$defs/d%d"}`, i, i+1) })
	within := repeated(3000, func(i int) string {
		return fmt.Sprintf(`"d%d":{"required":["a"],"properties":{"a":{"$ref":"#/$defs/d%d"}}}`, i, i+1)
	})
	looking := repeated(4000, func(i int) string {
		return fmt.Sprintf(`{"$ref":"#/$defs/a","unevaluatedProperties":{"minimum":%d}}`, i)
	})
	looked := repeated(4000, func(int) string { return `{"properties":{"a":{}}}` })
	long := strings.Repeat("x", 100_000)
	return []hostileCase{
		{"references that double", `{"$ref":"#/$defs/d0","$defs":{` + doubling + `,"d60":{"type":"object"}}}`, ""},
		{"references that double, and differ", `{"$ref":"#/$defs/d0","$defs":{` + doubling +
			`,"d60":{"properties":{"a":{}},"maxProperties":9}}}`, multiply},
		{"references in a row", `{"$ref":"#/$defs/d0","$defs":{` + chain + `,"d5000":{"type":"object"}}}`,
			"more than 300 schemas that lead to each other"},
		{"references below each other", `{"$ref":"#/$defs/d0","$defs":{` + within + `,"d3000":{"type":"object"}}}`, tooManyNodes},
		{"a loop", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"$ref":"#/$defs/a"}}}`,
			"leads back to itself"},
		{"an object within itself", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","required":["a"],` +
			`"properties":{"a":{"$ref":"#/$defs/a"}}}}}`, "no text satisfies it"},
		{"looking at the same often", `{"anyOf":[` + looking + `],"$defs":{"a":{"allOf":[` + looked + `]}}}`, tooManySteps},
		{"long addresses", `{"$id":"http://a/` + long + `/","$defs":{` +
			repeated(5000, func(i int) string { return fmt.Sprintf(`"%d":{"$id":"b%d"}`, i, i) }) + `}}`, "an address of more than"},
		{"addresses below each other", strings.Repeat(`{"$id":"abcdefghijklmnopqrstuvwxyz/","items":`, 200) + `{}` +
			strings.Repeat(`}`, 200), "an address of more than"},
		{"a fault behind long keys", `{"$defs":{"` + long + `":[` + repeated(30_000, func(int) string { return `0` }) +
			`]},"items":{"$ref":"#/none"}}`, `there is no "none"`},
		{"a long reference", `{"$ref":"#/` + long + `"}`, "on the way"},
		{"deep", strings.Repeat(`{"items":`, 20_000) + `{}` + strings.Repeat(`}`, 20_000), "more than 300 arrays and objects within"},
		{"wide", `{"$defs":{"a":[` + repeated(200_000, func(int) string { return `0` }) + `]}}`, "more than 100000 values"},
		{"wide and empty", `{"$defs":{"a":[` + repeated(90_000, func(int) string { return `{}` }) + `]}}`, ""},
	}
}

func hostileBounds() []hostileCase {
	items := repeated(4000, func(int) string { return `{"maximum":7}` })
	return []hostileCase{
		{"many items", `{"type":"array","items":{"type":"string"},"minItems":1000000000}`, "minItems or maxItems above 5000"},
		{"at most many items", `{"type":"array","maxItems":1000000000}`, "minItems or maxItems above 5000"},
		{"items of items", `{"type":"array","maxItems":4000,"prefixItems":[` + items + `]}`, tooManyNodes},
		{"tables of tables", `{"type":"array","maxItems":300,"items":{"type":"array","maxItems":300,"items":{"type":"array","maxItems":300}}}`, ""},
		{"contains", `{"type":"array","contains":{"const":1},"minContains":3000,"maxItems":4000}`, "times minContains or maxContains above 5000"},
		{"lengths", `{"type":"string","pattern":"^[a-z]*$","maxLength":2000000000}`, tooManyStates},
		{"long strings", `{"type":"string","minLength":1000000000}`, "minLength above 1048576"},
		{"bounds that no machine holds", `{"minLength":1e400}`, "minLength: want a whole number"},
		{"digits", `{"multipleOf":0.00000000000000000000000000000001234567,"minimum":-1e400}`, "as its digits"},
		{"a long number", `{"minimum":` + strings.Repeat("9", 100_000) + `}`, "a number of 100000 digits"},
		{"many bounds", `{"allOf":[` + repeated(300, func(i int) string { return fmt.Sprintf(`{"minimum":0.%d1,"maximum":%d0000.1}`, i+1, i+1) }) + `]}`,
			tooManySteps},
		{"keys of an object", `{"type":"object","minProperties":1000000000}`, "minProperties or maxProperties above 5000"},
		{"counted keys", `{"type":"object","minProperties":5000,"maxProperties":5000}`, ""},
	}
}

func hostileTexts() []hostileCase {
	lengths := repeated(300, func(i int) string { return fmt.Sprintf(`{"pattern":"^(a|b)*a.{%d}$"}`, i%14) })
	pattern := func(expr string) string { return `{"type":"string","pattern":` + quote(expr) + `}` }
	some := func(n int, f string) string {
		return repeated(n, func(i int) string { return fmt.Sprintf(`{"type":"string","pattern":"`+f+`"}`, i) })
	}
	return []hostileCase{
		{"an expression", pattern(`(a|b)*a(a|b){40}`), tooManyStates},
		{"expressions", `{"allOf":[` + lengths + `]}`, tooManySteps},
		{"nested repeats", pattern(`((((x{1,30}){1,30})y){1,30}){1,30}`), "invalid repeat count"},
		{"nested stars", pattern(`^(((a*)*)*)*$`), ""},
		{"stars in a row", pattern(`^` + strings.Repeat(`(a*)*`, 300) + `$`), ""},
		{"repeats in a row", pattern(strings.Repeat(`(?:ab){1000}`, 1000)), tooManySteps},
		{"optional repeats in a row", pattern(strings.Repeat(`a{0,1000}`, 1000)), tooManySteps},
		{"more repeats in a row", pattern(strings.Repeat(`a{0,1000}`, 5000)), "expression too large"},
		{"classes", pattern(`^(\p{L}{1,200}\p{N}{1,200}\p{P}{1,200})$`), ""},
		{"large classes, often", pattern(strings.Repeat(`\p{L}{1000}`, 28)), tooManySteps},
		{"many classes", pattern(`[` + strings.Repeat(`\p{L}`, 9000) + `]`), tooManySteps},
		{"classes in any case", pattern(`(?i)` + strings.Repeat("[B-\U0001E942]", 4000)), tooManySteps},
		{"deep groups", pattern(strings.Repeat(`(`, 900) + strings.Repeat(`)`, 900)), ""},
		{"deeper groups", pattern(strings.Repeat(`(`, 9000) + strings.Repeat(`)`, 9000)), "nests too deeply"},
		{"a long expression", pattern(strings.Repeat(`a`, 70_000)), "an expression of 70000 bytes"},
		{"letters", pattern(letters(700)), ""},
		{"letters and letters", `{"allOf":[` + pattern(letters(700)) + `,` + pattern(`.*[`+letters(600)+`]`) + `]}`, ""},
		{"any of expressions", `{"anyOf":[` + some(400, `a.*b%d`) + `]}`, tooManySteps},
		{"any of fewer expressions", `{"anyOf":[` + some(300, `a.*b%d`) + `]}`, multiply},
		{"any of some expressions", `{"anyOf":[` + some(190, `a.*b%d`) + `]}`, ""},
		{"large", `{"enum":["` + strings.Repeat("x", 1<<20) + `"]}`, "1048589 bytes, want at most 1048576"},
	}
}

// letters are so many alternatives that begin with different letters, and lead to different places.
func letters(n int) string {
	var b strings.Builder
	for i := range n {
		if b.WriteRune(rune(0x4E00 + 2*i)); i%2 == 1 {
			b.WriteByte('|')
		}
	}
	return b.String()
}

func hostileObjects() []hostileCase {
	patterns := repeated(12, func(i int) string { return fmt.Sprintf(`"[%c-z].*[0-9]{%d}":{"type":"string"}`, 'a'+i, i+1) })
	names := repeated(3000, func(i int) string { return fmt.Sprintf(`"key_number_%d":{"type":"string","maxLength":%d}`, i, i+1) })
	keys := func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf(`"k%d"`, i) }) }
	free := `{"type":"object","required":[` + keys(30) + `]}`
	base := `"properties":{` + repeated(2000, func(i int) string { return fmt.Sprintf(`"k%d":{}`, i) }) + `}`
	many := repeated(200, func(i int) string { return fmt.Sprintf(`"x%d":{}`, i) })
	return []hostileCase{
		{"patterns of keys", `{"patternProperties":{` + patterns + `}}`, "more than 6 patternProperties"},
		{"as many patterns as keys", `{"required":[` + keys(3000) + `],"patternProperties":{` + many + `}}`, tooManySteps},
		{"keys", `{"properties":{` + names + `},"minProperties":2000}`, "too many"},
		{"required in any order", free, ""},
		{"required, and counted", `{"type":"object","required":["a","b","c","d","e"],"minProperties":4000}`, tooManyNodes},
		{"keys of alternatives", `{` + base + `,"anyOf":[` +
			repeated(200, func(i int) string { return fmt.Sprintf(`{"required":["k%d"]}`, i) }) + `]}`, tooManySteps},
		{"dependent keys", `{"dependentRequired":{` +
			repeated(40, func(i int) string { return fmt.Sprintf(`"a%d":["b%d"]`, i, i) }) + `}}`, multiply},
		{"names of names", `{"propertyNames":{"anyOf":[` + repeated(300, func(i int) string {
			return fmt.Sprintf(`{"pattern":"^a{%d}b*$"}`, i)
		}) + `]}}`, tooManySteps},
	}
}

// TestHostile: each ends in an error that says what was too large, or costs little: never more than 64 MB from the
// text to the first mask and some text, all that was given back on the way counted, too. What it costs is counted, so
// that it is so on every machine; the clock is only looked at lest a test hang.
func TestHostile(t *testing.T) {
	const most, hang = 64 << 20, 20 * time.Second
	trie := syllables()
	for _, c := range hostile() {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			err := used(c.schema, trie)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			grown := after.TotalAlloc - before.TotalAlloc
			t.Logf("%v, %d MB allocated in all, %.200v", took.Round(time.Millisecond), grown>>20, err)
			require.Less(t, took, hang)
			require.Less(t, grown, uint64(most))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			require.Less(t, len(err.Error()), 1000)
		})
	}
}

// used compiles a schema, and goes as far as a text that begins under it.
func used(text string, trie *grammar.Trie) error {
	g, err := Compile(text, Options{}, grammar.DefaultLimits())
	if err != nil {
		return err
	}
	f, err := grammar.Compile(g, grammar.DefaultLimits())
	if err != nil {
		return err
	}
	p := f.Program()
	m, k, mask := p.Matcher(), p.Masker(trie), make([]uint64, trie.Words())
	for _, next := range []string{"", `{"`, `a`, `":[[`, `1,`, `"xab`} {
		if n, err := m.Read([]byte(next)); err != nil || n < len(next) {
			return err
		}
		if err := k.Mask(m, mask); err != nil {
			return err
		}
	}
	return nil
}

// syllables is a vocabulary of some 20 000 tokens: bytes, and texts of up to three letters, with a space, a quote or
// a digit around them.
func syllables() *grammar.Trie {
	var all [][]byte
	for b := range 256 {
		all = append(all, []byte{byte(b)})
	}
	const begins, letters, ends = " \"0_{\\", "aeioulnrst", "dxy1\",:é"
	for _, a := range begins {
		for _, b := range letters {
			for _, c := range letters {
				for _, d := range ends {
					all = append(all, []byte(string(a)+string(b)+string(c)), []byte(string(b)+string(c)+string(d)),
						[]byte(string(a)+string(b)+string(c)+string(d)), []byte(string(b)+string(c)+string(b)+string(d)))
				}
			}
		}
	}
	return grammar.NewTrie(len(all), func(id int32) []byte { return all[id] }, nil)
}

func TestErrorsNameThePlace(t *testing.T) {
	for text, want := range map[string]string{
		`{"properties":{"a/b":{"type":"array","uniqueItems":true}}}`: "schema: #/properties/a~1b: uniqueItems is not " +
			"supported, since no grammar knows what an array held before: leave it out, and drop what is there twice",
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
	for _, c := range hostile() {
		if len(c.schema) < 3000 {
			f.Add(c.schema, `{"a":1}`)
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
	limits := grammar.Limits{Steps: 1e5, States: 1000, Nodes: 10_000, Live: 4 << 20, Mask: 1e5}
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
