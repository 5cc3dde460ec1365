package sample

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/sluice-ai/sluice/internal/backend"
)

// candidate is a token that may still be chosen.
type candidate struct {
	id     int32
	logit  float32
	weight uint64 // after weigh
}

// better orders candidates: the likeliest first, among equal ones the lower id first.
func better(a, b candidate) int {
	switch {
	case a.logit > b.logit:
		return -1
	case a.logit < b.logit:
		return 1
	}
	return int(a.id) - int(b.id)
}

// candidates are the tokens that the chain has left: ordered by id, or best first. After fill there is always at
// least one.
type candidates struct {
	list   []candidate
	sorted bool // best first
}

// sigmaFloor returns the least logit that top-n-sigma keeps: the largest, less n standard deviations of all logits
// that are not −Inf. Source: Tang et al., arXiv:2411.07641.
func sigmaFloor(row []float32, n float64) float64 {
	if n <= 0 {
		return math.Inf(-1)
	}
	top, sum, count := math.Inf(-1), 0.0, 0.0
	for _, x := range row {
		if l := float64(x); !math.IsInf(l, -1) {
			top = max(top, l)
			sum += l
			count++
		}
	}
	mean, squares := sum/count, 0.0
	for _, x := range row {
		if l := float64(x); !math.IsInf(l, -1) {
			squares += float64((l - mean) * (l - mean))
		}
	}
	return top - float64(n*math.Sqrt(squares/count))
}

// fill takes the logits of a row that are at least floor and above −Inf: the k best of them, best first, or for k ≤ 0
// all of them, in order of id.
func (c *candidates) fill(row []float32, floor float64, k int) {
	c.list, c.sorted = c.list[:0], false
	if k <= 0 || k > len(row)/4 {
		for i, x := range row {
			if l := float64(x); l >= floor && !math.IsInf(l, -1) {
				c.list = append(c.list, candidate{id: int32(i), logit: x})
			}
		}
		if k > 0 {
			c.sort()
			c.list = c.list[:min(k, len(c.list))]
		}
		return
	}
	// Keep up to 2k of the best seen. When they are that many, the worse half goes and bounds what may enter:
	// few do after the first thousands. An equal logit further on has a higher id and loses.
	bound := float32(math.Inf(-1))
	for i, x := range row {
		if x <= bound || float64(x) < floor {
			continue
		}
		c.list = append(c.list, candidate{id: int32(i), logit: x})
		if len(c.list) == 2*k {
			slices.SortFunc(c.list, better)
			c.list = c.list[:k]
			bound = row[c.list[k-1].id]
		}
	}
	c.sort()
	c.list = c.list[:min(k, len(c.list))]
}

func (c *candidates) sort() {
	if !c.sorted {
		slices.SortFunc(c.list, better)
		c.sorted = true
	}
}

// best returns the likeliest candidate.
func (c *candidates) best() candidate {
	if c.sorted {
		return c.list[0]
	}
	best := c.list[0]
	for _, x := range c.list[1:] {
		if x.logit > best.logit { // ids ascend
			best = x
		}
	}
	return best
}

// weigh sets the weights under a temperature, which is above 0, and returns the weigher and the sum of the weights.
func (c *candidates) weigh(temp float64) (by backend.Weigher, total uint64) {
	by = backend.NewWeigher(c.best().logit, backend.ScaleOf(temp))
	for i := range c.list {
		x := &c.list[i]
		x.weight = backend.WeightOf(by.Surprise(x.logit))
		total += x.weight
	}
	return by, total
}

func (c *candidates) total() (sum uint64) {
	for i := range c.list {
		sum += c.list[i].weight
	}
	return sum
}

