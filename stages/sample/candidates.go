package sample

import (
	"math"
	"slices"
)

// candidate is a token that may still be chosen.
type candidate struct {
	id    int32
	logit float64
	p     float64 // a probability after softmax, a weight after weigh
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
				c.list = append(c.list, candidate{id: int32(i), logit: l})
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
		c.list = append(c.list, candidate{id: int32(i), logit: float64(x)})
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

// softmax sets the probabilities and returns their norm: log p = logit − norm.
func (c *candidates) softmax() (norm float64) {
	c.weigh(1)
	sum := c.total()
	for i := range c.list {
		c.list[i].p /= sum
	}
	return c.best().logit + log(sum)
}

// weigh sets each p to exp(logit/temp), up to a common factor. Temperature 0 leaves the best candidate alone.
func (c *candidates) weigh(temp float64) {
	best := c.best()
	if temp <= 0 {
		c.list = append(c.list[:0], best)
		temp = 1
	}
	for i := range c.list {
		x := &c.list[i]
		x.p = exp((x.logit - best.logit) / temp)
	}
}

func (c *candidates) total() (sum float64) {
	for i := range c.list {
		sum += c.list[i].p
	}
	return sum
}

// entropy returns the entropy of the probabilities, in nats. norm is the result of softmax.
func (c *candidates) entropy(norm float64) (h float64) {
	for _, x := range c.list {
		h += float64(x.p * (norm - x.logit))
	}
	return h
}

// typical keeps the candidates whose information, −log p, is closest to its mean, the entropy, until their
// probabilities exceed p. Source: Meister et al., arXiv:2202.00666.
func (c *candidates) typical(p float64, keep int) {
	if p >= 1 {
		return
	}
	norm := c.softmax()
	h := c.entropy(norm)
	slices.SortFunc(c.list, func(a, b candidate) int {
		switch x, y := math.Abs(norm-a.logit-h), math.Abs(norm-b.logit-h); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return better(a, b)
	})
	c.sorted = false
	sum := 0.0
	for i := range c.list {
		sum += c.list[i].p
		if sum > p && i+1 >= keep {
			c.list = c.list[:i+1]
			break
		}
	}
	c.sort()
}

// topP keeps the likeliest candidates until their probabilities reach p. Source: Holtzman et al.,
// arXiv:1904.09751.
func (c *candidates) topP(p float64, keep int) {
	if p >= 1 {
		return
	}
	c.softmax()
	if c.sorted {
		c.reach(len(c.list), p, keep)
		return
	}
	// The answer is a head of the sorted list. Sort those above a probability, and lower that until it is there.
	top := 0.0
	for i := range c.list {
		top = max(top, c.list[i].p)
	}
	for _, least := range [...]float64{0x1p-8, 0x1p-16, 0x1p-32, 0} {
		n := 0
		for i := range c.list {
			if c.list[i].p >= least*top {
				c.list[i], c.list[n] = c.list[n], c.list[i]
				n++
			}
		}
		slices.SortFunc(c.list[:n], better)
		if c.reach(n, p, keep) {
			break
		}
	}
	c.sorted = true
}

// reach cuts the list where the sum of its first n candidates, which are sorted, reaches p, and reports whether it
// does.
func (c *candidates) reach(n int, p float64, keep int) bool {
	sum := 0.0
	for i := range c.list[:n] {
		sum += c.list[i].p
		if sum >= p && i+1 >= keep {
			c.list = c.list[:i+1]
			return true
		}
	}
	return false
}

// minP keeps the candidates with at least p times the probability of the likeliest. Source: Nguyen et al.,
// arXiv:2407.01082.
func (c *candidates) minP(p float64, keep int) {
	if p <= 0 {
		return
	}
	floor := c.best().logit + log(p)
	n := 0
	for i := range c.list {
		if c.list[i].logit >= floor {
			n++
		}
	}
	if n < keep {
		c.sort()
		c.list = c.list[:min(keep, len(c.list))]
		return
	}
	c.list = slices.DeleteFunc(c.list, func(x candidate) bool { return x.logit < floor })
}

// xtc ("exclude top choices") removes the candidates with at least the threshold's probability, except the least
// likely of them. Source: llama.cpp, tools/main/README.md.
func (c *candidates) xtc(threshold float64, keep int) {
	if threshold > 0.5 {
		return
	}
	c.softmax()
	var last candidate
	n := 0
	for _, x := range c.list {
		if x.p >= threshold {
			if n == 0 || better(last, x) < 0 {
				last = x
			}
			n++
		}
	}
	if n < 2 || len(c.list)-(n-1) < keep {
		return
	}
	c.list = slices.DeleteFunc(c.list, func(x candidate) bool { return x.p >= threshold && x.id != last.id })
}

// surprising removes the candidates with a surprise of more than mu bits, but leaves the best. p are weights.
func (c *candidates) surprising(mu float64) {
	best, floor := c.best(), exp(float64(-mu*math.Ln2))*c.total()
	c.list = slices.DeleteFunc(c.list, func(x candidate) bool { return x.p < floor && x.id != best.id })
}

// temperature returns Temp, or a value that depends on the model's uncertainty: from Temp−DynTempRange at entropy 0
// to Temp+DynTempRange at the largest possible entropy.
func (c *candidates) temperature(p *Params) float64 {
	temp, span := float64(p.Temp), float64(p.DynTempRange)
	if span <= 0 || len(c.list) < 2 {
		return temp
	}
	least := max(0, temp-span)
	share := min(1, c.entropy(c.softmax())/log(float64(len(c.list))))
	return least + float64((temp+span-least)*pow(share, float64(p.DynTempExponent)))
}

// pick draws a candidate by its weight. u is uniform in [0, 1).
func (c *candidates) pick(u float64) candidate {
	target, sum := u*c.total(), 0.0
	for _, x := range c.list {
		sum += x.p
		if sum > target {
			return x
		}
	}
	return c.best() // u·total was rounded up to total
}
