//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
)

func (d *device) Hold() { d.rest.Hold() }

// Close waits until the device is idle, for Patience at most, and closes it. Compiled modules need no saving: each was
// when it was compiled.
func (d *device) Close(bool) error { return d.rest.Close(d.facts.Name, d.Patience(), d.end) }

// end waits until the device is at rest, and closes everything. A card that was lost is at rest; it returns its error
// again, which was reported before.
func (d *device) end() error {
	for _, s := range d.streams {
		_ = s.Rest()
	}
	d.rest.Free()
	lost := d.fault() != nil
	err := errors.Join(d.kernels.close(), d.words.close(), d.closeStreams(), d.c.Close())
	if lost {
		return nil
	}
	if n := d.live.Load(); n != 0 {
		err = errors.Join(err, fmt.Errorf("%d buffers, recordings or timelines were not closed", n))
	}
	return err
}