// meanSurprise returns the mean of the candidates' surprises relative to the likeliest one, in units of 2⁻⁵⁶ bits,
// weighted; the weights add up to total.
func (c *candidates) meanSurprise(by *backend.Weigher, total uint64) uint64 {
	var high, low uint64 // below 2¹²⁷: what has a weight has a surprise of at most 43·2⁵⁶
	for i := range c.list {
		x := &c.list[i]
		if x.weight == 0 {
			continue
		}
		h, l := bits.Mul64(x.weight, by.Surprise(x.logit))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high, _ = bits.Add64(high, h, carry)
	}
	mean, _ := bits.Div64(high, low, total)
	return mean
}

// typical keeps the candidates whose information, −log p, is closest to its mean, the entropy, until their
// weights exceed a share p of all. Source: Meister et al., arXiv:2202.00666.
func (c *candidates) typical(p float32, keep int) {
	if p >= 1 {
		return
	}
	by, total := c.weigh(1)
	mean := c.meanSurprise(&by, total)
	for i := range c.list { // for the time of sorting, weights are distances
		s := by.Surprise(c.list[i].logit)
		c.list[i].weight = max(s, mean) - min(s, mean)
	}
	slices.SortFunc(c.list, func(a, b candidate) int {
		if a.weight != b.weight {
			return cmp.Compare(a.weight, b.weight)
		}
		return better(a, b)
	})
	c.sorted = false
	share, sum := backend.ShareOf(p), uint64(0)
	for i := range c.list {
		sum += backend.WeightOf(by.Surprise(c.list[i].logit))
		if i+1 >= keep && exceeds(sum, share, total) {
			c.list = c.list[:i+1]
			break
		}
	}
	c.sort()
}

// exceeds reports whether a sum is more than a share of all.
func exceeds(sum uint64, share uint32, all uint64) bool {
	high, low := bits.Mul64(all, uint64(share))
	return sum>>32 > high || sum>>32 == high && sum<<32 > low
}

// topP keeps the likeliest candidates until their probabilities reach p. Source: Holtzman et al.,
// arXiv:1904.09751.
func (c *candidates) topP(p float32, keep int) {
	if p >= 1 {
		return
	}
	_, total := c.weigh(1)
	least := backend.LeastSum(backend.ShareOf(p), total)
	if c.sorted {
		c.reach(len(c.list), least, keep)
		return
	}
	// The answer is a head of the sorted list. Sort those above a weight, and lower that until it is there.
	for _, floor := range [...]uint64{backend.WeightOne >> 8, backend.WeightOne >> 16, backend.WeightOne >> 32, 0} {
		n := 0
		for i := range c.list {
			if c.list[i].weight >= floor {
				c.list[i], c.list[n] = c.list[n], c.list[i]
				n++
			}
		}
		slices.SortFunc(c.list[:n], better)
		if c.reach(n, least, keep) {
			break
		}
	}
	c.sorted = true
}

// reach cuts the list where the weights of its first n candidates, which are sorted, add up to least, and reports
// whether they do.
func (c *candidates) reach(n int, least uint64, keep int) bool {
	sum := uint64(0)
	for i := range c.list[:n] {
		sum += c.list[i].weight
		if sum >= least && i+1 >= keep {
			c.list = c.list[:i+1]
			return true
		}
	}
	return false
}

// minP keeps the candidates with at least p times the probability of the likeliest. Source: Nguyen et al.,
// arXiv:2407.01082.
func (c *candidates) minP(p float32, keep int) {
	if p <= 0 {
		return
	}
	floor := leastLogit(c.best().logit, backend.SurpriseOf(p))
	less := func(x candidate) bool { return x.logit < floor }
	if keep > 1 { // the likeliest stays anyway
		n := len(c.list)
		for i := range c.list {
			if less(c.list[i]) {
				n--
			}
		}
		if n < keep {
			c.sort()
			c.list = c.list[:min(keep, len(c.list))]
			return
		}
	}
	c.list = slices.DeleteFunc(c.list, less)
}

