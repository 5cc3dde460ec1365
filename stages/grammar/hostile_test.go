package grammar

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hostileGrammars are made to cost much, by what the error says; "": they are cheap after all. Texts follow them.
func hostileGrammars() map[string][3]string {
	many := func(n int, f func(i int) string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = f(i)
		}
		return strings.Join(parts, " | ")
	}
	var chain, rules strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&chain, "r%d ::= r%d r%d | \"a\"\n", i, i+1, i+1)
		fmt.Fprintf(&rules, "s%d ::= [a-z]* \"%d\"\n", i, i)
	}
	return map[string][3]string{
		"nothing, often":         {`root ::= (((("" {20000}){20000}){20000}){20000}) "a"`, "aaa", "steps to compile"},
		"nothing in groups":      {`root ::= ` + strings.Repeat("(", 199) + `""` + strings.Repeat("){20000}", 199), "", "steps to compile"},
		"repeats of repeats":     {`root ::= (((("a"{200}){200}){200}){200})`, "a", "70000 nodes"},
		"optional repeats":       {`root ::= "a"{0,20000} "b"{0,20000} "c"{0,20000}`, "aab", "70000 nodes"},
		"fewer optional repeats": {`root ::= "a"{0,9000} "b"{0,9000}`, "aab", ""},
		"places that double":     {`root ::= [ab]* "a" [ab]{20000}`, strings.Repeat("ab", 4000), "bytes for the places"},
		"any place":              {`root ::= (.* "a" .{0,3000})`, strings.Repeat("ab", 1000), "needs more than"},
		"many ways":              {"root ::= " + many(5000, func(i int) string { return fmt.Sprintf("s%d", i) }) + "\n" + rules.String(), "abcabc", "needs more than"},
		"rules that double":      {"root ::= r0\n" + chain.String() + "r5000 ::= \"a\"", strings.Repeat("a", 300), "needs more than"},
		"ways that cross":        {"root ::= s\ns ::= \"a\" s s | \"a\" s \"b\" | \"a\" | \"\"", strings.Repeat("a", 2000), "steps to find what may follow"},
		"brackets in each other": {"root ::= x | y | z\nx ::= \"(\" root \")\" | \"a\"\ny ::= \"(\" root \"]\" | \"a\"\n" +
			"z ::= \"(\" root \"}\" | \"(\" root root \"}\" | \"a\"", strings.Repeat("(", 300), ""},
		"a large class": {`root ::= [` + large(20_000) + `]+`, "", "70000 nodes"},
		"groups":        {`root ::= ` + strings.Repeat("(", 1000) + strings.Repeat(")", 1000), "", "more than 200 deep"},
	}
}

// large is a class of so many characters that do not touch.
func large(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteRune(rune(0x3400 + 2*i%0x6000 + i/0x3000*0x10000))
	}
	return b.String()
}

// TestHostileGrammars: each is refused, or its texts are, for what was too large, or it costs little: never more than
// 64 MB, all that was given back counted, too.
func TestHostileGrammars(t *testing.T) {
	const most, hang = 64 << 20, 20 * time.Second
	var words [][]byte
	for _, a := range "ab([{\"x\n" {
		for _, b := range "ab()]}\"1 é" {
			for _, c := range "abc)]}0\\" {
				words = append(words, []byte(string(a)), []byte(string(a)+string(b)), []byte(string(a)+string(b)+string(c)))
			}
		}
	}
	trie := NewTrie(len(words), func(id int32) []byte { return words[id] }, nil)
	for name, c := range hostileGrammars() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			err := follow(c[0], c[1], trie)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			grown := after.TotalAlloc - before.TotalAlloc
			t.Logf("%v, %d MB allocated in all, %.200v", took.Round(time.Millisecond), grown>>20, err)
			require.Less(t, took, hang)
			require.Less(t, grown, uint64(most))
			if c[2] == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c[2])
		})
	}
}

// follow reads a text under a grammar, with a mask before each byte.
func follow(text, said string, trie *Trie) error {
	g, err := GBNF(text)
	if err != nil {
		return err
	}
	f, err := Compile(g, DefaultLimits())
	if err != nil {
		return err
	}
	p := f.Program()
	m, k, mask := p.Matcher(), p.Masker(trie), make([]uint64, trie.Words())
	for i := range said {
		if err := k.Mask(m, mask); err != nil {
			return err
		}
		if n, err := m.Read([]byte(said[i : i+1])); err != nil || n == 0 {
			return err
		}
	}
	return nil
}
