package sample

import (
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// naive is the chain as its papers and llama.cpp's documentation describe it: probabilities, full sorts, no
// shortcuts. close is set where a decision hangs on the last bits, so that rounding may decide it otherwise.
type naive struct {
	ids    []int32
	logits map[int32]float64
	ways   map[int32]way
	close  bool
}

// way is all that a token's logit came to be of. Each operation may round.
type way struct {
	given, bias   float64
	times, length int // of penalties, and of a repetition
}

func (n *naive) less(a, b float64) bool {
	n.close = n.close || (a != b && math.Abs(a-b) < 1e-6*(1+math.Abs(a)))
	return a < b
}

func (n *naive) sort() {
	sort.SliceStable(n.ids, func(i, j int) bool {
		a, b := n.ids[i], n.ids[j]
		return n.logits[a] > n.logits[b] || n.logits[a] == n.logits[b] && a < b
	})
}

func (n *naive) probs(temp float64) map[int32]float64 {
	top, sum, p := math.Inf(-1), 0.0, map[int32]float64{}
	for _, id := range n.ids {
		top = max(top, n.logits[id])
	}
	for _, id := range n.ids {
		p[id] = math.Exp((n.logits[id] - top) / temp)
		sum += p[id]
	}
	for id := range p {
		p[id] /= sum
	}
	return p
}

func (n *naive) entropy() (h float64) {
	for _, p := range n.probs(1) {
		if p > 0 {
			h -= p * math.Log(p)
		}
	}
	return h
}

func (n *naive) adjust(p *Params, history []int32) {
	n.ways = map[int32]way{}
	for id, l := range n.logits {
		n.ways[id] = way{given: l, length: -1}
	}
	note := func(id int32, change func(*way)) {
		w := n.ways[id]
		change(&w)
		n.ways[id] = w
	}
	for _, b := range p.Bias {
		n.logits[b.ID] += float64(b.Add)
		note(b.ID, func(w *way) { w.bias = float64(b.Add) })
	}
	for _, id := range p.IgnoreEOG {
		n.logits[id] = math.Inf(-1)
	}
	count := map[int32]int{}
	for i := len(history) - 1; i >= 0 && (p.PenaltyLastN < 0 || len(history)-i <= p.PenaltyLastN); i-- {
		count[history[i]]++
	}
	for id, times := range count {
		note(id, func(w *way) { w.times = times })
		if n.logits[id] > 0 {
			n.logits[id] /= float64(p.RepeatPenalty)
		} else {
			n.logits[id] *= float64(p.RepeatPenalty)
		}
		n.logits[id] -= float64(times)*float64(p.FrequencyPenalty) + float64(p.PresencePenalty)
	}
	for id, length := range naiveDRY(&p.DRY, history) {
		note(id, func(w *way) { w.length = length })
		n.logits[id] -= float64(p.DRY.Multiplier) * math.Pow(float64(p.DRY.Base), float64(length-p.DRY.AllowedLength))
	}
	for id := range n.logits {
		n.logits[id] = float64(float32(n.logits[id]))
	}
}

// naiveDRY compares every earlier end with the end of the text: the repetition lengths that each token extends.
func naiveDRY(d *DRY, history []int32) map[int32]int {
	extends := map[int32]int{}
	if d.Multiplier == 0 || d.Base < 1 || d.PenaltyLastN == 0 {
		return extends
	}
	if d.PenaltyLastN > 0 && len(history) > d.PenaltyLastN {
		history = history[len(history)-d.PenaltyLastN:]
	}
	limit := len(history)
	for start := len(history) - 1; start >= 0 && limit == len(history); start-- {
		if length := d.Breakers.at(history[start:]); length > 0 {
			limit = len(history) - (start + length)
		}
	}
	if len(history) <= d.AllowedLength || limit < d.AllowedLength {
		return extends
	}
	for end := 1; end < len(history); end++ {
		same := 0
		for same < limit && same < end && history[end-1-same] == history[len(history)-1-same] {
			same++
		}
		if next := history[end]; same >= d.AllowedLength && d.Breakers.at([]int32{next}) == 0 {
			if old, ok := extends[next]; !ok || same > old {
				extends[next] = same
			}
		}
	}
	return extends
}

func (n *naive) keepOnly(keep func(i int, id int32) bool) {
	var kept []int32
	for i, id := range n.ids {
		if keep(i, id) {
			kept = append(kept, id)
		}
	}
	n.ids = kept
}

func (n *naive) sigma(k float64) {
	if k <= 0 {
		return
	}
	mean, square, top := 0.0, 0.0, math.Inf(-1)
	for _, id := range n.ids {
		mean += n.logits[id] / float64(len(n.ids))
		top = max(top, n.logits[id])
	}
	for _, id := range n.ids {
		square += (n.logits[id] - mean) * (n.logits[id] - mean) / float64(len(n.ids))
	}
	n.keepOnly(func(_ int, id int32) bool { return !n.less(n.logits[id], top-k*math.Sqrt(square)) })
}

func (n *naive) typical(p float64, keep int) {
	if p >= 1 {
		return
	}
	probs, h := n.probs(1), n.entropy()
	far := func(id int32) float64 { return math.Abs(-math.Log(probs[id]) - h) }
	n.sort()
	sort.SliceStable(n.ids, func(i, j int) bool {
		a, b := n.ids[i], n.ids[j]
		return n.logits[a] != n.logits[b] && n.less(far(a), far(b)) // equal logits keep their order
	})
	sum := 0.0
	for i, id := range n.ids {
		sum += probs[id]
		if n.less(p, sum) && i+1 >= keep {
			n.ids = n.ids[:i+1]
			break
		}
	}
	n.sort()
}

func (n *naive) topP(p float64, keep int) {
	if p >= 1 {
		return
	}
	probs, sum := n.probs(1), 0.0
	for i, id := range n.ids {
		sum += probs[id]
		if !n.less(sum, p) && i+1 >= keep {
			n.ids = n.ids[:i+1]
			break
		}
	}
}

func (n *naive) xtc(threshold float64, keep int) {
	if threshold > 0.5 {
		return
	}
	probs, above := n.probs(1), 0
	for above < len(n.ids) && !n.less(probs[n.ids[above]], threshold) {
		above++
	}
	if above > 1 && len(n.ids)-(above-1) >= keep {
		n.ids = n.ids[above-1:]
	}
}

// naiveChain returns the distribution from which the token is drawn.
func naiveChain(logits []float32, p *Params, history []int32, xtc bool) (map[int32]float64, bool) {
	n := &naive{logits: map[int32]float64{}}
	for i, l := range logits {
		n.logits[int32(i)] = float64(l)
	}
	n.adjust(p, history)
	for i := range logits {
		if n.logits[int32(i)] > math.Inf(-1) {
			n.ids = append(n.ids, int32(i))
		}
	}
	n.sort()
	for i := range n.ids[:max(0, len(n.ids)-1)] {
		a, b := n.ids[i], n.ids[i+1]
		n.less(n.logits[b], n.logits[a])
		// 2/1.5 - 0.5 and 1.25/1.5 are equal here, and may be neighbours where each operation rounds.
		n.close = n.close || n.ways[a] != n.ways[b] && n.logits[a] == n.logits[b]
	}
	n.sigma(float64(p.TopNSigma))
	if p.TopK > 0 {
		n.ids = n.ids[:min(p.TopK, len(n.ids))]
	}
	n.typical(float64(p.TypicalP), p.MinKeep)
	n.topP(float64(p.TopP), p.MinKeep)
	probs := n.probs(1)
	best := probs[n.ids[0]]
	n.keepOnly(func(i int, id int32) bool { return i < p.MinKeep || !n.less(probs[id], float64(p.MinP)*best) })
	if xtc {
		n.xtc(float64(p.XTCThreshold), p.MinKeep)
	}
	temp := float64(p.Temp)
	if span := float64(p.DynTempRange); span > 0 && len(n.ids) > 1 {
		low, high := max(0, temp-span), temp+span
		share := n.entropy() / math.Log(float64(len(n.ids)))
		temp = low + (high-low)*math.Pow(min(1, share), float64(p.DynTempExponent))
	}
	if n.close = n.close || temp < 1e-3; n.close {
		return nil, false
	}
	return n.probs(temp), true
}

// oneOf draws from a few values: an off switch, ordinary ones, and ones at which everything goes.
func oneOf(t *rapid.T, name string, values ...float32) float32 {
	return rapid.SampledFrom(values).Draw(t, name)
}

func drawLogits(t *rapid.T) []float32 {
	quarter := rapid.Custom(func(t *rapid.T) float32 {
		if rapid.IntRange(0, 15).Draw(t, "banned") == 15 {
			return float32(math.Inf(-1))
		}
		return float32(rapid.SampledFrom([]int{-120, -50, -40, -22, -9, -3, -1, 0, 1, 2, 3, 5, 8, 13, 17}).Draw(t, "quarters")) / 4
	})
	logits := rapid.SliceOfN(quarter, 1, 60).Draw(t, "logits")
	logits[rapid.IntRange(0, len(logits)-1).Draw(t, "allowed")] = 0.25
	return logits
}

func drawParams(t *rapid.T, vocab int) Params {
	p := Defaults()
	id := rapid.Int32Range(0, int32(vocab-1))
	p.Temp = oneOf(t, "temp", 0.1, 0.7, 0.8, 1, 1.5)
	p.DynTempRange = oneOf(t, "dynatemp range", 0, 0, 0.3, 1.1)
	p.DynTempExponent = oneOf(t, "dynatemp exponent", 0, 0.7, 1, 2)
	p.TopNSigma = oneOf(t, "sigma", -1, -1, 0.31, 1.07, 2.9)
	p.TopK = rapid.SampledFrom([]int{-1, 0, 1, 2, 7, 13, 40, 1000}).Draw(t, "top-k")
	p.TypicalP = oneOf(t, "typical", 1, 1, 0, 0.2113, 0.5171, 0.9397)
	p.TopP = oneOf(t, "top-p", 1, 0, 0.1171, 0.5331, 0.9511, 0.999991)
	p.MinP = oneOf(t, "min-p", 0, 0, 0.0511, 0.3371, 1)
	p.MinKeep = rapid.SampledFrom([]int{0, 0, 1, 3, 100}).Draw(t, "min keep")
	p.XTCThreshold = oneOf(t, "xtc", 0, 0.0311, 0.1017, 0.3311, 0.51)
	p.RepeatPenalty = oneOf(t, "repeat", 1, 1.5, 0.5)
	p.FrequencyPenalty = oneOf(t, "frequency", 0, 0.5, -0.25)
	p.PresencePenalty = oneOf(t, "presence", 0, 1, -0.5)
	p.PenaltyLastN = rapid.SampledFrom([]int{-1, 0, 1, 4, 64}).Draw(t, "window")
	p.DRY.Multiplier = oneOf(t, "dry", 0, 0.5, 1)
	p.DRY.Base = oneOf(t, "dry base", 0.5, 1, 1.75, 2)
	p.DRY.AllowedLength = rapid.SampledFrom([]int{0, 1, 2, 3}).Draw(t, "dry allowed")
	p.DRY.PenaltyLastN = rapid.SampledFrom([]int{-1, 0, 1, 5, 30}).Draw(t, "dry window")
	p.DRY.Breakers = NewBreakers(rapid.SliceOfN(rapid.SliceOfN(rapid.Int32Range(0, 2), 0, 3), 0, 3).Draw(t, "breakers"))
	for _, b := range rapid.SliceOfNDistinct(id, 0, 3, rapid.ID).Draw(t, "bias") {
		p.Bias = append(p.Bias, Bias{ID: b, Add: oneOf(t, "add", -2, 0.5, 3, float32(math.Inf(-1)))})
	}
	return p
}

func TestChainLikeNaive(t *testing.T) {
	cases, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			cases++
			if chainLikeNaive(t) {
				compared++
			}
		}
	})
	require.Greater(t, compared, cases/2, "most cases are decided")
}

// chainLikeNaive draws and compares one case, if it does not hang on rounding.
func chainLikeNaive(t *rapid.T) (compared bool) {
	logits := drawLogits(t)
	p := drawParams(t, len(logits))
	history := rapid.SliceOfN(rapid.Int32Range(0, int32(min(len(logits), 5)-1)), 0, 40).Draw(t, "history")
	s, xtc := NewSampler(len(logits)), rapid.Bool().Draw(t, "xtc happens")
	if xtc {
		p.XTCProbability = 1
	}
	require.NoError(t, p.Check(len(logits)))
	before := slices.Clone(logits)
	r, err := s.Sample(logits, &p, history, State{})
	require.Equal(t, before, logits, "the row is the caller's")
	if err != nil {
		require.EqualError(t, err, "after logit bias and penalties: "+noneAllowed(len(logits)))
		return false
	}
	want, sure := naiveChain(logits, &p, history, xtc)
	if !sure {
		return false
	}
	require.Contains(t, want, r.ID)
	total := s.candidates.total()
	require.Len(t, s.candidates.list, len(want))
	for _, x := range s.candidates.list {
		require.Contains(t, want, x.id)
		require.InDelta(t, want[x.id], float64(x.weight)/float64(total), 1e-6)
	}
	return true
}
