package main

import (
	"encoding/json"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
)

func TestDoctor(t *testing.T) {
	o := sluice("", "doctor")
	require.Equal(t, exitDone, o.code, o.stderr)
	for _, what := range []string{
		"processor", "instructions", "kernels", "GPU", "memory", "huge pages", "io_uring", "locked", "disk",
	} {
		require.Contains(t, o.stdout, what)
	}
	require.NotRegexp(t, `(?m)^(ok|!) .*\bnone[: ]`, o.stdout, "what a machine does not have is not well, and no fault")

	e := envtest.NewEnv("", "doctor", "--json")
	e.Lookup = func(name string) (string, bool) { return "ref", name == "SLUICE_CPU" }
	e.Root = fstest.MapFS{
		"proc/meminfo": {Data: []byte("MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 524288 kB\n")},
		"sys/kernel/mm/transparent_hugepage/enabled": {Data: []byte("always madvise [never]\n")},
	}
	require.Equal(t, exitDone, run(e))
	var list []measure.Finding
	require.NoError(t, json.Unmarshal([]byte(e.Stdout.(interface{ String() string }).String()), &list))
	found := map[string]measure.Finding{}
	for _, f := range list {
		found[f.What] = f
		require.Equal(t, f.OK, f.Do == "", "%s: whoever finds a fault says what to do", f.What)
	}
	require.Equal(t, "8.0 GiB, 512.0 MiB available", found["memory"].State)
	require.False(t, found["memory"].OK)
	require.False(t, found["huge pages"].OK)
	require.Equal(t, "SLUICE_CPU=ref forces them", found["kernels"].State)
	if locked := found["locked memory"]; locked.OK { // more than the limit can be, by who has the capability
		require.Regexp(t, `^12\.0 MiB can be locked \(limit without CAP_IPC_LOCK: .+\)$`, locked.State)
	} else {
		require.Regexp(t, `^12\.0 MiB cannot be locked \(limit: .+\): .+$`, locked.State)
	}
}
