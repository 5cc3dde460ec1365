//go:build cgo && linux

package vulkan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/internal/backendtest"
)

// TestChunkFreeInOrder: where prompts and answers have one order of addition, a model that takes a prompt whole, in
// tiles, has the bits of one that takes it in parts, and row by row, as it will take an answer.
func TestChunkFreeInOrder(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	g, tokens := open(t), make([]int32, 150) // over the border of a block, and of a split
	for i := range tokens {
		tokens[i] = int32(i*7%200 + 3)
	}
	d := g.device()
	defer func(was, many bool) { g.k.inOrder, g.k.together = was, many }(g.k.inOrder, g.k.together)
	g.k.inOrder, g.k.together = true, true
	p := bound(t, "llama-3.1-8b", "Q8_0", true)
	m := &backendtest.Model{Bound: p}
	for r := range p.Weights {
		data, _ := randomWeights(t, p.Types[r], p.Weights[r].Rows, p.Weights[r].Cols, uint64(r))
		m.Weights = append(m.Weights, data)
	}
	x := run(t, d, m, len(tokens))
	want := x.logits(tokens, len(tokens))
	used := func(m shaders.Module) bool {
		for v := range g.k.compiled {
			if v.module == m {
				return true
			}
		}
		return false
	}
	require.True(t, used(shaders.AttendRows))
	require.Equal(t, want, x.logits(tokens, 70, 3, 66, 11), "in parts")
	require.Equal(t, want, x.logits(tokens, 1), "row by row")
	require.True(t, used(shaders.AttendRow))
	require.False(t, used(shaders.Attend) || used(shaders.AttendAny))
}

// TestStaged: where shared memory has room for fewer positions of a block at a time, the bits are the same.
func TestStaged(t *testing.T) {
	g := open(t)
	s := newScene(Heads{Query: 4, KV: 2, Features: 128, Dims: 128}, []int{9, 640}, false, 31)
	defer func(was bool, shared uint32) { g.k.inOrder, g.d.Facts.Shared = was, shared }(g.k.inOrder, g.d.Facts.Shared)
	g.k.inOrder = true
	want, _, _ := s.run(g, true)
	for _, staged := range []uint32{32, 16} {
		for c := (shaders.AttendRowConstants{Staged: 64}); c.Staged > staged; g.d.Facts.Shared -= 64 {
			var err error
			c, err = g.k.attendRow(&s.h)
			require.NoError(t, err)
		}
		y, _, _ := s.run(g, true)
		require.True(t, g.sameBits(want, y), "%d positions at a time", staged)
	}
	g.d.Facts.Shared = 4 << 10
	require.False(t, g.k.Fused(&s.h), "no room")
}
