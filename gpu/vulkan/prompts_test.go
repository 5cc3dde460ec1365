//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// TestPromptsLaws: rows of prompts of files of floats, which are multiplied in half precision, have the same bits
// alone, among any others and in any chunks.
func TestPromptsLaws(t *testing.T) {
	g := open(t)
	g.k.emulate = true
	backendtest.PromptLaws(t, g.device(), []quant.Type{quant.F16, quant.BF16}, 10*2e-4)
}

// TestPromptsFixtures: prompts in half precision, of the models of TestFixtures with matrices of F16, are within ten
// times what conformance allows floats.
func TestPromptsFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	t.Parallel()
	g := open(t)
	g.k.emulate = true
	open := func(t testing.TB, path string, edit func(*meta.Map)) *backendtest.Model {
		return asHalves(t, archtest.Open(t, path, edit))
	}
	backendtest.PromptFixtures(t, backendtest.Every{Device: g.device()}, open, 10*2e-4)
}

// asHalves rounds float32 matrices to F16, as files of F16 have them: routers stay.
func asHalves(t testing.TB, m *backendtest.Model) *backendtest.Model {
	tensors, data := make([]ir.Tensor, len(m.Program.Weights)), make([][]byte, len(m.Program.Weights))
	for r := range tensors {
		w, typ := &m.Program.Weights[r], m.Types[r]
		data[r] = m.Weights[r]
		if w.Use&ir.Matrix != 0 && typ == quant.F32 && !strings.Contains(w.Name, "ffn_gate_inp") {
			typ, data[r] = quant.F16, nil
			for at := 0; at < len(m.Weights[r]); at += 4 {
				v := math.Float32frombits(binary.LittleEndian.Uint32(m.Weights[r][at:]))
				data[r] = binary.LittleEndian.AppendUint16(data[r], quant.F32ToF16(v))
			}
		}
		tensors[r] = ir.Tensor{Name: w.Name, Type: typ, Shape: w.Shape()}
	}
	x, err := backendtest.NewModel(m.Program, tensors, func(i int, use func([]byte) error) error { return use(data[i]) })
	require.NoError(t, err)
	return x
}

// TestApart: prompts are computed apart in files of floats that can be rounded, or where it was asked for, by a device
// with kernels for it.
func TestApart(t *testing.T) {
	for _, c := range []struct {
		file               string
		usually, onRequest bool
	}{{"F32", false, false}, {"F16", true, true}, {"BF16", true, true}, {"Q8_0", false, false}, {"Q4_K_M", false, true}} {
		p := bound(t, "qwen3-0.6b", c.file, true)
		for _, asked := range []bool{false, true} {
			want := c.usually
			if asked {
				want = c.onRequest
			}
			require.Equal(t, want, (&Kernels{CoopMat: true, squares: true, Halves: asked}).Apart(p), c.file)
			require.False(t, (&Kernels{CoopMat: true, Halves: asked}).Apart(p), "no matrices of halves")
			require.False(t, (&Kernels{squares: true, Halves: asked}).Apart(p), "none are to be used")
		}
	}
}
