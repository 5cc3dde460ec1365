package quant_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
)

// TestAFormatInOnePlace: a format whose row is added, and nothing else, has a name and sizes, is encoded, decoded,
// split and filled at random, and is multiplied by the oracle and by a GPU that keeps weights as float32.
func TestAFormatInOnePlace(t *testing.T) {
	toy, remove := quant.AddToy()
	defer remove()
	require.Contains(t, quant.All(), toy)
	named, ok := quant.Parse("toy")
	require.True(t, ok)
	require.Equal(t, toy, named)
	require.True(t, quant.HasEncoder(toy) && quant.CanSplit(toy))

	values, data := make([]float32, 64), make([]byte, 36)
	for i := range values {
		values[i] = float32(i%15-7) / 4
	}
	require.NoError(t, quant.Quantize(toy, data, values))
	got := make([]float32, 64)
	require.NoError(t, quant.Dequantize(toy, got, data))
	require.Equal(t, values, got)

	card, err := exec.New(func() (driver.Device, error) { return null.Open(null.Options{Integers: true}), nil })
	require.NoError(t, err)
	defer func() { require.NoError(t, card.Close()) }()
	backendtest.Products(t, ref.New(), ref.New(), []quant.Type{toy})
	backendtest.Products(t, card, ref.New(), []quant.Type{toy})
}