// leastLogit is the least logit whose surprise, relative to the best logit, is at most most. Surprise does not fall
// as logits fall, so that a bisection of all float32s finds it, and candidates are then compared with one number.
func leastLogit(best float32, most uint64) float32 {
	by := backend.NewWeigher(best, backend.ScaleOf(1))
	low, high := place(-math.MaxFloat32), place(best)
	for low < high {
		middle := low + (high-low)/2
		if by.Surprise(placed(middle)) <= most {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return placed(low)
}

// place numbers float32s in ascending order; placed is the float32 with a number.
func place(x float32) uint32 {
	b := math.Float32bits(x)
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

func placed(n uint32) float32 {
	if n>>31 != 0 {
		return math.Float32frombits(n &^ (1 << 31))
	}
	return math.Float32frombits(^n)
}

// xtc ("exclude top choices") removes the candidates with at least the threshold's probability, except the least
// likely of them. Source: llama.cpp, tools/main/README.md.
func (c *candidates) xtc(threshold float32, keep int) {
	if threshold > 0.5 {
		return
	}
	_, total := c.weigh(1)
	least := backend.LeastSum(backend.ShareOf(threshold), total)
	var last candidate
	n := 0
	for _, x := range c.list {
		if x.weight >= least {
			if n == 0 || better(last, x) < 0 {
				last = x
			}
			n++
		}
	}
	if n < 2 || len(c.list)-(n-1) < keep {
		return
	}
	c.list = slices.DeleteFunc(c.list, func(x candidate) bool { return x.weight >= least && x.id != last.id })
}

// surprising removes the weighed candidates with a surprise of more than mu bits, but leaves the best.
func (c *candidates) surprising(mu float64) {
	best, floor := c.best(), exp(float64(-mu*math.Ln2))*float64(c.total())
	c.list = slices.DeleteFunc(c.list, func(x candidate) bool { return float64(x.weight) < floor && x.id != best.id })
}

// temperature returns Temp, or a value that depends on the model's uncertainty: from Temp−DynTempRange at entropy 0
// to Temp+DynTempRange at the largest possible entropy.
func (c *candidates) temperature(p *Params) float64 {
	temp, span := float64(p.Temp), float64(p.DynTempRange)
	if span <= 0 || len(c.list) < 2 {
		return temp
	}
	least := max(0, temp-span)
	share := min(1, c.entropy()/log(float64(len(c.list))))
	return least + float64((temp+span-least)*pow(share, float64(p.DynTempExponent)))
}

// entropy returns the entropy of the probabilities, in nats.
func (c *candidates) entropy() float64 {
	by, total := c.weigh(1)
	mean := float64(c.meanSurprise(&by, total)) * 0x1p-56
	return float64(mean*math.Ln2) + log(float64(total)/backend.WeightOne)
}

// draw weighs the candidates under a temperature, and picks one. Temperature 0 takes the best.
func (c *candidates) draw(temp float64, d draws) candidate {
	if temp <= 0 {
		best := c.best()
		c.list = append(c.list[:0], best)
		temp = 1
	}
	_, total := c.weigh(temp)
	return c.pick(d.below(total))
}

// pick returns the candidate at a point between 0 and the sum of the weights, where the weights lie side by side in
// the order of ids. The list may be in any order: the id is found in two passes, its upper half of bits first.
func (c *candidates) pick(point uint64) candidate {
	const digit = 11 // bits, of the 22 that ids have
	prefix := int32(0)
	for _, shift := range [...]int{digit, 0} {
		var sums [1 << digit]uint64
		for i := range c.list {
			if x := &c.list[i]; x.id>>shift>>digit == prefix {
				sums[x.id>>shift&(1<<digit-1)] += x.weight
			}
		}
		d := int32(0)
		for ; point >= sums[d]; d++ {
			point -= sums[d]
		}
		prefix = prefix<<digit | d
	}
	return c.list[slices.IndexFunc(c.list, func(x candidate) bool { return x.id == prefix })]
}
