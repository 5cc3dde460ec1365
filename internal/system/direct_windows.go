package system

import (
	"os"

	"golang.org/x/sys/windows"
)

// largestSector is a multiple of the sectors of drives that Windows supports, in bytes.
const largestSector = 4096

// OpenDirect opens a file past the page cache and returns the block size of direct reads in bytes. It returns nil
// where the system does not offer them.
func OpenDirect(path string) (*os.File, int) {
	f, err := os.OpenFile(path, os.O_RDONLY|windows.FILE_FLAG_NO_BUFFERING|windows.FILE_FLAG_OVERLAPPED, 0)
	if err != nil {
		return nil, 0
	}
	return f, largestSector
}

// Resident reports false: Windows does not say what its cache holds.
func Resident(*os.File, int64, int) bool { return false }
