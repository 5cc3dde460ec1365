package ref_test

import (
	"testing"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestConformance compares the oracle with itself, which leaves the laws, uploads and refusals to be seen. Weight
// types go through internal/quant alone, so a few of them do.
func TestConformance(t *testing.T) {
	types := []quant.Type{quant.F32, quant.BF16, quant.Q8_0, quant.Q4_K}
	backendtest.Conformance(t, ref.New(), ref.New(), types)
}
