package system

import (
	"errors"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Descriptor returns none: paths name no streams of the process.
func Descriptor(string) (int, bool) { return 0, false }

// Duplicate fails: streams have no numbers.
func Duplicate(int, string) (*os.File, error) { return nil, errors.ErrUnsupported }

// peekEvery is the time between two looks into a pipe, which cannot be waited for.
const peekEvery = 5 * time.Millisecond

// Readable reports whether a pipe has data, or has ended, within some time.
func Readable(f *os.File, within time.Duration) bool {
	peek := windows.NewLazySystemDLL("kernel32.dll").NewProc("PeekNamedPipe")
	for end := time.Now().Add(within); ; time.Sleep(peekEvery) {
		var waiting uint32
		ok, _, _ := peek.Call(f.Fd(), 0, 0, 0, uintptr(unsafe.Pointer(&waiting)), 0)
		switch {
		case ok == 0 || waiting > 0: // it fails where the other side has closed the pipe
			return true
		case time.Now().After(end):
			return false
		}
	}
}
