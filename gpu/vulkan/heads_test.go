//go:build cgo && linux

package vulkan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/tile/tiletest"
	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
)

// TestHeadLinear multiplies by weights of all layouts, heads that end within a tile, and compares with exact sums. Rows
// beyond the count stay as they are, and a row alone has the bits that it has among others.
func TestHeadLinear(t *testing.T) {
	g := open(t)
	const heads, each, cols, rows, there = 3, 21, 512, 16, 11
	for _, typ := range types {
		t.Run(fmt.Sprint(typ), func(t *testing.T) {
			g := g.with(t)
			m, _, values := g.matrixOf(typ, heads*each, cols, 1)
			x := randomRow(heads*cols*rows, 2)
			in, many, one, count := g.floats(x), g.room(4*heads*each*rows), g.room(4*heads*each), g.words(there)
			h := kernel.HeadLinear{W: &m, X: in.Address, Y: many.Address, Heads: heads, XStride: heads * cols,
				YStride: heads * each, Rows: rows, Count: count.Address}
			g.run(func(r *vk.Recording) {
				require.NoError(t, g.k.HeadLinear(r, &h))
				h.X, h.Y, h.Rows, h.Count = in.Address+4*heads*cols*9, one.Address, 1, 0
				require.NoError(t, g.k.HeadLinear(r, &h))
			})
			y := floats(many.Bytes)
			tiletest.NearHeads(t, y, values, x, heads, each, cols, there)
			require.True(t, g.sameBits(y[9*heads*each:10*heads*each], floats(one.Bytes)), "a row alone")
		})
	}
}
