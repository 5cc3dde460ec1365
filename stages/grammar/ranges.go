package grammar

import (
	"slices"
	"unicode/utf8"
)

// ranges puts pairs of first and last in order and joins those that touch; with not, it returns what is between them.
func ranges(set []rune, not bool) []rune {
	type span struct{ lo, hi rune }
	spans := make([]span, 0, len(set)/2)
	for i := 0; i+1 < len(set); i += 2 {
		spans = append(spans, span{set[i], set[i+1]})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	var out []rune
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], s.hi)
		} else {
			out = append(out, s.lo, s.hi)
		}
	}
	if !not {
		return out
	}
	var between []rune
	from := rune(0)
	for i := 0; i < len(out); i += 2 {
		if out[i] > from {
			between = append(between, from, out[i]-1)
		}
		from = out[i+1] + 1
	}
	if from <= utf8.MaxRune {
		between = append(between, from, utf8.MaxRune)
	}
	return between
}
