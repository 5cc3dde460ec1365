//go:build unix && !linux

package system

// Settle does nothing: the system chooses among all hardware threads.
func Settle() {}

// Yield does nothing: a thread that waits keeps its core.
func Yield() {}
