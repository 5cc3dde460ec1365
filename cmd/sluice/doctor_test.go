package main

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/kernels"
)

func TestDoctor(t *testing.T) {
	o := sluice("", "doctor")
	require.Equal(t, exitDone, o.code, o.stderr)
	for _, what := range []string{
		"processor", "instructions", "kernels", "GPU", "memory", "huge pages", "io_uring", "locked", "disk",
	} {
		require.Contains(t, o.stdout, what)
	}

	e := testEnv("", "doctor", "--json")
	e.lookup = func(name string) (string, bool) { return "ref", name == "SLUICE_CPU" }
	e.root = fstest.MapFS{
		"proc/meminfo": {Data: []byte("MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 524288 kB\n")},
		"sys/kernel/mm/transparent_hugepage/enabled": {Data: []byte("always madvise [never]\n")},
	}
	require.Equal(t, exitDone, run(e))
	var list []finding
	require.NoError(t, json.Unmarshal([]byte(e.stdout.(interface{ String() string }).String()), &list))
	found := map[string]finding{}
	for _, f := range list {
		found[f.What] = f
		require.Equal(t, f.OK, f.Do == "", "%s: whoever finds a fault says what to do", f.What)
	}
	require.Equal(t, "8.0 GiB, 512.0 MiB available", found["memory"].State)
	require.False(t, found["memory"].OK)
	require.False(t, found["huge pages"].OK)
	require.Equal(t, "SLUICE_CPU=ref forces them", found["kernels"].State)
}

// TestDoctorSaysWithoutWhat: what a GPU is used without is shown, and what none can be used without is its fault.
func TestDoctorSaysWithoutWhat(t *testing.T) {
	needsVulkan(t)
	without := func(names string) []finding {
		e := testEnv("")
		e.lookup = func(name string) (string, bool) { return names, name == "SLUICE_VULKAN_WITHOUT" }
		return gpus(e)
	}
	f := without("timestamps,shaderFloat64")[0]
	require.True(t, f.OK)
	require.Regexp(t, `; without timestamps, .*shaderFloat64.*; SLUICE_VULKAN_WITHOUT=timestamps,shaderFloat64`, f.State)
	f = without("storageBuffer16BitAccess")[0]
	require.False(t, f.OK)
	require.Contains(t, f.State, "cannot be used: it has no storageBuffer16BitAccess")
	require.NotEmpty(t, f.Do)
	require.Contains(t, without("nothing")[0].State, `without "nothing", which is no capability`)
}

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
	findings := []finding{{What: "GPU", State: "one of many words that do not fit", Do: "mend it and then try it again"}}
	for terminal, want := range map[bool]string{
		true:  "!  GPU  one of many\n        words that do\n        not fit\n        → mend it and\n        then try it\n        again\n",
		false: "!  GPU  one of many words that do not fit\n        → mend it and then try it again\n",
	} {
		e, out := testEnv(""), new(strings.Builder)
		e.stdout, e.isTerminal, e.columns = out, func(any) bool { return terminal }, func(any) int { return 24 }
		require.NoError(t, printFindings(e, findings))
		require.Equal(t, want, out.String())
	}
}
