//go:build unix

package env

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// hasText says whether a stream is a regular file, or a pipe that has data or ends within inputWait. The parent process
// may have left a pipe open without ever writing to it.
func hasText(stream io.Reader) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return err == nil && info.Mode().IsRegular()
	}
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, int(inputWait.Milliseconds()))
		if err != unix.EINTR {
			return n == 1
		}
	}
}
