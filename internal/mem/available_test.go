package mem

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// TestAvailable reads trees as Linux shows them.
func TestAvailable(t *testing.T) {
	const mib = 1 << 20
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	machine := func() fstest.MapFS {
		return fstest.MapFS{"proc/meminfo": file("MemTotal:  2048 kB\nMemAvailable:   1048576 kB\n")}
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no groups": {nil, 1024 * mib},
		"version 2, a container's limit": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "536870912\n",
			"sys/fs/cgroup/memory.current": "104857600\n",
			"sys/fs/cgroup/memory.stat":    "anon 1\ninactive_file 52428800\nactive_file 1048576\n",
		}, (512 - 100 + 50 + 1) * mib},
		"version 2, full of files read twice": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "536870912\n",
			"sys/fs/cgroup/memory.current": "536870912\n",
			"sys/fs/cgroup/memory.stat":    "inactive_file 0\nactive_file 419430400\nslab_reclaimable 20971520\n",
		}, (400 + 20) * mib},
		"version 2, more files than are used": {map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "536870912\n",
			"sys/fs/cgroup/memory.current": "1048576\n",
			"sys/fs/cgroup/memory.stat":    "active_file 2097152\n",
		}, 512 * mib},
		"version 2, the group above is tighter": {map[string]string{
			"proc/self/cgroup":                 "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":     "max\n",
			"sys/fs/cgroup/a/b/memory.current": "1\n",
			"sys/fs/cgroup/a/memory.max":       "209715200\n",
			"sys/fs/cgroup/a/memory.current":   "104857600\n",
		}, 100 * mib},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/job\n0::/\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "314572800\n",
			"sys/fs/cgroup/memory/job/memory.usage_in_bytes": "104857600\n",
			"sys/fs/cgroup/memory/job/memory.stat":           "total_inactive_file 0\ntotal_active_file 1048576\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":     "9223372036854771712\n",
			"sys/fs/cgroup/memory/memory.usage_in_bytes":     "1\n",
		}, 201 * mib},
		"a limit that is passed": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1048576", "sys/fs/cgroup/memory.current": "2097152",
		}, 0},
		"a looser limit": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "8589934592", "sys/fs/cgroup/memory.current": "1",
		}, 1024 * mib},
		"nonsense": {map[string]string{
			"proc/self/cgroup": "0\n:::\nx", "sys/fs/cgroup/memory.max": "many", "sys/fs/cgroup/memory.current": "1",
		}, 1024 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			root := machine()
			for path, text := range c.files {
				root[path] = file(text)
			}
			require.Equal(t, c.want, available(root))
		})
	}
	require.EqualValues(t, 4<<30, available(fstest.MapFS{}), "nothing is known")
	require.Positive(t, Available())
}
