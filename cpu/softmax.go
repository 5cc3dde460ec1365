package cpu

import (
	"math"

	"github.com/sluice-ai/sluice/cpu/vec"
)

// softmax is attention over some of the positions, by query: Σ e^(s−top)·v and Σ e^(s−top), with top the largest score
// s. Sets of positions are merged in the order of positions; top is −∞ while there are none.
type softmax struct {
	acc      []float32 // [queries][stride]
	top, sum []float32
}

func newSoftmax(queries, stride int, a *arena) softmax {
	return softmax{acc: a.take(queries * stride), top: a.take(queries), sum: a.take(queries)}
}

func (s *softmax) reset(queries int) {
	for i := range queries {
		s.top[i] = float32(math.Inf(-1))
	}
}

// empty says whether query i has seen no position.
func (s *softmax) empty(i int) bool { return math.IsInf(float64(s.top[i]), -1) }

// none says whether none of the queries [from, to) has seen a position.
func (s *softmax) none(from, to int) bool {
	for i := from; i < to; i++ {
		if !s.empty(i) {
			return false
		}
	}
	return true
}

// merge adds positions after those of s for queries [from, to): o has their results from its first row on. shrink is
// memory for as many values.
func (s *softmax) merge(isa vec.ISA, o *softmax, from, to, stride int, shrink []float32) {
	if s.none(from, to) {
		copy(s.acc[from*stride:to*stride], o.acc)
		copy(s.top[from:to], o.top)
		copy(s.sum[from:to], o.sum)
		return
	}
	shrink = shrink[:to-from]
	for i := range shrink {
		// The part with the smaller top shrinks, the other stays as it is: e⁰ is 1.
		shrink[i] = min(s.top[from+i], o.top[i]) - max(s.top[from+i], o.top[i])
	}
	isa.Exp(shrink, shrink)
	for i, w := range shrink {
		q := from + i
		acc, out := s.acc[q*stride:][:stride], o.acc[i*stride:][:stride]
		switch {
		case o.empty(i):
		case s.empty(q):
			copy(acc, out)
			s.top[q], s.sum[q] = o.top[i], o.sum[i]
		case o.top[i] <= s.top[q]:
			isa.Merge(acc, out, 1, w)
			s.sum[q] += float32(o.sum[i] * w)
		default:
			isa.Merge(acc, out, w, 1)
			s.top[q], s.sum[q] = o.top[i], float32(s.sum[q]*w)+o.sum[i]
		}
	}
}

// sink adds one more score to every query, that of its head, whose value is 0: it shows in the sums only. shrink is
// memory for a value of each query.
func (s *softmax) sink(isa vec.ISA, sinks, shrink []float32) {
	for i := range shrink {
		shrink[i] = sinks[i%len(sinks)] - s.top[i]
	}
	isa.Exp(shrink, shrink)
	for i, e := range shrink {
		s.sum[i] += e
	}
}
