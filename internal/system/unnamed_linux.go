package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Unnamed creates a file in a folder that vanishes with the process unless LinkUnnamed names it. Not every file system
// can.
func Unnamed(folder string, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(folder, os.O_RDWR|unix.O_TMPFILE, perm)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(Self(f)); err != nil { // there is no /proc to link from
		f.Close()
		return nil, err
	}
	return f, nil
}

// Self returns a path by which the process itself can open a file of Unnamed.
func Self(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// LinkUnnamed gives a file of Unnamed a name, which must be free.
func LinkUnnamed(f *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, Self(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// RenameNew renames a file to a name, which must be free.
func RenameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // file systems that cannot
		return LinkNew(from, to)
	}
	return err
}
