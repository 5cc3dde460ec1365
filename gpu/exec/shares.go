package exec

// shares is how the time of a recording of several segments divides among them. A timestamp between two segments makes
// the second wait for all of the first, 1.4 µs of a card for each: so most steps of few rows have one at their begin
// and one at their end, and what lies between is divided as the last step of that shape had it that was timed in full.
type shares struct {
	steps uint64    // that were submitted so far
	ends  []float64 // by segment: which part of the time has passed at its end, of the last step that told; nil: none did
}

// detailEvery is how many steps of a shape have one among them that is timed in full.
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

// divide appends the timestamps that a step of some segments would have had between its first and its last, in equal
// parts where no step of the shape was timed in full.
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
