//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/ir"
)

// spanRows are the rows of the spans that spanned makes.
const spanRows = 153

// spanned is three sequences of a step: one that begins, over several blocks, with three guessed tokens; one that goes
// on within a block with less rows than a convolution sees; one whose row begins a block. Their blocks are in no order.
// The states are a result.
func spanned(m *maker, values int) kernel.Recurrent {
	state := m.room(4 * 8 * values)
	copy(view[float32](state), some(4, 8*values, 1))
	m.out = append(m.out, state)
	return kernel.Recurrent{States: state.Address, N: 4, Tables: m.words(5, 1, 7, 0, 6, 2),
		Spans: m.words(0, 150, 0, 0, 147, 150, 2, 62, 3, 2, 152, 1, 64, 4, 1, 0, 0, 0, 0, 0)}
}

// TestConv compares results and states with gpu/null's. Channels are no whole blocks.
func TestConv(t *testing.T) {
	c := open(t)
	const channels = 70
	for _, size := range []int{2, 3, 4, 7} {
		build := func(m *maker) kernel.Launch {
			return &kernel.Conv{X: m.floats(some(1, spanRows*channels, 1)), Y: m.result(4 * spanRows * channels),
				Weights: m.floats(some(2, channels*size, 1)), Bias: m.floats(some(3, channels, 1)), Channels: channels, Size: size,
				XStride: channels, YStride: channels, Rows: spanRows, Of: spanned(m, (size-1)*channels)}
		}
		c.near(build, 1e-6, "results")
		ours, plain := c.both(build)
		require.Equal(t, plain[1].Bytes, ours[1].Bytes, "states of %d positions", size)
	}
}

// TestScan compares results and states with gpu/null's: keys that are no whole eights, values that are no whole block,
// and δ from what is nearly nothing to what forgets everything.
func TestScan(t *testing.T) {
	c := open(t)
	const heads, groups, values = 4, 2, 20
	for i, x := range []struct {
		keys                int
		delta, tiled, small bool
	}{{keys: 11}, {keys: 16, tiled: true}, {keys: 11, delta: true}, {keys: 40, delta: true, tiled: true},
		{keys: 11, small: true}, {keys: 100}, {keys: 200, delta: true}} {
		if testing.Short() && i > 3 {
			break
		}
		a := &ir.ScanArgs{Heads: heads, Groups: groups, KDim: x.keys, VDim: values, Tiled: x.tiled, Scale: 0.5}
		delta := make([]float32, spanRows*heads)
		for j := range delta {
			delta[j] = float32(j%29) - 20
			if x.small {
				delta[j] = float32(j%7) - 18
			}
		}
		build := func(m *maker) kernel.Launch {
			y := kernel.Floats{At: m.result(4 * spanRows * heads * values), Stride: heads * values}
			s := &kernel.Scan{Args: a, Delta: x.delta, Rows: spanRows, Y: y, Decay: m.floats([]float32{-0.1, -1, -8, -1e-3}),
				Shift: m.floats(some(20, heads, 1)),
				Skip:  m.floats(some(21, heads, 1)), Of: spanned(m, heads*x.keys*values)}
			for head := range slices.Chunk(view[float32](m.out[1]), x.keys*values) {
				for n := range head { // a card and gpu/null lay them out differently
					head[n] = head[0]
				}
			}
			for j, w := range []int{groups * x.keys, groups * x.keys, heads * values, heads, heads} {
				in := some(uint64(10+j), spanRows*w, 0.3)
				if j == 3 {
					in = delta
				}
				s.In[j] = kernel.Floats{At: m.floats(in), Stride: w}
			}
			return s
		}
		what := fmt.Sprintf("%+v", x)
		ours, plain := c.both(build)
		near := func(want, got float32) {
			t.Helper()
			require.InDelta(t, want, got, 2e-5*(1+float64(max(want, -want))), what)
		}
		for n, v := range view[float32](plain[0]) {
			near(v, view[float32](ours[0])[n])
		}
		for n, v := range view[float32](ours[1]) { // [block][head][value][key] on a card
			block, column, key := n/(values*x.keys), n/x.keys%values, n%x.keys
			near(view[float32](plain[1])[(block*x.keys+key)*values+column], v)
		}
	}
}
