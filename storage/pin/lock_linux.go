package pin

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func lock(b []byte) error {
	if err := unix.Mlock(b); err != nil {
		return fmt.Errorf("cannot lock %d bytes in memory: %w: raise the limit (ulimit -l)", len(b), err)
	}
	return nil
}
