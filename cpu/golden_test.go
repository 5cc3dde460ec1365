package cpu_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/shared"
)

// TestGolden: trained models, one in K-quants and one in bfloat16, answer as llama.cpp recorded it. One token of
// the first, recorded with a margin of 0.17, differs: see backendtest.Golden.
func TestGolden(t *testing.T) {
	for name, margin := range map[string]float64{"mini-Q4_K_M": 0.2, "draft-bf16": 0.15} {
		path := filepath.Join(shared.Dir(t), "models", name+".gguf")
		eachDevice(t, false, func(t *testing.T, d backend.Device) {
			backendtest.Golden(t, d, openModel(t, path, nil), name, margin)
		})
	}
}
