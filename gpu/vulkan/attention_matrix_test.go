//go:build cgo && linux

package vulkan

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/judge"
)

// TestChunkFreeBySquares: a model that takes a prompt whole has the bits of one that takes it in parts, and row by row,
// as it will take an answer.
func TestChunkFreeBySquares(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	g, tokens := open(t), make([]int32, 150) // over the border of a block, and of a split
	for i := range tokens {
		tokens[i] = int32(i*7%200 + 3)
	}
	g.k.attendSquares = true
	d := g.device()
	p := bound(t, "llama-3.1-8b", "Q8_0", true)
	m := &backendtest.Model{Model: &judge.Model{Bound: p}}
	for r := range p.Weights {
		data, _ := randomWeights(t, p.Types[r], p.Weights[r].Rows, p.Weights[r].Cols, uint64(r))
		m.Weights = append(m.Weights, data)
	}
	x := backendtest.Run(t, d, m, len(tokens))
	want := x.Logits(tokens, len(tokens))
	require.Equal(t, want, x.Logits(tokens, 70, 3, 66, 11), "in parts")
	require.Equal(t, want, x.Logits(tokens, 1), "row by row")
	for v := range g.k.compiled {
		others := []shaders.Module{shaders.Attend, shaders.AttendAny, shaders.AttendRows}
		require.False(t, slices.Contains(others, v.module), "%s", v.module)
	}
}

// TestConformanceBySquares: attention by squares is what the oracle's is.
func TestConformanceBySquares(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	g := open(t)
	g.k.attendSquares = true
	backendtest.Attention(t, g.device(), ref.New())
}

// TestSquaresOfPairs: what a pair has does not depend on how many squares of them a workgroup takes.
func TestSquaresOfPairs(t *testing.T) {
	g := open(t)
	shared := g.d.Facts.Shared
	defer func(was bool) { g.k.attendSquares, g.d.Facts.Shared = was, shared }(g.k.attendSquares)
	g.k.attendSquares = true
	h := kernel.Heads{Query: 8, KV: 1, Features: 32, Dims: 32}
	var positions []int
	for p := range 40 {
		positions = append(positions, 480+p)
	}
	s := newScene(h, positions, true, 61)
	c, err := g.k.attendMatrix(&h, len(positions))
	require.NoError(t, err)
	require.Greater(t, c.Tiles, uint32(1))
	s.compute()
	want, keys, values := s.run(g, false)
	s.check(g, want, keys, values)
	for c.Tiles > 1 {
		g.d.Facts.Shared = g.k.attendShared(&c) - 1
		c, err = g.k.attendMatrix(&h, len(positions))
		require.NoError(t, err)
		y, _, _ := s.run(g, false)
		require.True(t, g.sameBits(want, y), "%d squares", c.Tiles)
	}
	g.d.Facts.Shared = g.k.attendShared(&c) - 1
	require.False(t, g.k.bySquares(&h), "no room")
}

// TestSequencesApart: what another sequence has in its cache, be it infinite, comes near no other's results.
func TestSequencesApart(t *testing.T) {
	g := open(t)
	defer func(was bool) { g.k.attendSquares = was }(g.k.attendSquares)
	g.k.attendSquares = true
	s := newScene(kernel.Heads{Query: 4, KV: 2, Features: 64, Dims: 64}, []int{70, 5, 130}, false, 71)
	want, _, _ := s.run(g, false)
	for head := range s.h.KV {
		at := s.at(s.rows[1], 3, head)
		for i := range s.h.Features {
			s.keys[at+i], s.values[at+i] = 0x7c00, 0x7c00 // infinite
		}
	}
	got, _, _ := s.run(g, false)
	for _, r := range []int{0, 2} {
		require.True(t, g.sameBits(want[r*256:(r+1)*256], got[r*256:(r+1)*256]), "row %d", r)
	}
	require.False(t, g.sameBits(want[256:512], got[256:512]))
}
