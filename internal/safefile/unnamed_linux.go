package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// unnamed creates a file in a folder that vanishes with the process unless it is linked. Not every file system can.
func unnamed(folder string, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(folder, os.O_RDWR|unix.O_TMPFILE, perm)
	if err != nil {
		return nil, err
	}
	if _, err := os.Lstat(self(f)); err != nil { // there is no /proc to link from
		f.Close()
		return nil, err
	}
	return f, nil
}

// self returns a path by which the process itself can open a file without a name.
func self(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// link gives an unnamed file a name, which must be free.
func link(f *os.File, name string) error {
	return unix.Linkat(unix.AT_FDCWD, self(f), unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW)
}

// renameNew renames to a name, which must be free.
func renameNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // file systems that cannot
		return linkNew(from, to)
	}
	return err
}
