package uring

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openDirect opens a file past the page cache and returns the block size of such reads, or nil where the system
// does not say that it can: tmpfs, network and stacked file systems, kernels before 6.1.
func openDirect(path string) (*os.File, int) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil, 0
	}
	var st unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	block := max(st.Dio_mem_align, st.Dio_offset_align)
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 || st.Dio_offset_align == 0 || !usable(block) {
		f.Close()
		return nil, 0
	}
	return f, int(block)
}

func aligned(b []byte, block int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(block-1) == 0
}
