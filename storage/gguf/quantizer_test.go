package gguf

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
)

// draft opens the trained model that llama.cpp's quantiser was given.
func draft(t *testing.T) *File {
	f, err := Open(filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func readJSON(t *testing.T, v any, path ...string) {
	text, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, v))
}

// quantized are the values of a tensor, and the bytes that they become in type typ.
func quantized(t *testing.T, f *File, name string, typ quant.Type) (plain []float32, packed []byte) {
	x, ok := f.Tensor(name)
	require.True(t, ok, name)
	values := 1
	for _, n := range x.Shape {
		values *= n
	}
	size, err := typ.RowBytes(values)
	require.NoError(t, err)
	plain, packed = make([]float32, values), make([]byte, size)
	require.NoError(t, f.View(x, func(data []byte) error { return quant.Dequantize(x.Type, plain, data) }))
	require.NoError(t, quant.Quantize(typ, packed, plain))
	return plain, packed
}

// TestQuantizeGolden quantises a real model as llama.cpp did and compares the bytes of every tensor: a digest is the
// start of their SHA-256. The formats that leave something to search need not have the same bytes.
func TestQuantizeGolden(t *testing.T) {
	var golden struct {
		Types map[string]struct{ Tensors map[string][3]any }
	}
	readJSON(t, &golden, testref.Dir(t), "golden", "quantize.json")
	f := draft(t)
	same := []string{"F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1"}
	for _, recipe := range same {
		compared := 0
		for name, want := range golden.Types[recipe].Tensors {
			if want[0] != recipe {
				continue // another type, that the recipe chose for one tensor
			}
			typ, ok := quant.Parse(recipe)
			require.True(t, ok)
			_, packed := quantized(t, f, name, typ)
			sum := sha256.Sum256(packed)
			require.Equal(t, want[2], hex.EncodeToString(sum[:8]), "%s as %s", name, typ)
			compared++
		}
		require.NotZero(t, compared, recipe)
	}
}

// TestQuantizeError compares the error of each searched format with that of llama.cpp's quantiser, in one of the
// model's blocks. The figures have 6 digits.
func TestQuantizeError(t *testing.T) {
	var golden struct {
		RMSE map[string]map[string]float64
	}
	readJSON(t, &golden, "testdata", "quantizer.json")
	f := draft(t)
	require.Len(t, golden.RMSE, 20)
	for recipe, tensors := range golden.RMSE {
		typ, ok := quant.Parse(recipe)
		require.True(t, ok, recipe)
		for name, want := range tensors {
			plain, packed := quantized(t, f, name, typ)
			got := make([]float32, len(plain))
			require.NoError(t, quant.Dequantize(typ, got, packed))
			var sum float64
			for i, x := range plain {
				sum += math.Pow(float64(x-got[i]), 2)
			}
			require.LessOrEqual(t, math.Sqrt(sum/float64(len(got))), want*(1+1e-5), "%s as %s", name, typ)
		}
		require.NotEmpty(t, tensors, recipe)
	}
}
