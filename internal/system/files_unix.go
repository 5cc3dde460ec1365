//go:build unix

package system

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Flags of OpenFile: a pipe or device is not waited for, a link at the end of a path is not followed.
const (
	NoWait   = unix.O_NONBLOCK
	NoFollow = unix.O_NOFOLLOW
)

// OpenFile is os.OpenFile; the file can be renamed and removed while it is open.
func OpenFile(path string, flags int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flags, perm)
}

// MapFile maps the first n > 0 bytes of a file, read only.
func MapFile(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
}

// UnmapFile ends a mapping as MapFile returned it.
func UnmapFile(b []byte) error { return unix.Munmap(b) }

// LockFile locks a file against other holders until it is closed; the error is ErrLocked if one has it. On file systems
// without locks it does nothing.
func LockFile(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return nil
}

// Links returns the number of names, hard links, that a file has.
func Links(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 1
}

// LinkTo makes a link, whose target is relative to its folder.
func LinkTo(target, path string) error { return os.Symlink(target, path) }

// LinksTo reports whether there is a link as LinkTo makes it.
func LinksTo(path, target string) bool {
	to, _ := os.Readlink(path)
	return to == target
}

// SyncFolder syncs a folder, so that new names in it survive a crash. A folder that may be written to but not read is
// left to the system.
func SyncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // the files are there
	}
	return errors.Join(d.Sync(), d.Close())
}

// ReadAt does one read, which may be short. (*os.File).ReadAt would continue after a short read at an offset that a
// direct read must not have.
func ReadAt(f *os.File, b []byte, at int64) (int, error) {
	for {
		n, err := unix.Pread(int(f.Fd()), b, at)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// Room returns the bytes that this user may still write to the disk of a folder.
func Room(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // their types depend on the system
}

// DeviceOf returns the number of the device on which a file lies.
func DeviceOf(path string) (major, minor uint32, err error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, 0, err
	}
	dev := uint64(s.Dev) //nolint:unconvert // it is an int32 on darwin
	return unix.Major(dev), unix.Minor(dev), nil
}
