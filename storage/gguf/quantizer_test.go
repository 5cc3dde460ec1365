package gguf

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/shared"
)

// TestQuantizeGolden quantises a real model as llama.cpp did and compares the bytes of every tensor.
func TestQuantizeGolden(t *testing.T) {
	dir := shared.Dir(t)
	text, err := os.ReadFile(filepath.Join(dir, "golden", "quantize.json"))
	require.NoError(t, err)
	var golden struct {
		Types map[string]struct{ Tensors map[string][3]any }
	}
	require.NoError(t, json.Unmarshal(text, &golden))
	f, err := Open(filepath.Join(dir, "models", "draft-bf16.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()

	compared := make(map[quant.Type]int)
	for _, recipe := range []string{"Q8_0", "Q4_0", "F16"} {
		for name, want := range golden.Types[recipe].Tensors {
			typ, ok := quant.Parse(want[0].(string))
			require.True(t, ok, want[0])
			if typ != quant.Q8_0 && typ != quant.Q4_0 && typ != quant.F16 && typ != quant.F32 {
				continue // a K-quant that the recipe chose for one tensor: no encoder here
			}
			compared[typ]++
			require.Equal(t, want[2], digest(t, f, name, typ), "%s as %s", name, typ)
		}
	}
	require.NotZero(t, compared[quant.Q8_0])
	require.NotZero(t, compared[quant.Q4_0])
}

// digest is the start of the SHA-256 of a tensor's bytes as type typ.
func digest(t *testing.T, f *File, name string, typ quant.Type) string {
	x, ok := f.Tensor(name)
	require.True(t, ok, name)
	values := 1
	for _, n := range x.Shape {
		values *= n
	}
	size, err := typ.RowBytes(values)
	require.NoError(t, err)
	plain, packed := make([]float32, values), make([]byte, size)
	require.NoError(t, f.View(x, func(data []byte) error { return quant.Dequantize(x.Type, plain, data) }))
	require.NoError(t, quant.Quantize(typ, packed, plain))
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:8])
}
