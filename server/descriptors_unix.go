//go:build unix

package server

import (
	"math"

	"golang.org/x/sys/unix"
)

// descriptors is how many the process may have open at a time.
func descriptors() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return math.MaxUint64
	}
	return uint64(r.Cur) //nolint:unconvert // it is signed on some systems
}
