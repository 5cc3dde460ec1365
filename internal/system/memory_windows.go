package system

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// MapMemory returns n > 0 zero bytes outside the Go heap, at the start of a page. Pages are taken at their first use.
func MapMemory(n int) ([]byte, error) {
	at, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, fmt.Errorf("map %d MiB of memory: %w", n>>20, err)
	}
	return bytesAt(at, n), nil
}

// bytesAt views memory that Windows has mapped, whose addresses are no pointers of Go's.
func bytesAt(at uintptr, n int) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n)
}

func address(area []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(area))) }

// UnmapMemory gives back an area as MapMemory returned it.
func UnmapMemory(area []byte) error {
	return windows.VirtualFree(address(area), 0, windows.MEM_RELEASE)
}

// PopulateMemory is not supported: pages are taken at their first use.
func PopulateMemory([]byte) error { return errors.ErrUnsupported }

// ForbidMemory makes any access to pages of an area a fault.
func ForbidMemory(pages []byte) error {
	var before uint32
	return windows.VirtualProtect(address(pages), uintptr(len(pages)), windows.PAGE_NOACCESS, &before)
}

// LockMemory keeps an area in memory: it is not swapped out. A process may lock a little less than its working set,
// which grows by the area first.
func LockMemory(area []byte) error {
	var least, most uintptr
	var flags uint32
	windows.GetProcessWorkingSetSizeEx(windows.CurrentProcess(), &least, &most, &flags)
	n := uintptr(len(area))
	err := windows.SetProcessWorkingSetSizeEx(windows.CurrentProcess(), least+n, most+n, flags)
	if err == nil {
		err = windows.VirtualLock(address(area), n)
	}
	if err != nil {
		return fmt.Errorf("cannot lock %d bytes in memory: %w", n, err)
	}
	return nil
}

// memoryStatus is MEMORYSTATUSEX, sizes in bytes.
type memoryStatus struct {
	size, load             uint32 // of this structure; percent in use
	physical, free         uint64
	pageFile, freePageFile uint64
	virtual, freeVirtual   uint64
	freeExtended           uint64
}

func memory() (s memoryStatus, known bool) {
	s.size = uint32(unsafe.Sizeof(s))
	ok, _, _ := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx").Call(uintptr(unsafe.Pointer(&s)))
	return s, ok != 0
}

// AvailableMemory returns the bytes that can be had without writing others to disk, within what the page file and
// memory together still have.
func AvailableMemory() (bytes int64, known bool) {
	s, known := memory()
	return int64(min(s.free, s.freePageFile)), known
}

// InstalledMemory returns the bytes of memory that the machine has.
func InstalledMemory() (bytes int64, known bool) {
	s, known := memory()
	return int64(s.physical), known
}
