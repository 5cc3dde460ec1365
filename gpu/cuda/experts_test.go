//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// TestRoute compares the choice with gpu/null's, and weights but for rounding: all ways to score, with and without
// groups, bias, factors; equal logits, NaN, and a row that is not there.
func TestRoute(t *testing.T) {
	c := open(t)
	for _, experts := range []int{8, 60, 256} {
		for i, a := range []ir.RouteArgs{
			{Scoring: ir.SoftmaxAll, Used: 2, Scale: 1}, {Scoring: ir.SoftmaxAll, Used: 4, Normalise: true, Scale: 2.5},
			{Scoring: ir.SoftmaxChosen, Used: 3, Scale: 1}, {Scoring: ir.SparseMixer, Used: 2, Scale: 1},
			{Scoring: ir.SigmoidEach, Used: 4, Normalise: true, Scale: 2.5, Groups: 4, GroupsUsed: 2, GroupBest: 2},
			{Scoring: ir.SigmoidEach, Used: 2, Scale: 1, Groups: 4, GroupsUsed: 3, GroupBest: 1},
		} {
			const rows = 4
			logits := some(uint64(i), rows*experts, 3)
			copy(logits[experts:], []float32{1, 1, 1, 1, 1, 1, 1, 1})
			logits[2*experts] = float32(math.NaN())
			if a.Scoring == ir.SoftmaxAll || a.Groups > 0 { // then nothing is a number, or the order is not defined
				logits[2*experts] = -40
			}
			ours, plain := c.both(func(m *maker) kernel.Launch {
				r := &kernel.Route{Args: &a, Experts: experts, Logits: m.floats(logits), XStride: experts,
					IDs: m.result(4 * rows * a.Used), Weights: m.result(4 * rows * a.Used), Dense: m.result(4 * rows * experts),
					DenseStride: experts, Rows: rows, Count: m.words(rows - 1)}
				if i%2 == 1 {
					r.Factors = m.floats(some(40, experts, 2))
				}
				if i > 3 {
					r.Bias = m.floats(some(41, experts, 0.1))
				}
				return r
			})
			what := fmt.Sprintf("%d experts, %s", experts, &a)
			require.Equal(t, view[uint32](plain[0]), view[uint32](ours[0]), what)
			for j := 1; j < 3; j++ {
				for n, v := range view[float32](plain[j]) {
					require.InDelta(t, v, view[float32](ours[j])[n], 2e-6*(1+math.Abs(float64(v))), what)
				}
			}
		}
	}
}

// TestChosen lists experts of a choice that was made elsewhere, by bits.
func TestChosen(t *testing.T) {
	c := open(t)
	const rows, experts, used = 70, 9, 3
	dense := make([]float32, rows*experts)
	for r := range rows {
		for i := range r % (used + 1) {
			dense[r*experts+(r*5+i*2)%experts] = float32(r + i + 1)
		}
	}
	ours, plain := c.both(func(m *maker) kernel.Launch {
		return &kernel.Chosen{Experts: experts, Used: used, Dense: m.floats(dense), DenseStride: experts,
			IDs: m.result(4 * rows * used), Weights: m.result(4 * rows * used), Rows: rows, Count: m.words(rows - 2)}
	})
	for i := range plain {
		require.Equal(t, plain[i].Bytes, ours[i].Bytes)
	}
}

// TestGroup: every pair is in an entry of its expert, and an expert's entries are full but for the last.
func TestGroup(t *testing.T) {
	c := open(t)
	for _, pairs := range []int{1, 30, 700} {
		const experts, size = 20, 8
		var ids []uint32
		for p := range pairs {
			ids = append(ids, uint32(p*p%17))
			if p%13 == 12 {
				ids[p] = kernel.NoExpert
			}
		}
		ours, plain := c.both(func(m *maker) kernel.Launch {
			return &kernel.Group{IDs: m.words(ids...), Entries: m.result(int(kernel.GroupBytes(experts, pairs, size))),
				Experts: experts, Pairs: pairs, Size: size}
		})
		require.Equal(t, members(view[uint32](plain[0]), size), members(view[uint32](ours[0]), size), "%d pairs", pairs)
	}
}

// members are the pairs of each expert, and how many entries it has.
func members(entries []uint32, size int) map[uint32][]uint32 {
	all := map[uint32][]uint32{}
	for e := range slices.Chunk(entries, size+1) {
		if e[0] != kernel.NoExpert {
			all[e[0]] = append(all[e[0]], e[1:]...)
		}
	}
	for _, pairs := range all {
		slices.Sort(pairs)
	}
	return all
}

// TestCombine adds up experts with weights and without, with the residual where the sums go.
func TestCombine(t *testing.T) {
	c := open(t)
	const rows, used, width = 3, 4, 300
	for _, weighted := range []bool{false, true} {
		c.near(func(m *maker) kernel.Launch {
			k := &kernel.Combine{X: m.floats(some(1, rows*used*width, 1)), Y: m.result(4 * rows * width), XStride: width,
				YStride: width, Width: width, Used: used, Rows: rows, Count: m.words(2)}
			if weighted {
				k.Weights, k.Residual = m.floats(some(2, rows*used, 1)), m.floats(some(3, rows*width, 1))
			}
			return k
		}, 1e-6, "combine")
	}
}
