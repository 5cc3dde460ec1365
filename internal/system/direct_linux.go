package system

import (
	"os"

	"golang.org/x/sys/unix"
)

// OpenDirect opens a file past the page cache and returns the block size of direct reads in bytes. It returns nil
// where the system does not offer them: tmpfs, network and stacked file systems, kernels before 6.1.
func OpenDirect(path string) (*os.File, int) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECT|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, 0
	}
	var st unix.Statx_t
	err = unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	block := max(st.Dio_mem_align, st.Dio_offset_align)
	if err != nil || st.Mask&unix.STATX_DIOALIGN == 0 || st.Dio_offset_align == 0 {
		f.Close()
		return nil, 0
	}
	return f, int(block)
}

// fewPages is the bound of missing pages: a range counts as cached if at most one in so many is missing.
const fewPages = 128

// Resident reports whether the page cache holds all or nearly all pages of a range. Short of memory, the system evicts
// single pages: if few are missing, the kernel fetches them while the others are copied, which costs less than a
// direct read of the whole range. Before Linux 6.5 it reports false: there is only mincore, which tells nothing about
// files that the caller may not write.
func Resident(f *os.File, from int64, n int) bool {
	page := int64(os.Getpagesize())
	pages := (from+int64(n)-1)/page - from/page + 1
	var found unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Off: uint64(from), Len: uint64(n)}, &found, 0)
	return err == nil && found.Cache >= uint64(pages-pages/fewPages)
}
