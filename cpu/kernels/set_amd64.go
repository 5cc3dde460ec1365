//go:build amd64 && !purego

package kernels

func native() []*Set { return nil }
