//go:build !amd64 || purego

package kernels

// native sets exist for amd64 only.
func native() []*Set { return nil }
