package lang

import (
	"slices"
	"unicode/utf8"
)

const (
	surrogateMin = 0xD800
	surrogateMax = 0xDFFF
	noClass      = -1 // the class of surrogates, which are no characters
)

// alphabet cuts the characters into classes that a language does not tell apart.
type alphabet struct {
	from    []rune  // the first character of each interval, ascending, beginning with 0
	class   []int32 // of each interval
	classes int
}

// interval returns the number of the interval that holds r.
func (a *alphabet) interval(r rune) int {
	i, found := slices.BinarySearch(a.from, r)
	if found {
		return i
	}
	return i - 1
}

// last returns the last character of interval i.
func (a *alphabet) last(i int) rune {
	if i+1 < len(a.from) {
		return a.from[i+1] - 1
	}
	return utf8.MaxRune
}

// cut makes intervals that begin at the given characters, and gives each the class of equal signatures.
// signature appends what tells the interval that begins with r from others.
func cut(starts []rune, signature func(dst []byte, r rune) []byte) alphabet {
	starts = append(starts, 0, surrogateMin, surrogateMax+1)
	slices.Sort(starts)
	var a alphabet
	known := map[string]int32{}
	var key []byte
	for _, r := range slices.Compact(starts) {
		if r > utf8.MaxRune {
			break
		}
		class := int32(noClass)
		if r != surrogateMin {
			key = signature(key[:0], r)
			c, ok := known[string(key)]
			if !ok {
				c = int32(len(known))
				known[string(key)] = c
			}
			class = c
		}
		if n := len(a.from); n == 0 || a.class[n-1] != class {
			a.from, a.class = append(a.from, r), append(a.class, class)
		}
	}
	a.classes = len(known)
	return a
}
