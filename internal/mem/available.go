package mem

import (
	"bufio"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/internal/system"
)

// Available returns the number of bytes that can be allocated without swapping: the system's estimate (on Linux
// MemAvailable of /proc/meminfo), and at most what the limits of the process's control groups leave. On systems without
// either it is 4 GiB.
func Available() int64 {
	if n, known := system.AvailableMemory(); known {
		return n
	}
	return available(os.DirFS("/"))
}

func available(root fs.FS) int64 {
	const guess = 4 << 30
	system, ok := field(root, "proc/meminfo", "MemAvailable:")
	if !ok {
		system = guess >> 10
	}
	return min(system<<10, groups(root))
}

// controls names the files of a version of control groups.
type controls struct {
	mount, limit, used string
	reclaimable        []string // fields of memory.stat: pages of files, which are given back when memory is wanted
}

// version1 and version2 return the files of control groups (Linux, admin-guide: cgroup-v1/memory and cgroup-v2).
func version1() controls {
	return controls{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
		[]string{"total_inactive_file ", "total_active_file "}}
}

func version2() controls {
	return controls{"sys/fs/cgroup", "memory.max", "memory.current",
		[]string{"inactive_file ", "active_file ", "slab_reclaimable "}}
}

// groups returns the bytes that the limits of the process's control groups, and of their parents, leave. Pages of files
// count as used there, but are given back when memory is wanted, so they are added: those read twice (active) as well,
// which fill a group that has read much, so that next to nothing would be left.
func groups(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	left := int64(math.MaxInt64)
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // number:controllers:path
		if len(parts) < 3 {
			continue
		}
		switch {
		case parts[1] == "":
			left = min(left, version2().left(root, parts[2]))
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			left = min(left, version1().left(root, parts[2]))
		}
	}
	return left
}

// left returns the least that a group and its parents leave. In a container only a part of the path may be mounted.
func (c controls) left(root fs.FS, group string) int64 {
	left := int64(math.MaxInt64)
	for at := path.Clean("/" + group); ; at = path.Dir(at) {
		folder := path.Join(c.mount, at)
		limit, limited := number(root, path.Join(folder, c.limit))
		used, known := number(root, path.Join(folder, c.used))
		if limited && known {
			for _, name := range c.reclaimable {
				files, _ := field(root, path.Join(folder, "memory.stat"), name)
				used -= files
			}
			left = min(left, max(limit-max(used, 0), 0))
		}
		if at == "/" {
			return left
		}
	}
}

// number reads a file with one number; "max" counts as none.
func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// field reads the number after a name at the beginning of a line.
func field(root fs.FS, name, begin string) (int64, bool) {
	f, err := root.Open(name)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), begin); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
