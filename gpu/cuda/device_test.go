//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
)

// someTypes are of each kind: floats, blocks with kernels of their own, one without. The others' kernels have tests of
// their own.
var someTypes = []quant.Type{quant.F32, quant.F16, quant.Q8_0, quant.Q4_K, quant.Q5_1}

// engine is the first card as gpu/exec has it.
func engine(t testing.TB) *exec.Device {
	t.Helper()
	d, err := Open(0, options(t))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.(*exec.Device)
}

// onCard says whether tests compute on a card.
func onCard() bool { return os.Getenv(testOn) == "card" }

// needsCard skips a test that takes the fake driver an hour.
func needsCard(t testing.TB) {
	t.Helper()
	if !onCard() {
		t.Skip("the fake driver takes too long: " + testOn + "=card")
	}
}

// TestConformance has with -short a slice of itself, which reaches most kernels.
func TestConformance(t *testing.T) {
	if testing.Short() {
		backendtest.Slice(t, engine(t), ref.New(), quant.Q8_0)
		return
	}
	needsCard(t)
	backendtest.Conformance(t, engine(t), ref.New(), someTypes)
}

// TestFixtures: fast kernels may be ten times as far from the reference as its tolerance.
func TestFixtures(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	needsCard(t)
	backendtest.Fixtures(t, backendtest.Every{Device: engine(t)}, archtest.Open, 10)
}

// TestSpecimens: as TestFixtures, of the other architectures, by the oracle.
func TestSpecimens(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	needsCard(t)
	archtest.Specimens(t, engine(t), ref.New())
}

// TestMini takes fewer tokens where the fake driver computes.
func TestMini(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute on the fake driver")
	}
	tokens := 6
	if onCard() {
		tokens = 40
	}
	c, err := cpu.New(2, "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	archtest.Mini(t, engine(t), c, tokens)
}

// TestGolden: trained models answer as recorded wherever the recorder and exact arithmetic are sure: K-quants, experts,
// and bfloat16.
func TestGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	needsCard(t)
	archtest.Golden(t, engine(t))
}

// TestAttentionRows: many rows attend at once on a card that has the memory for it.
func TestAttentionRows(t *testing.T) {
	c := open(t)
	f := &c.d.c.Facts
	defer func(n uint64) { f.Memory = n }(f.Memory)
	f.Memory = 8 << 30
	require.Equal(t, kernel.AttentionRows, c.d.kernels.AttentionRows())
	f.Memory = 80 << 30
	require.Equal(t, manyRows, c.d.kernels.AttentionRows())
}
