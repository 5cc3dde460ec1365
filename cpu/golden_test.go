package cpu_test

import (
	"path/filepath"
	"testing"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// TestGolden: trained models, in K-quants and in bfloat16, one with experts, answer as llama.cpp recorded it, wherever
// it was sure by a margin of 0.15. See docs/adr/0004 before changing any arithmetic.
func TestGolden(t *testing.T) {
	for _, name := range []string{"mini-Q4_K_M", "draft-bf16", "moe-Q4_K_M"} {
		path := filepath.Join(testref.Dir(t), "models", name+".gguf")
		eachDevice(t, false, func(t *testing.T, d backend.Device) {
			backendtest.Golden(t, d, archtest.Open(t, path, nil), name, (*testref.Answer).Sure)
		})
	}
}

// TestTrainedInSlots: the same models, with experts that rows really choose between, pass through slots.
func TestTrainedInSlots(t *testing.T) {
	for _, name := range []string{"mini-Q4_K_M", "moe-Q4_K_M"} {
		m := archtest.Open(t, filepath.Join(testref.Dir(t), "models", name+".gguf"), nil)
		m.InSlots(t, device(t, 2, ""), 1)
	}
}
