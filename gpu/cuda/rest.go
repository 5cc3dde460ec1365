//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// rest is how a device is closed, which may still be at work: what it may be reading or writing cannot be freed before
// it has come to rest.
type rest struct {
	mu    sync.Mutex
	held  bool
	later []func()
	once  sync.Once
	over  chan error // of Close: the device was closed
}

// release frees something now, or when the device has come to rest.
func (r *rest) release(free func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		r.later = append(r.later, free)
		return
	}
	free()
}

func (d *device) Hold() {
	d.rest.mu.Lock()
	defer d.rest.mu.Unlock()
	d.rest.held = true
}

// Close waits for the device within its patience: the driver may wait for ever for one that hangs. What was compiled is
// kept as soon as it is.
func (d *device) Close(bool) error {
	d.rest.once.Do(func() {
		d.rest.over = make(chan error, 1)
		go func() { d.rest.over <- d.end() }()
	})
	late := time.NewTimer(d.Patience())
	defer late.Stop()
	select {
	case err := <-d.rest.over:
		d.rest.over <- nil // for who closes it again
		return err
	case <-late.C:
		return fmt.Errorf("%s has not come to rest within %s: its memory stays taken until it has, or until this program ends",
			d.facts.Name, d.Patience())
	}
}

// end closes everything when the device has come to rest. A card that was lost has, and says so again: that is known.
func (d *device) end() error {
	for _, s := range d.streams {
		_ = s.Rest()
	}
	for _, free := range d.rest.later {
		free()
	}
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
