package system

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Cores is how many cores the machine has, of both kinds where there are two, at least 1.
func Cores() int {
	if n, err := unix.SysctlUint32("hw.physicalcpu"); err == nil && n > 0 {
		return int(n)
	}
	return runtime.NumCPU()
}
