package token

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dlclark/regexp2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	gpt2Pattern  = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`
	contractions = `'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]`
	blanks       = `|\s*[\r\n]+|\s+(?!\S)|\s+`
	letterRun    = `|[^\r\n\p{L}\p{N}]?\p{L}+`
	casedWords   = `[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))*((?=[\p{L}])([^A-Z]))+(?:%[1]s)?|` +
		`[^\r\n\p{L}\p{N}]?((?=[\p{L}])([^a-z]))+((?=[\p{L}])([^A-Z]))*(?:%[1]s)?`
	oneCase = `[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:` + contractions + `)?`
	marks   = `[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~]`
	han     = `\u4E00-\u9FFF\u3400-\u4DBF\uF900-\uFAFF` // as far as the alphabet below goes
)

var (
	llama3Pattern = contractions + letterRun + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks
	qwen2Pattern  = contractions + letterRun + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks
	gpt4oPattern  = fmt.Sprintf(casedWords, contractions) + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks
	digitGroups   = `\P{N}*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N}))`
	deepseek3     = marks + `[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*` + blanks
)

// published are the expressions of the pre-tokenizers, one after another, as llama.cpp reads them: it takes all
// letters for upper and lower case alike, and has code of its own for digit groups and Kimi.
var published = map[string][]string{
	"gpt-2":      {gpt2Pattern},
	"llama-bpe":  {llama3Pattern},
	"qwen2":      {qwen2Pattern},
	"starcoder":  {`\p{N}`, gpt2Pattern},
	"qwen35":     {contractions + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + blanks},
	"ufakzeka":   {`[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks},
	"seed-coder": {contractions + letterRun + `|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+` + blanks},
	"minicpm5":   {`\p{N}{1,3}`, contractions + letterRun + `|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks},
	"laguna":     {`[^\n]+|[\n]+`, qwen2Pattern},
	"jais-2": {contractions + letterRun + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)` +
		`|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`},
	"exaone-moe": {contractions + `|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?` +
		`|\s*[\r\n]|\s+(?!\S)|\s+`},
	"deepseek-v3": {`\p{N}{1,3}`, `[一-龥\u3040-ゟ゠-ヿ]+`, deepseek3},
	"spark2_5": {`\p{N}{1,3}`, `[一-龥\u3040-ゟ゠-ヿ]+`, marks +
		`[A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`, `\p{N}`},
	"youtu": {`[가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥\u3040-ゟ゠-ヿ]+`,
		oneCase + `|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks},
	"deepseek-coder": {`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, `[一-龥\u0800-一가-\uD7FF-[\s]]+`, `\p{N}`},
	"deepseek-llm": {`[\r\n]`, `\s?[\p{Lu}\p{Ll}\p{Lt}]+`, /* for the alphabet below the same as its ranges */
		`\s?[!-/:-~！-／：-～‘-‟、-。]+`, `\s+$`, `[一-龥\u0800-一가-\uD7FF-[\s]]+`, `\p{N}+`},
	"falcon":  {`[\p{P}\$\+<=>\^~\|` + "`" + `]+`, gpt2Pattern, `[0-9][0-9][0-9]`},
	"default": {`[\p{P}\$\+<=>\^~\|]+`, gpt2Pattern, `\p{N}+`, `[0-9][0-9][0-9]`},
	"bloom":   {` ?[^(\s|.,!?…。，、।۔،)]+`},
	"viking":  {` ?[^(\s|.,!?…。，、।۔،)]+`, `\p{N}`},
	"tekken": {strings.ReplaceAll(fmt.Sprintf(casedWords, contractions), `(?:`+contractions+`)?`, ``) +
		`|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks},
	"gpt-4o":                  {gpt4oPattern},
	"granite-embed-multi-97m": {strings.ReplaceAll(gpt4oPattern, `(?=[\p{L}])`, `(?=[\p{L}\p{M}])`)},
	"tiny_aya":                {digitGroups, oneCase + `|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*` + blanks},
	"superbpe":                {`\p{N}+`, `(?=([0-9]{3})+(?![0-9]))`},
	"afmoe":                   {digitGroups, `[一-\u9FFF\u3400-\u4DBF\u8C48-\uFAFF\u3040-ヿ･-ﾟ\u2F00-\u2FDF\u0E40-\u0E7F가-\uD7AFᄀ-ᇿ]+`, deepseek3},
	"chameleon": {`<sentinel:[0-9]+>`, `(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z`, `([\t\n]|    |  )`, `\p{N}`,
		`[\p{P}!-/:-@\[-` + "`" + `{-~]`, gpt2Pattern},
	"kimi-k2": {`[` + han + `]+|[^\r\n\p{L}\p{N}]?[\p{L}-[` + han + `]]+(?:` + contractions + `)?|\p{N}{1,3}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*` + blanks},
}

// TestEveryRuleHasItsExpression: a name without one shares its rules with a name that has one.
func TestEveryRuleHasItsExpression(t *testing.T) {
	table := preTokenizers()
	for name := range published {
		require.Contains(t, table, name)
	}
	require.Len(t, published, 28, "one for each list of rules in preTokenizers")
}

// byExpression cuts text with regular expressions, and returns the ends of its words.
func byExpression(t require.TestingT, expressions []*regexp2.Regexp, text string) []int {
	pieces := []string{text}
	for _, re := range expressions {
		var next []string
		for _, p := range pieces {
			runes, from := []rune(p), 0
			m, err := re.FindRunesMatch(runes)
			for ; m != nil; m, err = re.FindNextMatch(m) {
				next = append(next, string(runes[from:m.Index]), m.String())
				from = m.Index + m.Length
			}
			require.NoError(t, err)
			next = append(next, string(runes[from:]))
		}
		pieces = next
	}
	var ends []int
	at := 0
	for _, p := range pieces {
		if at += len(p); p != "" {
			ends = append(ends, at)
		}
	}
	return ends
}

// nastyParts have what the expressions distinguish, and what programs get wrong.
var nastyParts = []string{
	"a", "b", "s", "t", "l", "ll", "re", "VE", "d", "m", "A", "Z", "É", "é", "ß", "ǅ", "ʰ", "א", "中", "文", "の", "カ", "ｶ", "한", "ㄱ",
	"ㄅ", "ก", "เ", "\u0301", "\u094d", "हि", "1", "2", "0", "333", "12345", "٣", "Ⅷ", "½", "²", "'", "'s", "'LL", "’", " ", "  ",
	"    ", "\t", "\n", "\n\n", "\r\n", "\r", "\v", "\f", "\x1c", "\u0085", "\u00a0", "\u2003", "\u2028", "\u3000", ".", ",", "!", "?",
	"-", "/", "//", "(", ")", "[", "|", "~", "`", "$", "+", "<", "=", "^", "_", "…", "。", "、", "！", "“", "„", "〜", "∑", "€", "😀", "\x00",
	"\x01", "\u200d", "\ufeff", "\ufffd", "\ue000", "\U0010ffff", "\u0378", "<sentinel:12>", "IMGIMGABZ", "IMGIMGAAAAAZ", "IMGIMG", "x'",
}

func nastyText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(nastyParts), 0, 24).Draw(t, "parts"), "")
	})
}

// TestRulesAreTheExpressions compares every splitter with the regular expressions that it stands for.
func TestRulesAreTheExpressions(t *testing.T) {
	table, known := newClasses(), preTokenizers()
	for name, patterns := range published {
		t.Run(name, func(t *testing.T) {
			var expressions []*regexp2.Regexp
			for _, p := range patterns {
				expressions = append(expressions, regexp2.MustCompile(p, regexp2.None))
			}
			rapid.Check(t, func(t *rapid.T) {
				text := nastyText().Draw(t, "text")
				got := split(known[name].rules, chars{text: text, table: table}, new(scratch))
				want := byExpression(t, expressions, text)
				if text == "" {
					got = got[:0]
				}
				require.Equal(t, shown(text, want), shown(text, got), "%q", text)
			})
		})
	}
}

// shown returns the words as text, for a failure that can be read.
func shown(text string, ends []int) (words []string) {
	from := 0
	for _, end := range ends {
		words, from = append(words, fmt.Sprintf("%q", text[from:end])), end
	}
	return words
}

// TestRulesCoverText: words lie behind each other, none is empty, the last ends with the text.
func TestRulesCoverText(t *testing.T) {
	table, known := newClasses(), preTokenizers()
	names := make([]string, 0, len(known))
	for name := range known {
		names = append(names, name)
	}
	slices.Sort(names)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(names).Draw(t, "name")
		text := string(sanitize(nil, string(rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "bytes")))) + nastyText().Draw(t, "text")
		ends := split(known[name].rules, chars{text: text, table: table}, new(scratch))
		require.IsIncreasing(t, append([]int{0}, ends...))
		require.Equal(t, len(text), ends[len(ends)-1])
	})
}
