//go:build !linux || !amd64

package system

// AllowTiles is false: only on Linux it is known how to ask for tile registers (AMX).
func AllowTiles() bool { return false }
