//go:build unix

package system

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptor returns the descriptor of this process that a path such as /dev/stdout names. Opened again by its name,
// a file that the shell appends to would be written from its beginning.
func Descriptor(path string) (int, bool) {
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

// Duplicate opens a descriptor of this process a second time.
func Duplicate(number int, name string) (*os.File, error) {
	d, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(d), name), nil
}

// Readable reports whether a pipe has data, or has ended, within some time.
func Readable(f *os.File, within time.Duration) bool {
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, int(within.Milliseconds()))
		if err != unix.EINTR {
			return n == 1
		}
	}
}
