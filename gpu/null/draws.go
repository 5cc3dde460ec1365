package null

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
)

// draws returns the loop of a launch that chooses tokens, or nil.
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
	random, most uint64 // most: the largest surprise of a token that may be drawn
	scale        backend.DrawScale
	reach, topK  uint32
}

// candidate is a token that may be drawn.
type candidate struct {
	id     int
	logit  float32
	weight uint64
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

// pick draws among the likeliest TopK tokens: only those that together reach the share of TopP, and that are not less
// likely than MinP allows. Their weights lie side by side in the order of ids, and the random number is a point on
// them.
func (d *draw) pick(logits []float32) int {
	var all []candidate
	for i, v := range logits {
		if v > float32(math.Inf(-1)) {
			all = append(all, candidate{id: i, logit: v})
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.logit, a.logit) })
	all = all[:min(len(all), int(min(d.topK, kernel.MaxTopK)))]
	all = all[:d.cut(all)]
	_, total := weighCandidates(all, d.scale)
	point, _ := bits.Mul64(d.random, total)
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.id, b.id) })
	for _, c := range all {
		if point < c.weight {
			return c.id
		}
		point -= c.weight
	}
	panic("null: a draw's point is beyond the sum of weights")
}

// weighCandidates sets the weights of candidates that are sorted by logit, and returns their sum.
func weighCandidates(all []candidate, s backend.DrawScale) (by backend.Weigher, sum uint64) {
	by = backend.NewWeigher(all[0].logit, s)
	for i := range all {
		all[i].weight = backend.WeightOf(by.Surprise(all[i].logit))
		sum += all[i].weight
	}
	return by, sum
}

// cut is how many of the sorted candidates TopP and MinP leave.
func (d *draw) cut(all []candidate) int {
	by, total := weighCandidates(all, backend.ScaleOf(1))
	n := len(all)
	if d.reach != backend.AllShare {
		least, sum := backend.LeastSum(d.reach, total), uint64(0)
		for n = 0; n == 0 || sum < least; n++ {
			sum += all[n].weight
		}
	}
	for by.Surprise(all[n-1].logit) > d.most {
		n--
	}
	return n
}
