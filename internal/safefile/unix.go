//go:build unix

package safefile

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	noWait   = unix.O_NONBLOCK
	noFollow = unix.O_NOFOLLOW
)

// lock locks a file against other runs until it is closed. On file systems without locks it does nothing.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrBusy
	}
	return nil
}

// names returns the number of hard links of a file.
func names(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Nlink)
	}
	return 1
}

// descriptor returns the descriptor of this process that a path such as /dev/stdout names. Opened again by its name,
// a file that the shell appends to would be written from its beginning.
func descriptor(path string) (int, bool) {
	switch path {
	case "/dev/stdout":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	for _, folder := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if rest, ok := strings.CutPrefix(path, folder); ok {
			n, err := strconv.ParseUint(rest, 10, 16)
			return int(n), err == nil
		}
	}
	return 0, false
}

func duplicate(number int, name string) (*os.File, error) {
	d, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(d), name), nil
}
