//go:build amd64 && !purego

package kernels

import "golang.org/x/sys/unix"

// Constants of arch_prctl (asm/prctl.h): a request to use a part of the processor's state, here number 18: tile data.
const (
	archReqXcompPerm = 0x1023
	xfeatureTileData = 18
)

// tilesAllowed asks the kernel to let this process use tile registers. Asking again changes nothing.
func tilesAllowed() bool {
	_, _, errno := unix.RawSyscall(unix.SYS_ARCH_PRCTL, archReqXcompPerm, xfeatureTileData, 0)
	return errno == 0
}
