package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/ask"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/gpu/cuda/fake"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/report"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestDeviceFlag: what is no device is refused, wherever it was said.
func TestDeviceFlag(t *testing.T) {
	for _, name := range []string{"gpu", "vulkan:x", "vulkan:-1", "vulkan:", "vulkan:0,", "vulkan:0,0", "vulkan:0,x", "cuda:0,-1", "cuda:0+0", "cuda:0+", "cuda:1+x", "cuda:x", "cuda:-1", "cpu:1", "auto:0"} {
		o := sluice("", "run", "--device", name, "-n", "1", "hi")
		require.Equal(t, exitUsage, o.code, name)
		require.Contains(t, o.stderr, `--device is "`+name+`": want cpu, cuda, cuda:N, cuda:N,M, cuda:N+M, vulkan, vulkan:N, vulkan:N,M, auto or member:HOST:PORT`)
	}
	e := envtest.NewEnv("", "run", "-n", "1", "hi")
	e.Lookup = func(name string) (string, bool) { return "tpu", name == "SLUICE_DEVICE" }
	require.Equal(t, exitUsage, run(e))
	require.Contains(t, e.Stderr.(interface{ String() string }).String(), `--device is "tpu"`)

	o := sluice("", "run", "--device", "vulkan", "--no-repack", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "which a GPU cannot reach")

	o = sluice("", "run", "--device", "vulkan:0+1", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "use cuda:N+M, or vulkan:N,M")

	o = sluice("", "run", "--device", "cpu", "--gpu-layers", "2", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--gpu-layers is of GPUs")
	o = sluice("", "run", "--gpu-layers", "-2", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, `"-2" is no number of layers: want one from 0 on, all, or auto`)

	o = sluice("", "run", "--device", "cpu", "--cpu-experts", "2", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--cpu-experts is of GPUs")
	for _, n := range []string{"0", "3", "auto"} {
		o = sluice("", "run", "--gpu-layers", n, "--cpu-experts", "2", "-n", "1", "hi")
		require.Equal(t, exitUsage, o.code)
		require.Contains(t, o.stderr, "both say what the processor computes")
	}

	o = sluice("", "run", "--device", "cpu", "--fast-prefill", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--fast-prefill is of GPUs")
}

// TestCUDAFlag: the embedded model answers on CUDA as on the processor; without a driver it is said what is missing.
func TestCUDAFlag(t *testing.T) {
	t.Setenv("SLUICE_CUDA_LIBRARY", "libnothing.so.1")
	o := sluice("", "run", "--device", "cuda", "-n", "1", "hi")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "--device cuda: CUDA needs NVIDIA's driver")

	t.Setenv("SLUICE_CUDA_LIBRARY", fake.Library(t))
	for _, asked := range []string{"cuda:1", "cuda:0,1", "cuda:0+1"} {
		o = sluice("", "run", "--device", asked, "-n", "1", "hi")
		require.Equal(t, exitFailed, o.code)
		require.Contains(t, o.stderr, "--device "+asked+": there is no CUDA device 1: there are 1")
	}
	o = sluice("", "run", "--device", "cuda", "--fast-prefill", "-n", "1", "hi")
	require.Equal(t, exitUsage, o.code)
	if testing.Short() {
		return
	}
	answer := func(device string) string {
		e, _ := envtest.CachingEnv(t, "run", "--device", device, "-n", "3", "--temp", "0", "hi")
		require.Zero(t, run(e), "%s", e.Stderr)
		return e.Stdout.(interface{ String() string }).String()
	}
	require.Equal(t, answer("cpu"), answer("cuda"))
}

// TestAutoSaysWhatItTook: one line, whatever this machine has.
func TestAutoSaysWhatItTook(t *testing.T) {
	o := sluice("", "run", "--device", "auto", "-n", "1", "hi")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stderr, "sluice: computing on ")
}

// needsVulkan ends the test where there is no device.
func needsVulkan(t *testing.T) {
	t.Helper()
	if list, err := vulkan.List(); err != nil || len(list) == 0 {
		testref.Missing(t, "vulkan", "no Vulkan device: %v", err)
	}
}

// TestVRAM: whatever the budgets, whether weights wait in memory or are read from disk each time, the answer is that of
// weights which are all on the device.
func TestVRAM(t *testing.T) {
	needsVulkan(t)
	if testing.Short() {
		t.Skip("a CPU takes a minute to compile kernels")
	}
	answered := func(more ...string) (tokens []int32, stderr string) {
		e, path := envtest.CachingEnv(t, append([]string{"run", "--json", "-n", "12", "--temp", "0", "--device", "vulkan:0",
			"What is the capital of France?"}, more...)...)
		require.NotEmpty(t, path)
		require.Equal(t, exitDone, run(e), fmt.Sprint(e.Stderr))
		var a ask.Answer
		require.NoError(t, json.Unmarshal([]byte(fmt.Sprint(e.Stdout)), &a))
		return a.Tokens, fmt.Sprint(e.Stderr)
	}
	want, stderr := answered()
	require.NotContains(t, stderr, "streams")
	for _, budget := range [][]string{
		{"--vram", "1G"}, {"--vram", "12M"}, {"--vram", "4M"},
		{"--vram", "12M", "--ram", "4M"}, {"--vram", "4M", "--ram", "6M"}, {"--vram", "4M", "--ram", "2560K"},
	} {
		got, stderr := answered(budget...)
		require.Equal(t, want, got, budget)
		require.Equal(t, budget[1] != "1G", strings.Contains(stderr, "are on the GPU"), stderr)
		require.Equal(t, len(budget) > 2, strings.Contains(stderr, "from disk"), stderr)
	}
	o := sluice("", "run", "--device", "vulkan:0", "--vram", "1M", "hi")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "1.0 MiB of VRAM for weights are too few")
	o = sluice("", "run", "--device", "cpu", "--vram", "8M", "hi")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--vram is memory of GPUs")
}

