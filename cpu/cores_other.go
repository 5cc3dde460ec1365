//go:build !linux

package cpu

import "runtime"

func settle() {}

func cores() int { return runtime.NumCPU() }

func yield() {}
