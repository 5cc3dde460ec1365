//go:build linux || darwin

package compute

import "golang.org/x/sys/unix"

// deviceOf is the number of the device on which a file lies.
func deviceOf(path string) (major, minor uint32, err error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return 0, 0, err
	}
	dev := uint64(s.Dev) //nolint:unconvert // it is an int32 on darwin
	return unix.Major(dev), unix.Minor(dev), nil
}
