package token

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// complete is a variety in which no byte is without a token.
func complete(t *testing.T, model string) *Vocab {
	m := variety(model)
	tokens, err := m.Strings("tokenizer.ggml.tokens")
	require.NoError(t, err)
	tokens = slices.Clone(tokens)
	if model == "gpt2" {
		for r, b := range newAlphabet() {
			if b >= 0 && b != 'a' && b != 'b' {
				tokens = append(tokens, string(rune(r)))
			}
		}
	}
	types := slices.Repeat([]int32{1}, len(tokens)) // normal
	types[0], types[1], types[2] = 2, 3, 3          // unknown, control
	for b := range 256 {
		if model != "gpt2" {
			tokens, types = append(tokens, fmt.Sprintf("<0x%02X>", b)), append(types, 6)
		}
	}
	m.Set("tokenizer.ggml.tokens", tokens)
	m.Set("tokenizer.ggml.token_type", types)
	m.Set("tokenizer.ggml.scores", make([]float32, len(tokens)))
	v, err := New(m)
	require.NoError(t, err)
	return v
}

// TestMostNeverRefusesWhatFits: the bound is one from below, for any text and any vocabulary that is covered by pieces.
func TestMostNeverRefusesWhatFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	check := func(v *Vocab, model string) (refused int) {
		for range 2000 {
			var text strings.Builder
			for range random.IntN(40) {
				text.WriteString([]string{"a", "b", "ab", "aaaa", " ", "x", "é", "<s>", "</s>"}[random.IntN(9)])
			}
			all, err := v.Encode(nil, text.String(), Options{ParseSpecial: true})
			require.NoError(t, err)
			for _, most := range []int{len(all), max(1, len(all)/2), 1} {
				_, err := v.Encode(nil, text.String(), Options{ParseSpecial: true, Most: most})
				if len(all) <= most {
					require.NoError(t, err, "%s: %q has %d tokens", model, text.String(), len(all))
				} else if err != nil {
					refused++
				}
			}
		}
		return refused
	}
	for _, model := range []string{"gpt2", "llama", "gemma4"} {
		v, err := New(variety(model))
		require.NoError(t, err)
		check(v, model+" without bytes")
		require.Greater(t, check(complete(t, model), model), 1000, "%s: it refuses nothing", model)
	}
}

// TestTooLongCostsNothing: a text that cannot fit is refused before memory is spent on it, and the one before it left
// none behind.
func TestTooLongCostsNothing(t *testing.T) {
	for _, model := range []string{"gpt2", "llama", "gemma4"} {
		v := complete(t, model)
		_, err := v.Encode(nil, strings.Repeat("ab", 10), Options{Most: 1}) // makes what is made once
		require.Error(t, err)
		for _, unit := range []string{"a", "ab ", " ", "é", "</s>"} {
			text := strings.Repeat(unit, 15_000_000/len(unit))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err = v.Encode(nil, text, Options{Most: 16384})
			runtime.ReadMemStats(&after)
			var long *TooLong
			require.ErrorAs(t, err, &long)
			require.Equal(t, 16385, long.Least)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "%s: %q again and again", model, unit)
		}
	}
}

// TestLongWords: where no token reaches across, a long word is merged in parts, with the same result; elsewhere it is
// refused.
func TestLongWords(t *testing.T) {
	for _, model := range []string{"llama", "gemma4"} {
		v, err := New(variety(model))
		require.NoError(t, err)
		long := strings.Repeat("bbaab", 4*maxWord/5) // no token has bb
		got, err := v.Encode(nil, long, Options{})
		require.NoError(t, err)
		part, err := v.Encode(nil, "bbaab", Options{})
		require.NoError(t, err)
		for len(part) > 0 && part[0] != v.lookup["b"] {
			part = part[1:] // what begins a text
		}
		require.Equal(t, part, got[len(got)-len(part):], model)
		require.Len(t, got, len(part)*(4*maxWord/5)+len(got)%len(part), model)
		_, err = v.Encode(nil, strings.Repeat("a", 2*maxWord), Options{})
		var word *WordTooLong
		require.ErrorAs(t, err, &word, model)
	}
	v, err := New(variety("gpt2"))
	require.NoError(t, err)
	_, err = v.Encode(nil, strings.Repeat("a", maxWord+1), Options{})
	require.ErrorContains(t, err, "a word of 524289 bytes")
}

// TestScratchIsLetGo: what a large text needed is not kept for the next one.
func TestScratchIsLetGo(t *testing.T) {
	v, err := New(variety("gpt2"))
	require.NoError(t, err)
	made := 0
	v.pool.New = func() any { made++; return new(scratch) }
	for range 3 {
		_, err = v.Encode(nil, strings.Repeat("a", maxWord), Options{})
		require.NoError(t, err)
	}
	require.Equal(t, 3, made)
}

// TestStop: whoever leaves is not encoded for any longer.
func TestStop(t *testing.T) {
	for _, model := range []string{"gpt2", "llama", "gemma4"} {
		v, err := New(variety(model))
		require.NoError(t, err)
		asked := 0
		_, err = v.Encode(nil, strings.Repeat("ab aa ", 1<<18), Options{Stop: func() bool { asked++; return asked > 3 }})
		require.ErrorIs(t, err, ErrStopped, model)
		require.Equal(t, 4, asked, model)
		asked = 0
		stop := func() bool { asked++; return asked > 1 }
		_, err = v.Encode(nil, strings.Repeat("ab aa ", 1<<18), Options{Most: 1 << 20, Stop: stop})
		require.ErrorIs(t, err, ErrStopped, model)
	}
}
