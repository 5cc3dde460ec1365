//go:build unix

package server

import (
	"math"

	"golang.org/x/sys/unix"
)

// descriptors returns the number of files that the process may have open at a time, its soft limit.
func descriptors() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return math.MaxUint64
	}
	return uint64(r.Cur) //nolint:unconvert // it is signed on some systems
}
