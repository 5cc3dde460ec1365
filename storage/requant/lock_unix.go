//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package requant

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps other runs away from a file until it is closed. File systems without locks do not.
func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errors.New("is being written by another run: wait for it")
	}
	return nil
}
