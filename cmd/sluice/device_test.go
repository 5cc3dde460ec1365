package main

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan"
)

// TestDeviceFlag: what is no device is refused, wherever it was said.
func TestDeviceFlag(t *testing.T) {
	for _, name := range []string{"gpu", "vulkan:x", "vulkan:-1", "vulkan:", "cpu:1", "auto:0"} {
		o := sluice("", "run", "--device", name, "-n", "1", "hi")
		require.Equal(t, exitUsage, o.code, name)
		require.Contains(t, o.stderr, `--device is "`+name+`": want cpu, vulkan, vulkan:N or auto`)
	}
	e := testEnv("", "run", "-n", "1", "hi")
	e.lookup = func(name string) (string, bool) { return "tpu", name == "SLUICE_DEVICE" }
	require.Equal(t, exitUsage, run(e))
	require.Contains(t, e.stderr.(interface{ String() string }).String(), `SLUICE_DEVICE is "tpu"`)

	o := sluice("", "run", "--device", "vulkan", "--no-repack", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "which a GPU cannot reach")

	o = sluice("", "run", "--device", "cpu", "--fast-prefill", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--fast-prefill is of GPUs")
}

// TestAutoSaysWhatItTook: one line, whatever this machine has.
func TestAutoSaysWhatItTook(t *testing.T) {
	o := sluice("", "run", "--device", "auto", "-n", "1", "hi")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stderr, "sluice: computing on ")
}

// TestRunOnVulkan: the embedded model answers the same, whatever computes it; drawn on the device, and by the host.
func TestRunOnVulkan(t *testing.T) {
	if list, err := vulkan.List(); err != nil || len(list) == 0 {
		require.NotEqual(t, "true", os.Getenv("CI"), "CI needs a Vulkan device: %v", err)
		t.Skipf("no Vulkan device: %v", err)
	}
	if testing.Short() {
		t.Skip("a CPU takes a minute to compile kernels")
	}
	for _, more := range [][]string{
		{"--temp", "0"},
		{"--temp", "0.9", "--top-k", "40", "--seed", "5"}, {"--temp", "0.5", "--top-k", "0", "--seed", "2"},
	} {
		var answers []answer
		for _, device := range []string{"cpu", "vulkan:0"} {
			o := sluice("", append([]string{"run", "--json", "-n", "24", "--device", device, "Add 17 and 25."}, more...)...)
			require.Equal(t, exitDone, o.code, o.stderr)
			var a answer
			require.NoError(t, json.Unmarshal([]byte(o.stdout), &a))
			answers = append(answers, a)
		}
		require.Equal(t, answers[0].Tokens, answers[1].Tokens, more)
	}
	o := sluice("", "run", "--device", "vulkan:99", "-n", "1", "hi")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "--device vulkan:99: there is no Vulkan device 99: there are 0 ")
}
