package speculate

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// followers is what NGram guesses, by looking at every place.
func followers(text []int32, n int) (out []int32, tokens int) {
	place, tokens := 0, shortest-1
	for at, tried := len(text)-2, 0; at > 0 && tried < mostTried; at-- {
		same := alike(text[:at+1], text)
		if same < shortest {
			continue
		}
		tried++
		if same > tokens {
			place, tokens = at, same
		}
	}
	if tokens < shortest {
		return nil, 0
	}
	all := slices.Clone(text)
	for i := range n {
		all = append(all, all[place+1+i])
	}
	return all[len(text):], tokens
}

// words draws a text of few different tokens, parts of which come again.
func words(t *rapid.T, most int) (text []int32) {
	kinds := rapid.Int32Range(1, 40).Draw(t, "kinds")
	for len(text) < most {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		if len(text) > 4 && rapid.Bool().Draw(t, "again") {
			from := rapid.IntRange(0, len(text)-1).Draw(t, "from")
			text = append(text, text[from:min(from+n, len(text))]...)
			continue
		}
		text = append(text, rapid.SliceOfN(rapid.Int32Range(0, kinds), n, n).Draw(t, "new")...)
	}
	return text[:most]
}

// However a text comes to it, an n-gram is the longest end of the text that was there before, where it was last.
func TestNGram(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := words(t, rapid.IntRange(1, 400).Draw(t, "most"))
		known := rapid.IntRange(1, len(text)).Draw(t, "known")
		g := NewNGram(text[:known], known)
		for known <= len(text) {
			n := rapid.IntRange(0, 9).Draw(t, "guesses")
			got, sure := g.Guess(text[:known], n, []int32{7})
			want, tokens := followers(text[:known], n)
			require.Equal(t, append([]int32{7}, want...), got, "of %v", text[:known])
			require.Equal(t, trust(tokens), sure)
			known += rapid.IntRange(1, 9).Draw(t, "more")
		}
	})
}

// A text that is longer than an index, and one that comes after a longer one, are as any.
func TestNGramForgets(t *testing.T) {
	line := func(from, n int32) (out []int32) {
		for i := range n {
			out = append(out, from+i)
		}
		return out
	}
	text := append(line(0, 50), line(1000, 3*mostPlaces)...)
	g := NewNGram(text, 10)
	require.Len(t, g.index.heads, mostPlaces)
	out, _ := g.Guess(append(text, 1000, 1001, 1002), 2, nil)
	require.Empty(t, out, "it lies too far back")
	near := int32(1000 + 3*mostPlaces - 40)
	out, sure := g.Guess(append(text, near, near+1, near+2, near+3), 2, nil)
	require.Equal(t, []int32{near + 4, near + 5}, out)
	require.Equal(t, Some, sure)
	out, _ = g.Guess([]int32{0, 1, 2, 0, 1}, 2, nil)
	require.Equal(t, []int32{2, 0}, out)
	out, _ = g.Guess([]int32{0, 1, 2, 0, 1, 5, 0, 1}, 2, nil)
	require.Equal(t, []int32{5, 0}, out, "the last place goes first")
}

// Where the answer is the prediction, all of it is guessed; where it leaves it, no more than what follows the place
// that it comes back to.
func TestPredicted(t *testing.T) {
	tests := []struct {
		name             string
		prediction, text []int32 // the prompt is 9, 9
		want             []int32
		sure             Trust
	}{
		{"it begins so", []int32{1, 2, 3, 4}, nil, []int32{1, 2, 3}, Told},
		{"and goes on", []int32{1, 2, 3, 4}, []int32{1, 2}, []int32{3, 4}, Told},
		{"to its end", []int32{1, 2, 3, 4}, []int32{1, 2, 3, 4}, nil, Scant},
		{"it left", []int32{1, 2, 3, 4}, []int32{1, 7}, nil, Scant},
		{"and came back", []int32{1, 2, 3, 4, 5}, []int32{1, 7, 3, 4}, []int32{5}, Scant},
		{"it skipped", []int32{1, 2, 3, 4, 5, 6}, []int32{4, 5}, []int32{6}, Scant},
		{"nothing is expected", nil, nil, nil, Scant},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := NewPredicted(test.prediction, 2, nil)
			text := append([]int32{9, 9}, test.text...)
			for n := 2; n < len(text); n++ {
				p.Guess(text[:n], 1, nil)
			}
			for range 2 {
				out, sure := p.Guess(text, 3, nil)
				require.Equal(t, test.want, out)
				require.Equal(t, test.sure, sure)
			}
			out, _ := p.Guess([]int32{9, 9}, 3, nil)
			require.ElementsMatch(t, test.prediction[:min(3, len(test.prediction))], out, "another answer")
		})
	}
}

// An answer that has a prediction with small changes is guessed nearly whole.
func TestPredictedEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var file []int32
		for i := range int32(300) {
			file = append(file, i)
		}
		answer, edits := slices.Clone(file), rapid.IntRange(0, 9).Draw(t, "edits")
		for range edits {
			at := rapid.IntRange(0, len(answer)-1).Draw(t, "at")
			answer = slices.Replace(answer, at, at+rapid.IntRange(0, 1).Draw(t, "replaces"), 1000)
		}
		p, text, missed := NewPredicted(file, 1, nil), []int32{9}, 0
		for _, token := range answer {
			if out, _ := p.Guess(text, 1, nil); len(out) == 0 || out[0] != token {
				missed++
			}
			text = append(text, token)
		}
		require.LessOrEqual(t, missed, 3*edits)
	})
}

// A prediction that leads nowhere leaves it to the text itself.
func TestPredictedElse(t *testing.T) {
	text := []int32{5, 6, 7, 8, 5, 6}
	p := NewPredicted([]int32{1, 2}, 4, NewNGram(text[:4], 10))
	out, sure := p.Guess(text, 2, nil)
	require.Equal(t, []int32{7, 8}, out)
	require.Equal(t, Scant, sure)
}

// FuzzSources: whatever a text and a prediction are, guesses are no more than asked for, of tokens that are there, and
// those of an n-gram are the ones that it is to guess.
func FuzzSources(f *testing.F) {
	f.Add([]byte("abcabcab"), []byte("cab"), uint8(3))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), []byte{}, uint8(9))
	f.Fuzz(func(t *testing.T, of, expected []byte, n uint8) {
		text, prediction := tokensOf(of[:min(len(of), 300)]), tokensOf(expected)
		most := int(n) % 10
		prompt := min(2, len(text))
		g, p := NewNGram(text[:prompt], 8), NewPredicted(prediction, prompt, NewNGram(text[:prompt], 8))
		for end := prompt; end <= len(text); end++ {
			got, _ := g.Guess(text[:end], most, nil)
			want, _ := followers(text[:end], most)
			require.Equal(t, append([]int32{}, want...), append([]int32{}, got...))
			got, _ = p.Guess(text[:end], most, nil)
			require.LessOrEqual(t, len(got), most)
			for _, token := range got {
				require.True(t, slices.Contains(text, token) || slices.Contains(prediction, token))
			}
		}
	})
}

func tokensOf(b []byte) []int32 {
	out := make([]int32, len(b))
	for i, c := range b {
		out[i] = int32(c)
	}
	return out
}