// TestGPULayers: however many layers the GPU computes, and whether the others' weights are all in memory, the answer is
// the processor's.
func TestGPULayers(t *testing.T) {
	needsVulkan(t)
	if testing.Short() {
		t.Skip("a CPU takes a minute to compile kernels")
	}
	answered := func(more ...string) (tokens []int32, stderr string) {
		e, _ := envtest.CachingEnv(t, append([]string{"run", "--json", "-n", "12", "--temp", "0",
			"What is the capital of France?"}, more...)...)
		require.Equal(t, exitDone, run(e), fmt.Sprint(e.Stderr))
		var a ask.Answer
		require.NoError(t, json.Unmarshal([]byte(fmt.Sprint(e.Stdout)), &a))
		return a.Tokens, fmt.Sprint(e.Stderr)
	}
	want, _ := answered("--device", "cpu")
	for _, c := range []struct {
		more             []string
		divided, streams bool
	}{
		{[]string{"--gpu-layers", "0"}, false, false},
		{[]string{"--gpu-layers", "1"}, true, false},
		{[]string{"--gpu-layers", "3", "--ram", "5M"}, true, true},
		{[]string{"--gpu-layers", "99"}, false, false},
		{[]string{"--gpu-layers", "auto"}, false, false},
	} {
		got, stderr := answered(append(c.more, "--device", "vulkan:0")...)
		require.Equal(t, want, got, c.more)
		require.Equal(t, c.divided, strings.Contains(stderr, "is divided"), stderr)
		require.Equal(t, c.streams, strings.Contains(stderr, "streams"), stderr)
	}
	got, stderr := answered("--gpu-layers", "auto", "--vram", "8M", "--device", "vulkan:0")
	require.Equal(t, want, got)
	require.NotEqual(t, strings.Contains(stderr, "is divided"), strings.Contains(stderr, "streams"), "as it was measured")
	o := plan(t, "--device", "vulkan:0", "--gpu-layers", "3")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, "The processor computes the first 4 layers, the GPU the last 3 and the head.")
	for line := range strings.Lines(o.stdout) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
	o = sluice("", "run", "--device", "vulkan:0", "--gpu-layers", "3", "--vram", "6M", "hi")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "3 layers on the device need 9 MiB of VRAM")
	require.Contains(t, o.stderr, "ask for at most 1 layers")
}

// TestCPUExperts: the plan says of how many layers the processor computes the experts.
func TestCPUExperts(t *testing.T) {
	needsVulkan(t)
	model := filepath.Join(testref.Dir(t), "models", "moe-Q4_K_M.gguf")
	e, _ := envtest.CachingEnv(t, "plan", model, "--device", "vulkan:0", "--cpu-experts", "3")
	require.Equal(t, exitDone, run(e), fmt.Sprint(e.Stderr))
	require.Contains(t, fmt.Sprint(e.Stdout), "The processor computes the experts of 3 layers, the GPU all else.")
	e, _ = envtest.CachingEnv(t, "plan", model, "--device", "vulkan:0", "--cpu-experts", "99", "--json")
	require.Equal(t, exitDone, run(e), fmt.Sprint(e.Stderr))
	var p measure.PlanJSON
	require.NoError(t, json.Unmarshal([]byte(fmt.Sprint(e.Stdout)), &p))
	require.Equal(t, []int{5, 0}, []int{p.Experts, p.Layers})
	o := sluice("", "run", "--device", "vulkan:0", "--cpu-experts", "1", "hi")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "experts for the host of a device: this model has none")
}

