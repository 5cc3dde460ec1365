package null

import (
	"cmp"
	"slices"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// mixtures returns the loop of a launch that routes rows to experts or sums their results, or nil.
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
	bias := vector(x, k.Bias, k.Experts)
	if bias == nil {
		bias = make([]float32, k.Experts)
	}
	for r := range k.Rows {
		ids := out[uint32](x, k.IDs+uint64(4*r*used), used)
		if r >= n {
			for i := range ids {
				ids[i] = kernel.NoExpert
			}
			continue
		}
		weights := out[float32](x, k.Weights+uint64(4*r*used), used)
		var dense []float32
		if k.Dense != 0 {
			dense = out[float32](x, row(k.Dense, r, k.DenseStride), k.Experts)
		}
		clear(dense)
		for i, s := range shares(k.Args, in[float32](x, row(k.Logits, r, k.XStride), k.Experts), bias) {
			ids[i], weights[i] = uint32(s.expert), float32(s.weight*float64(or(factors, s.expert, 1)))
			if dense != nil {
				dense[s.expert] = weights[i]
			}
		}
	}
}

// share is a chosen expert with its weight.
type share struct {
	expert int
	weight float64
}

// shares lists the chosen experts of a row in ascending order.
func shares(a *ir.RouteArgs, logits, bias []float32) (all []share) {
	experts, weights := a.Choose(logits, bias)
	for i, e := range experts {
		all = append(all, share{e, weights[i]})
	}
	slices.SortFunc(all, func(a, b share) int { return cmp.Compare(a.expert, b.expert) })
	return all
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
