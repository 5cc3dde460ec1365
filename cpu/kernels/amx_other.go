//go:build amd64 && !purego && !linux

package kernels

// tilesAllowed is about Linux, where it is known how to ask.
func tilesAllowed() bool { return false }
