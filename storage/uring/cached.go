package uring

import (
	"os"

	"github.com/sluice-ai/sluice/internal/system"
)

// partBytes is the size in bytes of a part of a file, which counts as cached or not as a whole.
const partBytes = 1 << 20

// cached records for each part of a file whether the page cache held it when the file was opened. Parts that entered
// the cache later do not count: after each cached read the kernel reads ahead, which would make the next part look
// cached, and so on, until all of the file is in memory twice.
type cached []bool

// lookup asks the kernel about all parts of a file.
func lookup(f *os.File, size int64) cached {
	parts := make(cached, (size+partBytes-1)/partBytes)
	for i := range parts {
		from := int64(i) * partBytes
		parts[i] = system.Resident(f, from, int(min(size-from, partBytes)))
	}
	return parts
}

// has reports whether all parts that a range touches were cached.
func (c cached) has(from int64, n int) bool {
	for i := from / partBytes; i <= (from+int64(n)-1)/partBytes; i++ {
		if !c[i] {
			return false
		}
	}
	return true
}
