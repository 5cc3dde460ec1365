//go:build linux || darwin

package measure

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
)

// diskFree is what an ordinary user may still write to the disk of dir, in bytes.
func diskFree(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail * uint64(s.Bsize)), nil
}

// lockLimit shows the limit of memory that this process may lock.
func lockLimit() string {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r); err != nil {
		return fmt.Sprintf("unknown (%v)", err)
	}
	if r.Cur > 1<<62 {
		return "none"
	}
	return env.BinarySize(int64(r.Cur))
}
