package expertcache

// succession counts which experts of a layer are used soon after which.
type succession struct {
	time    int
	last    []int         // by expert: when it was used last; 0: never
	recent  [soon][]int32 // what was used at the last times: by time modulo soon
	counts  [][]uint16    // by expert, and by one that was used soon after it: how often
	times   []uint16      // by expert: how often that was looked for
	shares  []float64     // by expert of the last time: what one of its counts tells
	present []int32       // experts of the last time
	sooner  []int32       // scratch
}

const (
	soon    = 4    // times
	limit   = 1024 // of times: then they count half
	unknown = 1    // times without anything after, that are taken to have been
)

func newSuccession(experts int) succession {
	s := succession{last: make([]int, experts), times: make([]uint16, experts), counts: make([][]uint16, experts),
		shares: make([]float64, experts), present: make([]int32, 0, experts), sooner: make([]int32, 0, experts)}
	for i := range s.recent {
		s.recent[i] = make([]int32, 0, experts)
	}
	all := make([]uint16, experts*experts)
	for e := range s.counts {
		s.counts[e], all = all[:experts:experts], all[experts:]
	}
	return s
}

// touch says what was used, each once.
func (s *succession) touch(experts []int32) {
	s.time++
	for _, e := range experts {
		s.last[e] = s.time
	}
	s.count()
	at := &s.recent[s.time%soon]
	*at = append((*at)[:0], experts...)
	s.present = append(s.present[:0], experts...)
	for i, a := range experts {
		s.shares[i] = 1 / (float64(s.times[a]) + unknown) / float64(len(experts))
	}
}

// count looks at what followed what was used some times ago.
func (s *succession) count() {
	first := s.recent[s.time%soon]
	if len(first) == 0 {
		return
	}
	s.sooner = s.sooner[:0]
	for e, t := range s.last {
		if t > s.time-soon {
			s.sooner = append(s.sooner, int32(e))
		}
	}
	for _, a := range first {
		counts := s.counts[a]
		for _, e := range s.sooner {
			counts[e]++
		}
		if s.times[a]++; s.times[a] == limit {
			s.times[a] /= 2
			for e := range counts {
				counts[e] /= 2
			}
		}
	}
}

// likely is how often an expert was used soon after those of the last time.
func (s *succession) likely(expert int) (sum float64) {
	for i, a := range s.present {
		sum += float64(float64(s.counts[a][expert]) * s.shares[i])
	}
	return sum
}

// add adds that of some experts, times a weight, to sums.
func (s *succession) add(sums []float64, among []int32, weight float64) {
	for i, a := range s.present {
		counts, share := s.counts[a], weight*s.shares[i]
		for j, e := range among {
			sums[j] += float64(float64(counts[e]) * share)
		}
	}
}
