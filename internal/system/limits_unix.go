//go:build unix

package system

import (
	"math"

	"golang.org/x/sys/unix"
)

// MostFiles returns the number of files that the process may have open at a time, its soft limit.
func MostFiles() uint64 {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return math.MaxUint64
	}
	return uint64(r.Cur) //nolint:unconvert // it is signed on some systems
}

// MostLocked returns the bytes of memory that the process may lock; math.MaxUint64: there is no limit.
func MostLocked() (uint64, error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		return 0, err
	}
	if r.Cur > 1<<62 {
		return math.MaxUint64, nil
	}
	return uint64(r.Cur), nil //nolint:unconvert // as above
}

// ToLockMore says how a person lets processes lock more memory.
const ToLockMore = "ulimit -l unlimited, or a memlock line in /etc/security/limits.conf"
