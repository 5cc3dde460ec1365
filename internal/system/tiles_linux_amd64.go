package system

import "golang.org/x/sys/unix"

// Constants of arch_prctl (asm/prctl.h): a request to use a part of the processor's state, here number 18: tile data.
const (
	archReqXcompPerm = 0x1023
	xfeatureTileData = 18
)

// AllowTiles asks the kernel to let this process use tile registers (AMX). Asking again changes nothing.
func AllowTiles() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archReqXcompPerm, xfeatureTileData, 0)
	return errno == 0
}
