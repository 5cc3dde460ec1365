package sample

import (
	"math"
	"math/bits"
)

// adjusts reports whether any parameter changes single logits.
func (p *Params) adjusts() bool {
	return len(p.Bias) > 0 || len(p.IgnoreEOG) > 0 || p.penalises() || p.DRY.on()
}

func (p *Params) penalises() bool {
	return p.PenaltyLastN != 0 && (p.RepeatPenalty != 1 || p.FrequencyPenalty != 0 || p.PresencePenalty != 0)
}

// adjust copies the logits and applies bias, bans, penalties and DRY. The result is scratch.
func (s *Sampler) adjust(logits []float32, p *Params, history []int32) []float32 {
	s.logits = append(s.logits[:0], logits...)
	for _, b := range p.Bias {
		if s.known(b.ID) {
			s.logits[b.ID] = narrow(float64(s.logits[b.ID]) + float64(b.Add))
		}
	}
	for _, id := range p.IgnoreEOG {
		if s.known(id) {
			s.logits[id] = float32(math.Inf(-1))
		}
	}
	if p.penalises() {
		s.penalise(p, tail(history, p.PenaltyLastN))
	}
	if p.DRY.on() {
		s.dry(&p.DRY, tail(history, p.DRY.PenaltyLastN))
	}
	return s.logits
}

// mask bans the tokens that are not allowed. It tests 64 tokens at once, since most words allow all of their tokens,
// or none.
func mask(row []float32, allowed []uint64) {
	ban := float32(math.Inf(-1))
	for start := 0; start < len(row); start += 64 {
		part, word := row[start:min(start+64, len(row))], uint64(0)
		if start/64 < len(allowed) {
			word = allowed[start/64]
		}
		for banned := ^word; banned != 0; banned &= banned - 1 {
			i := bits.TrailingZeros64(banned)
			if i >= len(part) {
				break
			}
			part[i] = ban
		}
	}
}

// count is how many tokens a mask allows.
func count(allowed []uint64) (n int) {
	for _, word := range allowed {
		n += bits.OnesCount64(word)
	}
	return n
}

// allows reports whether a mask allows a token.
func allows(allowed []uint64, id int32) bool {
	word := int(id) / 64
	return word < len(allowed) && allowed[word]>>(id%64)&1 == 1
}

// penalise lowers the logits of the tokens in the window. The repeat penalty multiplies logits of 0 or less, because
// dividing would raise them.
func (s *Sampler) penalise(p *Params, window []int32) {
	s.startTally()
	for _, id := range window {
		if s.known(id) {
			if s.tally[id] == 0 {
				s.tallied = append(s.tallied, id)
			}
			s.tally[id]++
		}
	}
	repeat := float64(p.RepeatPenalty)
	for _, id := range s.tallied {
		l := float64(s.logits[id])
		if l <= 0 {
			l *= repeat
		} else {
			l /= repeat
		}
		l -= float64(float64(s.tally[id])*float64(p.FrequencyPenalty)) + float64(p.PresencePenalty)
		s.logits[id] = narrow(l)
	}
	s.endTally()
}

// startTally clears one counter for each token.
func (s *Sampler) startTally() {
	if s.tally == nil {
		s.tally = make([]int32, s.vocab)
	}
}

func (s *Sampler) endTally() {
	for _, id := range s.tallied {
		s.tally[id] = 0
	}
	s.tallied = s.tallied[:0]
}

func (s *Sampler) known(id int32) bool { return id >= 0 && int(id) < s.vocab }

// tail returns the last n tokens of history, all of them for n = -1.
func tail(history []int32, n int) []int32 {
	if n < 0 {
		return history
	}
	return history[len(history)-min(n, len(history)):]
}

// narrow rounds to float32, without making a finite number infinite.
func narrow(x float64) float32 {
	if math.IsInf(x, -1) {
		return float32(x)
	}
	return float32(max(-math.MaxFloat32, min(x, math.MaxFloat32)))
}
