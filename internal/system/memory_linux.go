package system

import "golang.org/x/sys/unix"

// hugePage is the size of a huge page on amd64 and arm64, in bytes: smaller areas get none.
const hugePage = 2 << 20

// advise asks for huge pages. It is advice only: a kernel without them refuses it, and small pages serve as well.
func advise(area []byte) {
	if len(area) >= hugePage {
		_ = unix.Madvise(area, unix.MADV_HUGEPAGE)
	}
}

// PopulateMemory faults pages in for writing without changing their content (since Linux 5.14).
func PopulateMemory(area []byte) error { return unix.Madvise(area, unix.MADV_POPULATE_WRITE) }

// AvailableMemory is not known by a call: Linux tells it in files.
func AvailableMemory() (bytes int64, known bool) { return 0, false }

// InstalledMemory is not known by a call: Linux tells it in files.
func InstalledMemory() (bytes int64, known bool) { return 0, false }
