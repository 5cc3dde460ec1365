package backendtest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// heads are shapes of attention that models have: sizes of heads, and query heads per KV head.
var heads = []struct {
	dim, kvHeads, group, window, softCap int
	sinks                                bool
}{
	{dim: 64, kvHeads: 3, group: 1},
	{dim: 64, kvHeads: 1, group: 8, window: 70},
	{dim: 80, kvHeads: 2, group: 2},
	{dim: 96, kvHeads: 1, group: 3, softCap: 5},
	{dim: 128, kvHeads: 2, group: 4},
	{dim: 64, kvHeads: 2, group: 8, window: 128, sinks: true},
	{dim: 128, kvHeads: 1, group: 3, window: 3},
	{dim: 256, kvHeads: 1, group: 2, window: 100, softCap: 20},
}

// Attention compares every shape with the oracle in every type of cache; the oracle rounds to the same types. A device
// that also rounds what is multiplied with halves may differ by what that explains: 2^-12 of a weight, and the error of
// its score, which is a sum of products with that error each.
func Attention(t *testing.T, d, oracle backend.Device) {
	const n = 2*backend.BlockSize + 9
	for _, h := range heads {
		a := ir.AttendArgs{
			Heads: h.kvHeads * h.group, KVHeads: h.kvHeads, KDim: h.dim, VDim: h.dim,
			Scale: float32(2 / math.Sqrt(float64(h.dim))), Window: h.window, SoftCap: float32(h.softCap),
		}
		width := a.Heads * h.dim
		p, err := around(width, func(b *ir.Builder, x ir.Value) ir.Value {
			if h.sinks {
				kv := h.kvHeads * h.dim
				return b.AttendSinks(x, b.Slice(x, width-kv, kv), b.Slice(x, 0, kv), "sinks", a)
			}
			return ir.CaseAttend(b, x, a)
		})
		require.NoError(t, err)
		m, err := randomModel(p, 3, all(quant.F32))
		require.NoError(t, err)
		for _, kv := range []backend.KV{backend.KVF32, backend.KVF16, backend.KVQ8} {
			t.Run(fmt.Sprintf("%+v %s", h, kv), func(t *testing.T) {
				got, want := both(t, d, oracle, m, kv, prompt(4, n, width))
				tolerance := 2e-5
				if kv.Format == backend.KVF16.Format && d.Traits().Halves {
					tolerance = 1.0 / 512
				}
				for i := range got {
					near(t, got, want, i, width, tolerance*(1+math.Abs(float64(want[i]))))
				}
			})
		}
	}
}
