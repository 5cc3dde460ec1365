//go:build (!amd64 && !arm64) || purego

package kernels

// native lists nothing: there are sets in assembly for amd64 and arm64 only.
func native() []*Set { return nil }
