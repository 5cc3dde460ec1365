package divergence

import "math"

// Sum accumulates a comparison, position by position. The zero value is ready.
type Sum struct {
	positions, chunks int
	surprise, against float64 // sums over positions
	kl                float64
	same              int
	spread            histogram
	paired            moments // of the mean log-ratio of a chunk
	part              float64 // sum of log-ratios in the present chunk
	within            int     // positions of the present chunk
}

// Result is the result of a comparison. Its names are part of the interface.
type Result struct {
	PPL      float64 `json:"ppl"`
	Against  float64 `json:"ppl_against"`
	Ratio    float64 `json:"ratio"`     // of the perplexities
	RatioErr float64 `json:"ratio_err"` // standard error of log(ratio), from the means of chunks; 0 if there is only one
	KLMean   float64 `json:"kl_mean"`
	KLMedian float64 `json:"kl_median"`
	KLP999   float64 `json:"kl_p999"`
	SameTop  float64 `json:"same_top"` // share of positions with the same likeliest token
}

// Add compares a position, given the logits of the run in question, those of the run that it is compared with
// (against), and the token that came next. The divergence is KL(against ‖ logits) over the whole vocabulary, in
// nats.
func (s *Sum) Add(logits, against []float32, next int32) {
	ours, theirs := normal(logits), normal(against)
	weighted := 0.0
	for i, x := range against {
		weighted += math.Exp(float64(x)-theirs.log) * (float64(x) - float64(logits[i]))
	}
	kl := max(0, weighted-(theirs.log-ours.log))
	surprise, other := ours.surprise(logits[next]), theirs.surprise(against[next])
	s.positions++
	s.within++
	s.surprise += surprise
	s.against += other
	s.part += surprise - other
	s.kl += kl
	s.spread.add(kl)
	if ours.top == theirs.top {
		s.same++
	}
}

// EndChunk ends a stretch of text whose positions depend on one another, and on no others.
func (s *Sum) EndChunk() {
	if s.within > 0 {
		s.chunks++
		s.paired.add(s.part / float64(s.within))
	}
	s.part, s.within = 0, 0
}

// Positions is the number of positions that were compared.
func (s *Sum) Positions() int { return s.positions }

// Result returns the result so far.
func (s *Sum) Result() Result {
	if s.positions == 0 {
		return Result{}
	}
	n := float64(s.positions)
	return Result{
		PPL: math.Exp(s.surprise / n), Against: math.Exp(s.against / n), Ratio: math.Exp((s.surprise - s.against) / n),
		RatioErr: s.paired.standardError(), KLMean: s.kl / n, KLMedian: s.spread.quantile(0.5),
		KLP999: s.spread.quantile(0.999), SameTop: float64(s.same) / n,
	}
}

// normalized is what logits are normalised by to probabilities.
type normalized struct {
	log float64 // logarithm of the sum of the exponentials of logits
	top int     // the likeliest, the lower one of equals
}

// surprise is −log of the probability of a token with such a logit.
func (n normalized) surprise(logit float32) float64 { return n.log - float64(logit) }

// Surprise is −log of the probability that logits give to a token.
func Surprise(logits []float32, id int32) float64 { return normal(logits).surprise(logits[id]) }

func normal(logits []float32) (n normalized) {
	for i, x := range logits {
		if x > logits[n.top] {
			n.top = i
		}
	}
	most, sum := float64(logits[n.top]), 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	n.log = most + math.Log(sum)
	return n
}

// moments are the mean and spread of numbers (Welford, 1962).
type moments struct {
	n             int
	mean, squares float64
}

func (m *moments) add(x float64) {
	m.n++
	apart := x - m.mean
	m.mean += apart / float64(m.n)
	m.squares += apart * (x - m.mean)
}

// standardError is the standard error of the mean; 0 for fewer than two numbers.
func (m *moments) standardError() float64 {
	if m.n < 2 {
		return 0
	}
	return math.Sqrt(m.squares / float64(m.n-1) / float64(m.n))
}

// Bins of a histogram: each of them for every power of two, from 2^least to 2^most. A quantile is off by 0.6 % at
// most.
const (
	least, most = -40, 8
	each        = 64
)

// histogram counts numbers from 0 on by their logarithm. What is below the least bin counts as 0.
type histogram struct {
	n, zeros int
	bins     [(most - least) * each]int
}

func (h *histogram) add(x float64) {
	h.n++
	bin := math.Floor((math.Log2(x) - least) * each)
	if !(bin >= 0) { // 0 has no logarithm
		h.zeros++
		return
	}
	h.bins[min(int(bin), len(h.bins)-1)]++
}

// quantile is the least number that a share of all does not exceed.
func (h *histogram) quantile(share float64) float64 {
	rank := int(math.Ceil(share * float64(h.n)))
	if rank <= h.zeros {
		return 0
	}
	seen := h.zeros
	for bin, n := range h.bins {
		if seen += n; seen >= rank {
			return math.Exp2(least + (float64(bin)+0.5)/each)
		}
	}
	return math.Inf(1)
}
