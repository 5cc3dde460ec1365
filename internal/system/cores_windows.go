package system

import (
	"math/bits"
	"runtime"
	"unsafe"

	"golang.org/x/sys/windows"
)

// processors is SYSTEM_LOGICAL_PROCESSOR_INFORMATION: what the hardware threads of a mask share.
type processors struct {
	mask     uintptr
	relation uint32    // what they share; 0: a core
	_        [2]uint64 // caches and nodes
}

// Settle lets the calling thread run only on the first hardware thread of each core: two workers on one core would
// share its vector units. On failure the thread stays unrestricted.
func Settle() {
	if first, all := firstSiblings(); first != 0 && first != all {
		set := windows.NewLazySystemDLL("kernel32.dll").NewProc("SetThreadAffinityMask")
		_, _, _ = set.Call(uintptr(windows.CurrentThread()), first)
	}
}

// Cores is how many cores this process may use, at least 1. Of more than 64 hardware threads, those of one group.
func Cores() int {
	if first, _ := firstSiblings(); first != 0 {
		return bits.OnesCount64(uint64(first))
	}
	return runtime.NumCPU()
}

// firstSiblings returns the first hardware thread of each core that this process may use, and all that it may use.
func firstSiblings() (first, all uintptr) {
	kernel := windows.NewLazySystemDLL("kernel32.dll")
	var machine uintptr
	ok, _, _ := kernel.NewProc("GetProcessAffinityMask").Call(uintptr(windows.CurrentProcess()),
		uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&machine)))
	if ok == 0 {
		return 0, 0
	}
	var list [1024]processors
	n := uint32(unsafe.Sizeof(list))
	ok, _, _ = kernel.NewProc("GetLogicalProcessorInformation").Call(uintptr(unsafe.Pointer(&list)),
		uintptr(unsafe.Pointer(&n)))
	if ok == 0 {
		return 0, 0
	}
	for _, p := range list[:n/uint32(unsafe.Sizeof(list[0]))] {
		if mask := p.mask & all; p.relation == 0 {
			first |= mask & -mask
		}
	}
	return first, all
}

// Yield lets another thread have this core, if one is waiting for it.
func Yield() { _, _, _ = switchToThread.Call() }

var switchToThread = windows.NewLazySystemDLL("kernel32.dll").NewProc("SwitchToThread")
