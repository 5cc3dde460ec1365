//go:build amd64 && !purego && !linux

package kernels

// tilesAllowed is false: only on Linux it is known how to ask for tile registers.
func tilesAllowed() bool { return false }
