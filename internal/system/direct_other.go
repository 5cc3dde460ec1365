//go:build unix && !linux && !darwin

package system

import "os"

// OpenDirect returns nil: on this system no way past the page cache is known.
func OpenDirect(string) (*os.File, int) { return nil, 0 }

// Resident reports false: it is not known.
func Resident(*os.File, int64, int) bool { return false }
