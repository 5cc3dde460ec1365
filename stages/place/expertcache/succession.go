package expertcache

// succession counts which experts of a layer are used soon after which. A time is one computation of the layer.
type succession struct {
	time    int
	last    []int         // by expert: when it was used last; 0: never
	recent  [soon][]int32 // experts used at the last times: by time modulo soon
	counts  [][]uint16    // [a][e]: how often e was used soon after a
	times   []uint16      // by expert a: how often its successors were counted
	shares  []float64     // by expert of the last time: the weight of one of its counts
	present []int32       // experts of the last time
	sooner  []int32       // scratch
}

const (
	soon    = 4    // how many times later still counts as soon
	limit   = 1024 // of succession.times: then all counts of the expert are halved
	unknown = 1    // times that an expert is taken to have been used before, with no successors
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

// touch records the experts that were used, each one once.
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

// count counts the successors of the experts that were used some times ago.
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

// likely estimates how likely an expert is used soon after those of the last time.
func (s *succession) likely(expert int) (sum float64) {
	for i, a := range s.present {
		sum += float64(float64(s.counts[a][expert]) * s.shares[i])
	}
	return sum
}

// add adds to sums what likely gives for some experts, times a weight.
func (s *succession) add(sums []float64, among []int32, weight float64) {
	for i, a := range s.present {
		counts, share := s.counts[a], weight*s.shares[i]
		for j, e := range among {
			sums[j] += float64(float64(counts[e]) * share)
		}
	}
}
