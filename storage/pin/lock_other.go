//go:build !linux

package pin

import "errors"

func lock([]byte) error { return errors.New("memory cannot be locked on this system yet") }
