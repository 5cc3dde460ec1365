//go:build !linux

package mem

// Systems that nobody has measured yet use the Go heap: correct, but counted and collected.
func alloc(n int) ([]byte, error) { return make([]byte, n), nil }

func free([]byte) error { return nil }
