//go:build unix && !linux

package system

import "errors"

func advise([]byte) {}

// PopulateMemory is not supported: pages are taken at their first use.
func PopulateMemory([]byte) error { return errors.ErrUnsupported }
