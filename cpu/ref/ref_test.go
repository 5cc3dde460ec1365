package ref_test

import (
	"testing"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestConformance sees the laws, uploads and refusals; what the oracle computes is TestFixtures'. Weight types go
// through internal/quant alone, so a few of them do.
func TestConformance(t *testing.T) {
	backendtest.Oracle(t, ref.New(), []quant.Type{quant.F32, quant.BF16, quant.Q8_0, quant.Q4_K})
}