// TestPlanOfVulkan: three tiers, whose weights are all there are, and what the bus allows.
func TestPlanOfVulkan(t *testing.T) {
	needsVulkan(t)
	flags := []string{"--device", "vulkan:0", "--vram", "8M", "--ram", "5M"}
	o := plan(t, flags...)
	require.Equal(t, exitDone, o.code, o.stderr)
	for _, want := range []string{"on the GPU   in memory   in the file", "--vram bounds the weights and slots",
		"wait for the GPU", "copied to the GPU for each token", "measured: copies to the GPU"} {
		require.Contains(t, o.stdout, want)
	}
	for line := range strings.Lines(o.stdout) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
	}
	o = plan(t, append(flags, "--json")...)
	var got measure.PlanJSON
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
	require.Len(t, got.Tiers, 3)
	for i, name := range []string{"device", "host", "disk"} {
		require.Equal(t, name, got.Tiers[i].Name)
		require.Positive(t, got.Tiers[i].Weights)
	}
	require.LessOrEqual(t, got.Tiers[0].Weights, int64(8<<20))
	require.LessOrEqual(t, got.Tiers[1].Weights, int64(5<<20))
	require.Positive(t, got.Expected.Decode)
	require.Greater(t, got.Copied, got.Streamed)
}

// TestRunOnVulkan: the embedded model answers the same, whatever computes it; drawn on the device, and by the host.
func TestRunOnVulkan(t *testing.T) {
	needsVulkan(t)
	if testing.Short() {
		t.Skip("a CPU takes a minute to compile kernels")
	}
	for _, more := range [][]string{
		{"--temp", "0"},
		{"--temp", "0.9", "--top-k", "40", "--seed", "5"}, {"--temp", "0.5", "--top-k", "0", "--seed", "2"},
	} {
		var answers []ask.Answer
		for _, device := range []string{"cpu", "vulkan:0"} {
			o := sluice("", append([]string{"run", "--json", "-n", "24", "--device", device, "Add 17 and 25."}, more...)...)
			require.Equal(t, exitDone, o.code, o.stderr)
			var a ask.Answer
			require.NoError(t, json.Unmarshal([]byte(o.stdout), &a))
			answers = append(answers, a)
		}
		require.Equal(t, answers[0].Tokens, answers[1].Tokens, more)
	}
	o := sluice("", "run", "--device", "vulkan:99", "-n", "1", "hi")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "--device vulkan:99: there is no Vulkan device 99: there are 0 ")
}

// TestTimesOfVulkan: bench says where the time of a GPU's steps goes and how fast that is, and the account of its trace
// explains what it waited for, weights that come with each step among it.
func TestTimesOfVulkan(t *testing.T) {
	needsVulkan(t)
	if testing.Short() {
		t.Skip("a CPU takes a minute to compile kernels")
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	o := sluice("", "bench", "--device", "vulkan:0", "--vram", "4M", "-p", "16", "-n", "4", "-r", "1", "--json",
		"--trace", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	var b report.Bench
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &b))
	require.False(t, b.Beside)
	require.Positive(t, b.ReadBandwidth)
	require.Positive(t, b.MultiplyOps)
	for _, h := range []report.Phase{b.Points[0].Prefill, b.Points[0].Decode} {
		share := 0.0
		for _, s := range h.Segments {
			share += s.Share
		}
		require.Greater(t, share, 0.1, "%+v", h)
		for _, g := range h.Gaps {
			share += g.Share
			require.NotEqual(t, "unknown", g.Cause)
		}
		require.InDelta(t, 1, share, 1e-6)
		require.Len(t, h.Segments, 4)
		require.NotEmpty(t, h.Gaps)
	}
	o = sluice("", "trace", "stalls", path, "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var stalls struct{ Devices []report.Stalls }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &stalls))
	i := slices.IndexFunc(stalls.Devices, func(s report.Stalls) bool { return s.Device == "house/device/compute" })
	require.GreaterOrEqual(t, i, 0)
	a := &stalls.Devices[i]
	require.GreaterOrEqual(t, a.Explained, 0.99)
	require.Positive(t, a.Idle["launch"])
	require.Positive(t, a.Idle["uploader"])
	require.Greater(t, len(a.Layers), 3)
}
