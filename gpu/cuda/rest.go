//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
)

func (d *device) Hold() { d.rest.Hold() }

// Close waits for the device within its patience. What was compiled is kept as soon as it is.
func (d *device) Close(bool) error { return d.rest.Close(d.facts.Name, d.Patience(), d.end) }

// end closes everything when the device has come to rest. A card that was lost has, and says so again: that is known.
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
