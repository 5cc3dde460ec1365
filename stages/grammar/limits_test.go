package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// dearGrammars are short, and their masks take long: a text can be read in very many ways, or by very many rules.
func dearGrammars() map[string]string {
	var rules []string
	var bodies strings.Builder
	for i := range 200 {
		rules = append(rules, fmt.Sprintf("r%d", i))
		fmt.Fprintf(&bodies, "\nr%d ::= [a-z ]{0,50}", i)
	}
	return map[string]string{
		"two of itself": "root ::= s\ns ::= [a-z ] s s | [a-z ]",
		"palindromes":   "root ::= s\ns ::= [a-z ] s [a-z ] | [a-z ]",
		"three rules":   "root ::= x\nx ::= [a-z ] y z | [a-z ]\ny ::= [a-z ] z x | [a-z ]\nz ::= [a-z ] x y | [a-z ]",
		"many rules":    "root ::= (" + strings.Join(rules, " | ") + ")*" + bodies.String(),
	}
}

// miniVocabulary is that of the embedded model.
func miniVocabulary(t *testing.T) (*token.Vocab, *Trie) {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	v, err := token.New(&f.Meta)
	require.NoError(t, err)
	return v, NewTrie(v.Size(), v.Piece, v.EOG())
}

// TestDearMasks: a mask that would take more steps than a mask may is an error, and no mask takes more.
func TestDearMasks(t *testing.T) {
	v, trie := miniVocabulary(t)
	limits := DefaultLimits()
	for name, text := range dearGrammars() {
		t.Run(name, func(t *testing.T) {
			p := compileGBNF(t, text)
			m, k, mask := p.Matcher(), p.Masker(trie), make([]uint64, trie.Words())
			r := rand.New(rand.NewPCG(1, 2))
			for range 20 {
				from := p.Steps()
				err := k.Mask(m, mask)
				require.Less(t, p.Steps()-from, limits.Mask+limits.Mask/10)
				if err != nil {
					require.ErrorAs(t, err, new(*TooLarge))
					require.ErrorContains(t, err, "steps to find what may follow at one place of a text")
					return
				}
				may := slices.DeleteFunc(ids(mask, trie.Size()), v.IsEOG)
				_, err = m.Read(v.Piece(may[r.IntN(len(may))]))
				require.NoError(t, err)
			}
			require.FailNow(t, "its masks are cheap")
		})
	}
}

// TestDearMasksOfManyTokens: what a mask may take grows with the vocabulary.
func TestDearMasksOfManyTokens(t *testing.T) {
	_, trie := vocabularies.get(t, "gpt-2")
	text := "root ::= a | b | c | d | e | f | g | h | i | j | k | l"
	for c := 'a'; c < 'm'; c++ {
		text += fmt.Sprintf("\n%c ::= [^\\n]* \"%c\"", c, c)
	}
	p := compileGBNF(t, text)
	require.NoError(t, p.Masker(trie).Mask(p.Matcher(), make([]uint64, trie.Words())))
	require.Greater(t, p.Steps(), DefaultLimits().Mask)
}

// TestStacksAreCounted: a stack of many frames takes as many steps as it takes to sort and to look up.
func TestStacksAreCounted(t *testing.T) {
	p := compileGBNF(t, `root ::= "a"`)
	var frames []frame
	for i := range int32(1000) {
		frames = append(frames, frame{1000 - i, i})
	}
	from := p.Steps()
	p.stackOf(frames)
	require.Greater(t, p.Steps()-from, 2000)
}

// TestPaused: what may follow is the same however often finding it was paused.
func TestPaused(t *testing.T) {
	v, trie := miniVocabulary(t)
	for name, text := range map[string]string{
		"two of itself": dearGrammars()["two of itself"],
		"a list":        `root ::= "[" (x ("," x)*)? "]"` + "\n" + `x ::= [a-z]+ | "\"" [^"\\]{0,30} "\"" | root | [0-9]*`,
	} {
		t.Run(name, func(t *testing.T) {
			whole, parts := compileGBNF(t, text), compileGBNF(t, text)
			m, k, want := whole.Matcher(), whole.Masker(trie), make([]uint64, trie.Words())
			pm, pk, got := parts.Matcher(), parts.Masker(trie), make([]uint64, trie.Words())
			pauses := 0
			persist := func(work func() error) error {
				for steps := 1; ; steps += steps/2 + 1 {
					asked := 0
					parts.Grant(steps, func() bool { asked++; return asked%3 != 0 })
					if err := work(); !errors.Is(err, ErrPaused) {
						return err
					}
					pauses++
				}
			}
			r := rand.New(rand.NewPCG(3, 4))
			for range 8 {
				err := k.Mask(m, want)
				require.Equal(t, err, persist(func() error { return pk.Mask(pm, got) }))
				if err != nil {
					break
				}
				require.Equal(t, want, got)
				may := slices.DeleteFunc(ids(want, trie.Size()), v.IsEOG)
				piece := v.Piece(may[r.IntN(len(may))])
				n, err := m.Read(piece)
				require.NoError(t, err)
				require.Equal(t, len(piece), n)
				require.NoError(t, persist(func() error {
					n, err := pm.Read(piece)
					piece = piece[n:]
					return err
				}))
				require.Empty(t, piece)
			}
			require.Greater(t, pauses, 20)
		})
	}
}
