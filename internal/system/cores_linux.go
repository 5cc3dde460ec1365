package system

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Settle lets the calling thread run only on the first hardware thread of each core: two workers on one core would
// share its vector units. The kernel chooses among these cores, so that a worker can move away from a busy neighbour,
// or from a thread that is not restricted. On failure the thread stays unrestricted.
func Settle() {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return
	}
	if first := firstSiblings(&allowed); first.Count() < allowed.Count() {
		_ = unix.SchedSetaffinity(0, first)
	}
}

// Cores is how many cores this process may use, at least 1.
func Cores() int {
	var allowed unix.CPUSet
	if unix.SchedGetaffinity(0, &allowed) != nil {
		return 1
	}
	return max(1, firstSiblings(&allowed).Count())
}

// firstSiblings keeps the first hardware thread of each core.
func firstSiblings(allowed *unix.CPUSet) *unix.CPUSet {
	var first unix.CPUSet
	seen := map[string]bool{}
	for cpu, left := 0, allowed.Count(); left > 0; cpu++ {
		if !allowed.IsSet(cpu) {
			continue
		}
		left--
		if core := siblings(cpu); !seen[core] {
			seen[core] = true
			first.Set(cpu)
		}
	}
	return &first
}

// siblings names the core of a CPU by the list of its hardware threads; an unknown one is a core of its own.
func siblings(cpu int) string {
	list, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
	if err != nil {
		return strconv.Itoa(cpu)
	}
	return strings.TrimSpace(string(list))
}

// Yield lets another thread have this core, if one is waiting for it.
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
