//go:build unix && !linux && !darwin

package system

import "runtime"

// Cores is how many hardware threads the machine has.
func Cores() int { return runtime.NumCPU() }
