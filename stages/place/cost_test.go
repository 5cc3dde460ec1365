package place

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
)

var fast = Speeds{Disk: 3e9, Memory: 30e9, Multiply: 2e12}

// planned makes the plan of one model.
func planned(t *testing.T, shape, file string, weights float64) (*ir.Bound, *Model) {
	p := shaped(t, shape, file)
	plan, err := Make([]Ask{{Program: p, Weights: int64(weights * gib), Sequences: 8}}, Machine{Memory: 64 * gib})
	require.NoError(t, err)
	p.Piece = plan.Models[0].Piece
	return p, &plan.Models[0]
}

// TestExpectDense: what is resident is bound by memory, what streams by the disk: exactly by what it reads.
func TestExpectDense(t *testing.T) {
	p, m := planned(t, "llama-3.1-8b", "Q8_0", 0)
	e := m.Expect(p, fast, 1, 0)
	require.Zero(t, e.Streamed)
	require.InDelta(t, 30e9*reachMemory/7.98e9, e.Decode, 0.1)
	require.InDelta(t, 2e12*reachMultiply/(2*6.98e9), e.Prefill, 2)

	p, m = planned(t, "llama-3.1-8b", "Q8_0", 4)
	e = m.Expect(p, fast, 1, 0)
	require.InDelta(t, 3.83*gib, e.Streamed, 0.01*gib)
	require.InDelta(t, 3e9/e.Streamed, e.Decode, 1e-6)
	require.Less(t, e.Prefill, 2e12*reachMultiply/(2*6.98e9), "a chunk's groups are read, too")
	eight := m.Expect(p, fast, 8, 0)
	require.InDelta(t, e.Streamed/8, eight.Streamed, 1, "sequences of a step share what is read")
	require.InDelta(t, 8*e.Decode, eight.Decode, 1e-6)
	require.Less(t, m.Expect(p, fast, 8, 8000).Decode, eight.Decode*1.01)
}

func TestExpectExperts(t *testing.T) {
	p, m := planned(t, "qwen3-30b-a3b", "Q4_K_M", 6)
	e := m.Expect(p, fast, 1, 0)
	require.InDelta(t, 40.0/128, e.Hits, 0.01)
	shelf := m.Parts[0].Shelves[0]
	bytes := float64(m.Homes[shelf.Groups[0]].Group.Bytes)
	require.InDelta(t, 48*8*bytes*(1-e.Hits), e.Streamed, 0.15*e.Streamed, "eight experts of each layer, less hits")
	require.Less(t, e.Decode, 3e9/e.Streamed, "experts are not read before they are chosen")
	require.Greater(t, e.Decode, 0.8*3e9/e.Streamed)
	eight := m.Expect(p, fast, 8, 0)
	require.Less(t, eight.Streamed, e.Streamed, "some experts are shared")
	require.Greater(t, eight.Streamed, e.Streamed/8)
	more, n := planned(t, "qwen3-30b-a3b", "Q4_K_M", 12)
	require.Greater(t, n.Expect(more, fast, 1, 0).Decode, e.Decode)
}

// TestExpectUnknown: without measurements nothing is expected, but what is read is known.
func TestExpectUnknown(t *testing.T) {
	p, m := planned(t, "llama-3.1-8b", "Q8_0", 4)
	e := m.Expect(p, Speeds{}, 1, 0)
	require.Zero(t, e.Decode)
	require.Zero(t, e.Prefill)
	require.Positive(t, e.Streamed)
}
