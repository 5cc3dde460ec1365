package null

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
)

// draws are the loops of what chooses tokens.
func draws(l kernel.Launch) func(*access) {
	switch k := l.(type) {
	case *kernel.ArgMax:
		return bind(argMax, k)
	case *kernel.Sample:
		return bind(sample, k)
	}
	return nil
}

func argMax(x *access, k *kernel.ArgMax) {
	own(x, k.Scratch, int(kernel.ArgMaxScratch(k.Rows)))
	for r := range k.Rows {
		largest, at := math.Inf(-1), 0
		for i, v := range in[float32](x, row(k.X, r, k.Stride), k.Width) {
			if float64(v) > largest {
				largest, at = float64(v), i
			}
		}
		choose(x, k.IDs, k.Second, r, at)
	}
}

// choose stores the token of a row in one place, or in two.
func choose(x *access, ids, second uint64, r, id int) {
	for _, to := range []uint64{ids, second} {
		if to != 0 {
			out[uint32](x, to+uint64(4*r), 1)[0] = uint32(id)
		}
	}
}

// draw is what kernel.PutDraw writes.
type draw struct {
	chance, share float64
	temp, reach   float32
	topK, _       uint32
}

// candidate is a token that may be drawn.
type candidate struct {
	id     int
	logit  float64
	weight float64
}

func sample(x *access, k *kernel.Sample) {
	own(x, k.Scratch, int(kernel.SampleScratch(k.Rows)))
	for r := range k.Rows {
		d := told[draw](x, k.Draws+uint64(kernel.DrawBytes*r), 1)[0]
		if d.topK == 0 {
			continue
		}
		choose(x, k.IDs, k.Second, r, d.pick(in[float32](x, row(k.Logits, r, k.Stride), k.Width)))
	}
}

// pick draws among the likeliest TopK: those of them that together reach a probability, with some share of the
// likeliest one's. Sums go in the order of candidates, each operation rounded by itself.
func (d *draw) pick(logits []float32) int {
	var all []candidate
	for i, v := range logits {
		if v > float32(math.Inf(-1)) {
			all = append(all, candidate{id: i, logit: float64(v)})
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.logit, a.logit) })
	all = all[:min(len(all), int(min(d.topK, kernel.MaxTopK)))]
	weighCandidates(all, 1)
	all = all[:d.cut(all)]
	target, sum := d.chance*weighCandidates(all, float64(d.temp)), 0.0
	for _, c := range all {
		if sum += c.weight; sum > target {
			return c.id
		}
	}
	return all[0].id
}

// weighCandidates weighs by a temperature, and returns the sum.
func weighCandidates(all []candidate, temp float64) (sum float64) {
	for i := range all {
		all[i].weight = power((all[i].logit - all[0].logit) / temp)
		sum += all[i].weight
	}
	return sum
}

// cut is how many candidates probability and share leave.
func (d *draw) cut(all []candidate) int {
	n := len(all)
	if d.reach < 1 {
		total, sum := 0.0, 0.0
		for _, c := range all {
			total += c.weight
		}
		for i := 0; i < n; i++ {
			if sum += float64(all[i].weight / total); sum >= float64(d.reach) {
				n = i + 1
			}
		}
	}
	for n > 1 && all[n-1].logit < all[0].logit+d.share {
		n--
	}
	return n
}

// power is eˣ for x of 0 or less: 2ᵏ·eʳ with r within half of ln 2, by Taylor's series, its even and odd powers apart.
// Every device that draws has these operations.
func power(x float64) float64 {
	if x < -708 {
		return 0
	}
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	r := (x - float64(k*6.93147180369123816490e-01)) - float64(k*1.90821492927058770002e-10)
	s, even, odd := float64(r*r), 1./3628800, 1./39916800
	for _, of := range [...][2]float64{{1. / 40320, 1. / 362880}, {1. / 720, 1. / 5040}, {1. / 24, 1. / 120},
		{1. / 2, 1. / 6}, {1, 1}} {
		even, odd = float64(even*s)+of[0], float64(odd*s)+of[1]
	}
	return (even + float64(odd*r)) * math.Float64frombits(uint64(1023+int64(k))<<52)
}
