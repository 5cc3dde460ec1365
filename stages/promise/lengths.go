package promise

import (
	"math"
	"math/bits"
)

// Lengths learns how long answers become: of those that have come so far, how many end there. So it knows of one that
// goes on already, or that may not become longer, what the mean of all answers does not tell.
type Lengths struct {
	ended [stretches]float64 // answers that ended by themselves within a stretch
	had   [stretches]float64 // tokens within it, of all answers
}

const (
	stretches = 8 * 16 // eight to each doubling of the length
	lately    = 1 - 1.0/128
	doubted   = 16 // tokens of a stretch that count as one that all answers have had
)

// stretch is where an answer's token of this number belongs, from 1.
func stretch(token int) int {
	e := max(bits.Len(uint(token))-4, 0) //nolint:gosec // numbers of tokens are positive
	return min(e<<3+token>>e, stretches-1)
}

// begins is the first token of a stretch.
func begins(at int) int {
	if at < 16 {
		return at
	}
	e := at>>3 - 1
	return (at - e<<3) << e
}

// Observe learns from an answer that has so many tokens and no more. whole: it ended by itself, and was not as long as
// it might become.
func (l *Lengths) Observe(tokens int, whole bool) {
	for i := range l.had {
		l.had[i] *= lately
		l.ended[i] *= lately
	}
	l.came(tokens)
	if whole && tokens > 0 {
		l.ended[stretch(tokens)]++
	}
}

// came counts an answer's tokens.
func (l *Lengths) came(tokens int) {
	for i := 1; i < stretches && begins(i) <= tokens; i++ {
		to := tokens + 1
		if i+1 < stretches {
			to = min(to, begins(i+1))
		}
		l.had[i] += float64(to - begins(i))
	}
}

// ends is how many tokens an answer may still get that has some: as many as it may at most, unless it is one of the
// share of answers that end before.
func (l *Lengths) ends(had, most int, share float64) int {
	var ended, tokens float64
	for i := range l.had {
		ended, tokens = ended+l.ended[i], tokens+l.had[i]
	}
	if ended == 0 {
		return most
	}
	left := -math.Log(1 - share) // of what may befall it
	for at := had + 1; at <= had+most; {
		i := stretch(at)
		risk := (l.ended[i] + doubted*ended/tokens) / (l.had[i] + doubted)
		to := had + most + 1
		if i+1 < stretches {
			to = min(to, begins(i+1))
		}
		if all := risk * float64(to-at); all < left {
			left -= all
			at = to
			continue
		}
		return max(at+int(left/risk)-had, 1)
	}
	return most
}
