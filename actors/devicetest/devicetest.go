// Package devicetest opens the device that tests of engines and servers compute on.
package devicetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu"
	"github.com/sluice-ai/sluice/gpu/cuda"
	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/gpu/null"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/backend"
)

// OnGPU says whether tests compute on the first GPU: if SLUICE_TEST_DEVICE is vulkan or cuda.
func OnGPU() bool { return onCUDA() || os.Getenv("SLUICE_TEST_DEVICE") == "vulkan" }

func onCUDA() bool { return os.Getenv("SLUICE_TEST_DEVICE") == "cuda" }

// OnProcessor skips a test on GPUs if it needs what none does, such as computing with weights in a mapped file.
func OnProcessor(t testing.TB, what string) {
	t.Helper()
	if OnGPU() {
		t.Skip("no GPU does this: " + what)
	}
}

// New opens the first GPU, if OnGPU, else the processor, with two threads. Kernels that a driver has compiled are kept
// from test to test. The device is closed at the test's end, if nothing has closed it: a test may end before an engine
// owns it.
func New(t testing.TB) backend.Device {
	t.Helper()
	if !OnGPU() {
		return Processor(t, "")
	}
	folder := filepath.Join(os.TempDir(), "sluice-tests")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	if onCUDA() {
		d, err := cuda.Open(0, cuda.Options{Cache: folder})
		return closing(t, d, err)
	}
	d, err := vulkan.Open(0, vulkan.Options{Cache: folder})
	return closing(t, d, err)
}

// Processor opens the processor, with two threads that use some kernels; it is closed as New's device is.
func Processor(t testing.TB, kernels string) backend.Device {
	t.Helper()
	d, err := cpu.New(2, kernels)
	return closing(t, d, err)
}

// Played opens a GPU whose driver computes in plain Go; it is closed as New's device is.
func Played(t testing.TB) backend.Device {
	t.Helper()
	o := null.Options{Fused: true, Integers: true, Free: 4 << 30}
	d, err := exec.New(func() (driver.Device, error) { return null.Open(o), nil })
	return closing(t, d, err)
}

func closing(t testing.TB, d backend.Device, err error) backend.Device {
	t.Helper()
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}
