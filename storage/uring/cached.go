package uring

import "os"

const (
	partBytes = 1 << 20 // a piece of a file is said to be cached, or not, in parts of this size
	fewPages  = 128     // a range of which the page cache lacks at most one page in so many is read from there
)

// cached records for each part of a file whether the page cache held it when the file was opened. Parts that were
// read since do not count: a kernel reads ahead of cached reads, which would make the next piece look cached, and so
// on, until all of the file is in memory twice.
type cached []bool

// lookup asks the kernel about all parts of a file.
func lookup(f *os.File, size int64) cached {
	parts := make(cached, (size+partBytes-1)/partBytes)
	for i := range parts {
		from := int64(i) * partBytes
		parts[i] = resident(f, from, int(min(size-from, partBytes)))
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
