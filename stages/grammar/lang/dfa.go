package lang

import (
	"fmt"
	"unicode/utf8"
)

const dead = -1 // no state

// DFA is a regular language. From each of its states a word of the language can be finished. It is not changed once it
// is made, so it may be shared.
type DFA struct {
	alphabet
	next  []int32 // [state][class]
	final []bool  // by state
	start int32   // dead for the empty language
}

// Budget is how much work may still be done; every operation takes from it. A budget that is used up is an error.
type Budget struct {
	Steps  int // elementary steps: about 20 ns each
	States int // the most states that one automaton may have
}

// Exhausted says that a language needs more than its budget.
type Exhausted struct{ What string }

func (e *Exhausted) Error() string {
	return fmt.Sprintf("it needs too many %s: write it with smaller repetitions and fewer alternatives", e.What)
}

// Take uses steps up.
func (b *Budget) Take(steps int) error {
	b.Steps -= steps
	if b.Steps < 0 {
		return &Exhausted{"steps to compile"}
	}
	return nil
}

// Empty says that the language has no word.
func (d *DFA) Empty() bool { return d.start == dead }

// Start returns the state before the first character. The language is not empty.
func (d *DFA) Start() int32 { return d.start }

// Final says that a word may end in state q.
func (d *DFA) Final(q int32) bool { return d.final[q] }

// States returns their number.
func (d *DFA) States() int { return len(d.final) }

// Size is about how many bytes the automaton takes.
func (d *DFA) Size() int64 {
	const interval = 8 // of the alphabet: its first character and its class
	return int64(4*cap(d.next) + cap(d.final) + interval*len(d.from))
}

// Step returns the state after r, or a negative number where no word goes on with r.
func (d *DFA) Step(q int32, r rune) int32 {
	if r < 0 || r > utf8.MaxRune {
		return dead
	}
	return d.step(q, d.class[d.interval(r)])
}

func (d *DFA) step(q, class int32) int32 {
	if q == dead || class == noClass {
		return dead
	}
	return d.next[int(q)*d.classes+int(class)]
}

// Uniform says where all characters from lo to hi lead; ok is false where they lead to different states.
func (d *DFA) Uniform(q int32, lo, hi rune) (to int32, ok bool) {
	i := d.interval(lo)
	to = d.step(q, d.class[i])
	for d.last(i) < hi {
		i++
		if d.step(q, d.class[i]) != to {
			return dead, false
		}
	}
	return to, true
}

// Runs calls yield for each run of characters that lead from q to the same state, dead ends left out.
func (d *DFA) Runs(q int32, yield func(lo, hi rune, to int32)) {
	for i := 0; i < len(d.from); {
		lo, to := d.from[i], d.step(q, d.class[i])
		for i++; i < len(d.from) && d.step(q, d.class[i]) == to; i++ {
		}
		if to != dead {
			yield(lo, d.last(i-1), to)
		}
	}
}

// Match says whether text, valid UTF-8, is a word.
func (d *DFA) Match(text string) bool {
	q := d.start
	for _, r := range text {
		if q == dead {
			return false
		}
		q = d.Step(q, r)
	}
	return q != dead && d.final[q]
}

// KillDistance returns for each state the length of the shortest word over the characters that plain accepts that leads
// out of the language, or most where that is longer: so many of them may follow, whichever they are.
func (d *DFA) KillDistance(plain []rune, most int) []int {
	// plain lists the first characters of alternating intervals: plain, not plain, plain, …
	hit := make([]bool, d.classes)
	for i := 0; i < len(plain); i += 2 {
		hi := rune(utf8.MaxRune)
		if i+1 < len(plain) {
			hi = plain[i+1] - 1
		}
		for j := d.interval(plain[i]); j < len(d.from) && d.from[j] <= hi; j++ {
			if c := d.class[j]; c != noClass {
				hit[c] = true
			}
		}
	}
	dist := make([]int, len(d.final))
	for i := range dist {
		dist[i] = most
	}
	for changed := true; changed; {
		changed = false
		for q := len(dist) - 1; q >= 0; q-- {
			best := dist[q]
			for c, used := range hit {
				if !used {
					continue
				}
				if to := d.next[q*d.classes+c]; to == dead {
					best = 0
				} else {
					best = min(best, dist[to]+1)
				}
			}
			if best < dist[q] {
				dist[q], changed = best, true
			}
		}
	}
	return dist
}
