package converttest

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/safetensors"
)

// Tensor is a tensor of a reference file.
type Tensor struct {
	Shape []int
	Data  []byte
}

// Floats decodes float32 values.
func (x Tensor) Floats() []float32 {
	all := make([]float32, len(x.Data)/4)
	for i := range all {
		all[i] = math.Float32frombits(binary.LittleEndian.Uint32(x.Data[4*i:]))
	}
	return all
}

// Longs decodes int64 values.
func (x Tensor) Longs() []int {
	all := make([]int, len(x.Data)/8)
	for i := range all {
		all[i] = int(binary.LittleEndian.Uint64(x.Data[8*i:]))
	}
	return all
}

// IDs decodes int64 values that are token ids.
func (x Tensor) IDs() (ids []int32) {
	for _, id := range x.Longs() {
		ids = append(ids, int32(id))
	}
	return ids
}

// Tensors reads a safetensors file below the folder of the reference data.
func Tensors(t testing.TB, path ...string) map[string]Tensor {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{testref.Dir(t)}, path...)...))
	require.NoError(t, err)
	stored, err := safetensors.Parse(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	all := map[string]Tensor{}
	for _, s := range stored {
		all[s.Name] = Tensor{s.Shape, data[s.Offset:][:s.Size]}
	}
	return all
}

// Near requires that computed values are those of a reference, each less than most away.
func Near(t testing.TB, want, got []float32, most float64) {
	t.Helper()
	require.Len(t, got, len(want))
	worst := 0.0
	for i := range want {
		worst = max(worst, math.Abs(float64(want[i]-got[i])))
	}
	require.Less(t, worst, most)
	require.True(t, slices.ContainsFunc(want, func(x float32) bool { return x > 0.1 }), "values are of order 1")
}
