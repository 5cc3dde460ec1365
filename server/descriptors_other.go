//go:build !unix

package server

import "math"

// descriptors returns the number of files that the process may have open at a time: no bound is known on this system.
func descriptors() uint64 { return math.MaxUint64 }
