package null

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// mixtures are the loops of what goes on around experts.
func mixtures(l kernel.Launch) func(*access) {
	switch k := l.(type) {
	case *kernel.Route:
		return bind(route, k)
	case *kernel.Chosen:
		return bind(chosen, k)
	case *kernel.Group:
		return bind(group, k)
	case *kernel.Combine:
		return bind(combine, k)
	}
	return nil
}

func route(x *access, k *kernel.Route) {
	used, n, factors := k.Args.Used, there(x, k.Count, k.Rows), vector(x, k.Factors, k.Experts)
	for r := range k.Rows {
		ids := out[uint32](x, k.IDs+uint64(4*r*used), used)
		if r >= n {
			for i := range ids {
				ids[i] = kernel.NoExpert
			}
			continue
		}
		logits := in[float32](x, row(k.Logits, r, k.XStride), k.Experts)
		weights := out[float32](x, k.Weights+uint64(4*r*used), used)
		var dense []float32
		if k.Dense != 0 {
			dense = out[float32](x, row(k.Dense, r, k.DenseStride), k.Experts)
		}
		all := weigh(x, k, logits)
		clear(dense)
		slices.SortFunc(all, func(a, b share) int { return cmp.Compare(a.expert, b.expert) })
		for i, s := range all {
			ids[i], weights[i] = uint32(s.expert), s.weight*or(factors, s.expert, 1)
			if dense != nil {
				dense[s.expert] = weights[i]
			}
		}
	}
}

// share is an expert that was chosen.
type share struct {
	expert int
	weight float32
}

// weigh chooses experts, and gives them their weights.
func weigh(x *access, k *kernel.Route, logits []float32) (all []share) {
	a, scores := k.Args, make([]float64, len(logits))
	for e, v := range logits {
		if scores[e] = float64(v); a.Scoring == ir.SigmoidEach {
			scores[e] = 1 / (1 + math.Exp(-scores[e]))
		}
	}
	keys := slices.Clone(scores) // without bias and groups logits choose: scores may be equal where these are not
	if a.Scoring == ir.SoftmaxAll {
		softmax(scores)
	}
	if k.Bias != 0 || a.Groups != 0 {
		bias := vector(x, k.Bias, k.Experts)
		for e := range keys {
			keys[e] = scores[e] + float64(or(bias, e, 0))
		}
	}
	if a.Groups != 0 {
		keepGroups(a, keys)
	}
	list := best(keys, a.Used)
	chosen := make([]float64, len(list))
	for i, e := range list {
		chosen[i] = scores[e]
	}
	switch a.Scoring {
	case ir.SoftmaxChosen:
		softmax(chosen)
	case ir.SparseMixer:
		sparse(chosen, list, scores)
	}
	total := 1.0
	if a.Normalise {
		total = 0
		for _, v := range chosen {
			total += v
		}
	}
	for i, e := range list {
		all = append(all, share{e, float32(chosen[i] / total * float64(a.Scale))})
	}
	return all
}

func softmax(v []float64) {
	most, total := slices.Max(v), 0.0
	for i := range v {
		v[i] = math.Exp(v[i] - most)
		total += v[i]
	}
	for i := range v {
		v[i] /= total
	}
}

// keepGroups has the experts of all but the best groups be the last to be chosen.
func keepGroups(a *ir.RouteArgs, keys []float64) {
	size := len(keys) / a.Groups
	good := make([]float64, a.Groups)
	for g := range good {
		of := keys[g*size:][:size]
		for _, e := range best(of, min(a.GroupBest, size)) {
			good[g] += of[e]
		}
	}
	used := best(good, a.GroupsUsed)
	for e := range keys {
		if !slices.Contains(used, e/size) {
			keys[e] = math.NaN()
		}
	}
}

// sparse replaces the logits of chosen experts, the best first, by their part in a softmax over those that are left and
// about as good.
func sparse(chosen []float64, list []int, logits []float64) {
	for i, top := range chosen {
		sum := 0.0
		for e, v := range logits {
			far := (top - v) / math.Max(math.Abs(v), top)
			if !slices.Contains(list[:i], e) && !(far > ir.Near) { // of zeros it is no number
				sum += math.Exp(v - top)
			}
		}
		chosen[i] = 1 / sum
	}
}

// best lists the indices of the n largest, of equal ones the first. NaN is the least.
func best(v []float64, n int) []int {
	list := make([]int, len(v))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(i, j int) int { return cmp.Compare(v[j], v[i]) })
	return list[:n]
}

func chosen(x *access, k *kernel.Chosen) {
	present := there(x, k.Count, k.Rows)
	for r := range k.Rows {
		ids := out[uint32](x, k.IDs+uint64(4*r*k.Used), k.Used)
		weights := out[float32](x, k.Weights+uint64(4*r*k.Used), k.Used)
		n := 0
		if r < present {
			for e, w := range in[float32](x, row(k.Dense, r, k.DenseStride), k.Experts) {
				if w != 0 && n < k.Used {
					ids[n], weights[n] = uint32(e), w
					n++
				}
			}
		}
		for ; n < k.Used; n++ {
			if ids[n], weights[n] = 0, 0; r >= present {
				ids[n] = kernel.NoExpert
			}
		}
	}
}

func group(x *access, k *kernel.Group) {
	ids, at := in[uint32](x, k.IDs, k.Pairs), 0
	entries := out[uint32](x, k.Entries, int(kernel.GroupBytes(k.Experts, k.Pairs, k.Size)/4))
	for i := range entries {
		entries[i] = kernel.NoExpert
	}
	for e := range uint32(k.Experts) {
		n := 0
		for p, id := range ids {
			if id != e {
				continue
			}
			entries[at] = e
			entries[at+1+n] = uint32(p)
			if n++; n == k.Size {
				at, n = at+k.Size+1, 0
			}
		}
		if n > 0 {
			at += k.Size + 1
		}
	}
}

func combine(x *access, k *kernel.Combine) {
	for r := range there(x, k.Count, k.Rows) {
		sum := make([]float32, k.Width)
		for p := r * k.Used; p < (r+1)*k.Used; p++ {
			share := float32(1)
			if k.Weights != 0 {
				share = in[float32](x, k.Weights+uint64(4*p), 1)[0]
			}
			for i, v := range in[float32](x, row(k.X, p, k.XStride), k.Width) {
				sum[i] += float32(share * v)
			}
		}
		if k.Residual != 0 {
			for i, v := range in[float32](x, row(k.Residual, r, k.YStride), k.Width) {
				sum[i] += v
			}
		}
		copy(out[float32](x, row(k.Y, r, k.YStride), k.Width), sum)
	}
}
