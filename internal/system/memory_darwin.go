package system

import (
	"os"

	"golang.org/x/sys/unix"
)

// AvailableMemory returns the bytes of free pages and of pages that hold files, which are given up when memory is
// wanted.
func AvailableMemory() (bytes int64, known bool) {
	var pages int64
	for _, name := range []string{"vm.page_free_count", "vm.page_pageable_external_count"} {
		n, err := unix.SysctlUint32(name)
		if err != nil {
			return 0, false
		}
		pages += int64(n)
	}
	return pages * int64(os.Getpagesize()), true
}

// InstalledMemory returns the bytes of memory that the machine has.
func InstalledMemory() (bytes int64, known bool) {
	n, err := unix.SysctlUint64("hw.memsize")
	return int64(n), err == nil
}
