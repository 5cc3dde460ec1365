package sample

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
)

// Breakers is a set of token sequences that restart DRY. It is immutable: requests may share it.
type Breakers struct {
	tails map[int32][][]int32 // by first token: what follows it
}

// NewBreakers makes a set of sequences; empty ones are left out.
func NewBreakers(sequences [][]int32) *Breakers {
	b := &Breakers{tails: make(map[int32][][]int32)}
	for _, s := range sequences {
		if len(s) > 0 {
			b.add(s[0], slices.Clone(s[1:]))
		}
	}
	return b
}

// TextBreakers finds the token sequences in which one of the texts can occur: each token that contains it, and
// each token that ends in its beginning followed by the tokens of its rest. piece is the text of a token, encode
// splits text without adding anything. It looks at every token: make it once for a model. A text counts up to
// 40 bytes and a sequence up to 21 tokens.
func TextBreakers(texts []string, vocab int, piece func(int32) []byte, encode func(string) []int32) *Breakers {
	b := NewBreakers(nil)
	for _, text := range texts {
		text = text[:min(len(text), 40)]
		if text == "" {
			continue
		}
		rest := make([][]int32, len(text)) // rest[n]: the tokens after the first n bytes
		for n := 1; n < len(text); n++ {
			rest[n] = tailOf(encode(text[n:]))
		}
		for id := range int32(vocab) {
			word := piece(id)
			if bytes.Contains(word, []byte(text)) {
				b.add(id, nil)
				continue
			}
			for n := min(len(text)-1, len(word)); n > 0; n-- {
				if string(word[len(word)-n:]) == text[:n] {
					b.add(id, rest[n])
				}
			}
		}
	}
	return b
}

// MarshalJSON implements json.Marshaler: a list of sequences, in the order of their tokens.
func (b *Breakers) MarshalJSON() ([]byte, error) {
	all := [][]int32{}
	for head, tails := range b.tails {
		for _, tail := range tails {
			all = append(all, append([]int32{head}, tail...))
		}
	}
	slices.SortFunc(all, slices.Compare)
	return json.Marshal(all)
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Breakers) UnmarshalJSON(text []byte) error {
	var all [][]int32
	err := json.Unmarshal(text, &all)
	*b = *NewBreakers(all)
	return err
}

func tailOf(ids []int32) []int32 { return ids[:min(len(ids), 20)] }

func (b *Breakers) add(head int32, tail []int32) {
	same := func(other []int32) bool { return slices.Equal(tail, other) }
	if !slices.ContainsFunc(b.tails[head], same) {
		b.tails[head] = append(b.tails[head], tail)
	}
}

// at returns the length of the longest sequence that starts at text[0], 0 if none does.
func (b *Breakers) at(text []int32) (longest int) {
	if b == nil {
		return 0
	}
	for _, tail := range b.tails[text[0]] {
		if len(tail) < len(text) && slices.Equal(tail, text[1:1+len(tail)]) {
			longest = max(longest, 1+len(tail))
		}
	}
	return longest
}

// alone reports whether id by itself is a breaker.
func (b *Breakers) alone(id int32) bool { return b != nil && b.at([]int32{id}) > 0 }

func (d *DRY) on() bool { return d.Multiplier != 0 && d.Base >= 1 && d.PenaltyLastN != 0 }

// dry lowers the logits of tokens that would continue a repetition: where the end of the window also occurs
// earlier in it, the token that followed there. Source: llama.cpp pull request 9702, after an idea of p-e-w.
func (s *Sampler) dry(d *DRY, window []int32) {
	n := len(window)
	if n <= d.AllowedLength {
		return
	}
	limit := n // repetitions do not reach back over the last breaker
	for i := range window {
		if length := d.Breakers.at(window[n-1-i:]); length > 0 {
			limit = i - (length - 1)
			break
		}
	}
	if limit < d.AllowedLength {
		return
	}
	s.startTally()
	s.overlaps(window)
	for k := 1; k < n; k++ {
		// window[:n-k] and window end alike in so many tokens; window[n-k] came next.
		length, next := min(s.overlap[k], int32(limit)), window[n-k]
		if int(length) >= d.AllowedLength && s.known(next) {
			if s.tally[next] == 0 {
				s.tallied = append(s.tallied, next)
			}
			s.tally[next] = max(s.tally[next], length+1) // above 0 also for length 0
		}
	}
	for _, id := range s.tallied {
		if !d.Breakers.alone(id) {
			s.logits[id] = narrow(float64(s.logits[id]) - d.penalty(int(s.tally[id]-1)))
		}
	}
	s.endTally()
}

// penalty returns the penalty of a token that continues a repetition of length tokens. The power is kept below the
// largest float32.
func (d *DRY) penalty(length int) float64 {
	const most = 88.7228391 // the logarithm of the largest float32
	exponent := float64(length - d.AllowedLength)
	step := log(float64(d.Base))
	if d.Base > 1.000001 {
		exponent = min(exponent, math.Floor(most/step))
	}
	return float64(d.Multiplier) / exp(-float64(exponent*step))
}

// overlaps sets overlap[k], for k from 1, to the length of the longest common suffix of window and window[:n-k],
// in linear time: the Z-algorithm on the reversed window. Source: Gusfield, Algorithms on Strings, 1997, §1.4.
func (s *Sampler) overlaps(window []int32) {
	n := len(window)
	s.overlap = slices.Grow(s.overlap[:0], n)[:n]
	left, right := 0, 0 // the match that reaches furthest back: positions left..right-1 from the end
	for k := 1; k < n; k++ {
		z := 0
		if k < right {
			z = min(right-k, int(s.overlap[k-left]))
		}
		for k+z < n && window[n-1-z] == window[n-1-k-z] {
			z++
		}
		s.overlap[k] = int32(z)
		if k+z > right {
			left, right = k, k+z
		}
	}
}
