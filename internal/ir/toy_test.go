package ir_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
)

// TestAnOpInOnePlace: an op that is added in one place, and nowhere else, is computed by the oracle, by the CPU and by
// a GPU that plays loops, and passes the conformance of its cases.
func TestAnOpInOnePlace(t *testing.T) {
	toy, remove := ir.AddToy()
	defer remove()
	require.Contains(t, ir.Ops(), toy)
	require.Equal(t, "toy", toy.String())
	processor, err := cpu.New(2, "")
	require.NoError(t, err)
	defer func() { require.NoError(t, processor.Close()) }()
	card, err := exec.New(func() (driver.Device, error) { return null.Open(null.Options{}), nil })
	require.NoError(t, err)
	defer func() { require.NoError(t, card.Close()) }()
	backendtest.Op(t, ref.New(), ref.New(), toy)
	backendtest.Op(t, processor, ref.New(), toy)
	backendtest.Op(t, card, ref.New(), toy)
}
