package measure

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/gpu/cuda/fake"
	"github.com/sluice-ai/sluice/gpu/vulkan"
	"github.com/sluice-ai/sluice/internal/testref"
)

func TestDoctorSeesWrongKernels(t *testing.T) {
	f := kernelsFor("sse9")
	require.False(t, f.OK)
	require.Contains(t, f.State, `no CPU kernels "sse9"`)
	require.NotEmpty(t, f.Do)
}

// TestDoctorSaysWhoseBlocks: the set avx512 has products of floats only.
func TestDoctorSaysWhoseBlocks(t *testing.T) {
	for _, set := range kernels.Sets() {
		if state := kernelsFor(set.Name).State; set.Name == "avx512" {
			require.Contains(t, state, "blocks of integers are multiplied by avx2's")
		} else {
			require.NotContains(t, state, "blocks")
		}
	}
}

func TestDoctorSeesContainers(t *testing.T) {
	root := fstest.MapFS{
		"proc/meminfo":             {Data: []byte("MemTotal: 8388608 kB\nMemAvailable: 8388608 kB\n")},
		"sys/fs/cgroup/memory.max": {Data: []byte("2147483648\n")},
	}
	f := memory(root)
	require.True(t, f.OK)
	require.Equal(t, "8.0 GiB, 8.0 GiB available, limited to 2.0 GiB by the control group", f.State)

	root["sys/fs/cgroup/memory.max"].Data = []byte("max\n")
	require.Equal(t, "8.0 GiB, 8.0 GiB available", memory(root).State)
	require.Equal(t, "given on request (madvise)", hugePages(fstest.MapFS{
		"sys/kernel/mm/transparent_hugepage/enabled": {Data: []byte("always [madvise] never\n")},
	}).State)
}

// TestDoctorInColumns: on a terminal, a long line goes on below where it began; elsewhere a line is a line.
func TestDoctorInColumns(t *testing.T) {
	findings := []Finding{{What: "GPU", State: "one of many words that do not fit", Do: "mend it and then try it again"}}
	for terminal, want := range map[bool]string{
		true:  "!  GPU  one of many\n        words that do\n        not fit\n        → mend it and\n        then try it\n        again\n",
		false: "!  GPU  one of many words that do not fit\n        → mend it and then try it again\n",
	} {
		e, out := envtest.NewEnv(""), new(strings.Builder)
		e.Stdout, e.IsTerminal, e.Columns = out, func(any) bool { return terminal }, func(any) int { return 24 }
		require.NoError(t, printFindings(e, findings))
		require.Equal(t, want, out.String())
	}
}

// TestDoctorSaysWithoutWhat: what a GPU is used without is shown, and what none can be used without is its fault.
func TestDoctorSaysWithoutWhat(t *testing.T) {
	if list, err := vulkan.List(); err != nil || len(list) == 0 {
		testref.Missing(t, "vulkan", "no Vulkan device: %v", err)
	}
	without := func(names string) []Finding {
		e := envtest.NewEnv("")
		e.Lookup = func(name string) (string, bool) { return names, name == "SLUICE_VULKAN_WITHOUT" }
		return gpus(e)
	}
	f := without("timestamps,shaderFloat16")[0]
	require.True(t, f.OK)
	require.Regexp(t, `; without timestamps, .*shaderFloat16.*; SLUICE_VULKAN_WITHOUT=timestamps,shaderFloat16`, f.State)
	f = without("storageBuffer16BitAccess")[0]
	require.False(t, f.OK)
	require.Contains(t, f.State, "cannot be used: it has no storageBuffer16BitAccess")
	require.NotEmpty(t, f.Do)
	require.Contains(t, without("nothing")[0].State, `without "nothing", which is no capability`)
}

// TestCards: doctor lists NVIDIA's cards, or says what is missing, which is no fault of a machine.
func TestCards(t *testing.T) {
	t.Setenv("SLUICE_CUDA_LIBRARY", fake.Library(t))
	all := cards()
	require.Len(t, all, 1)
	require.True(t, all[0].OK)
	require.Contains(t, all[0].State, "cuda:0 processor that plays a card, 16.0 GiB")
	require.Contains(t, all[0].State, "compute capability 8.0, 4 multiprocessors, driver of CUDA 12.4")

	t.Setenv("SLUICE_CUDA_LIBRARY", "libnothing.so.1")
	all = cards()
	require.Len(t, all, 1)
	require.True(t, all[0].OK)
	require.Contains(t, all[0].State, "none: CUDA needs NVIDIA's driver")
}
