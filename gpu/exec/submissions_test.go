package exec

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// TestWorks: a dense program's products are its weights; attention costs what rows see.
func TestWorks(t *testing.T) {
	m := archtest.Open(t, "../../internal/mini/mini-Q4_K_M.gguf", nil)
	row, seen := 0.0, 0.0
	for _, w := range worksOf(m.Program) {
		row, seen = row+w.row, seen+w.seen
	}
	want := 0.0
	for i := range m.Program.Weights {
		if w := &m.Program.Weights[i]; w.Use&ir.Matrix != 0 {
			want += float64(w.Rows * w.Cols)
		}
	}
	require.Equal(t, want, row)
	require.Positive(t, seen)
}

// TestLongestOf: no driver resets a processor that plays a card.
func TestLongestOf(t *testing.T) {
	require.Zero(t, longestOf(&driver.Facts{Software: true}))
	require.Equal(t, longestSubmission, longestOf(&driver.Facts{}))
}
