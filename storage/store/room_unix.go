//go:build linux || darwin || freebsd

package store

import "golang.org/x/sys/unix"

// freeBytes returns the bytes that this user may still write to a disk.
func freeBytes(dir string) (n int64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true //nolint:unconvert // its type depends on the system
}
