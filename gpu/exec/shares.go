package exec

// shares is how the time of a recording of several segments divides among them. A timestamp between two segments makes
// the second wait for all of the first, which costs about 1.4 µs each. So most steps of few rows have two timestamps,
// at the begin and at the end; the time between is divided as in the last step of the same shape that had one after
// each segment.
type shares struct {
	steps uint64    // steps of the shape that were submitted so far
	ends  []float64 // by segment: share of the time until its end, in the last step timed in full; nil: none was
}

// detailEvery says that one of so many steps of a shape is timed in full: with a timestamp after each segment.
const detailEvery = 16

// due counts a step, and says whether it is to be timed in full.
func (s *shares) due() bool {
	s.steps++
	return s.steps%detailEvery == 1
}

// learn takes the timestamps of a step that was timed in full.
func (s *shares) learn(k *clock, ticks []uint64) {
	all := float64(k.since(ticks[0], ticks[len(ticks)-1]))
	if all <= 0 {
		return
	}
	s.ends = s.ends[:0]
	for _, tick := range ticks[1:] {
		s.ends = append(s.ends, float64(k.since(ticks[0], tick))/all)
	}
}

// divide appends the timestamps that a step would have had between its first and its last, one after each segment: in
// equal parts if no step of the shape was timed in full.
func (s *shares) divide(to []uint64, k *clock, first, last uint64, segments int) []uint64 {
	to = append(to, first)
	all := k.between(first, last)
	for i := range segments - 1 {
		part := float64(i+1) / float64(segments)
		if len(s.ends) == segments {
			part = s.ends[i]
		}
		to = append(to, first+uint64(part*float64(all)))
	}
	return append(to, last)
}
