//go:build cgo && linux

package vk

import (
	"fmt"
	"sync"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// rest is how a device is closed, which may still be at work: it hangs, or was lost. What it may be reading or writing
// cannot be destroyed before it has come to rest.
type rest struct {
	mu    sync.Mutex
	held  bool
	later []func() // destroys what was closed meanwhile
	once  sync.Once
	over  chan error // of Close: the device was destroyed

	inside sync.WaitGroup // calls that wait for all work, with some drivers: they may be left to it
}

// Hold has everything that is closed from now on stay until the device has come to rest, in Close. It is for one that
// hangs, or was lost.
func (d *Device) Hold() {
	d.rest.mu.Lock()
	defer d.rest.mu.Unlock()
	d.rest.held = true
}

// release destroys something of the device's, now or when it has come to rest.
func (d *Device) release(destroy func()) {
	d.rest.mu.Lock()
	defer d.rest.mu.Unlock()
	if d.rest.held {
		d.rest.later = append(d.rest.later, destroy)
		return
	}
	destroy()
}

// Close waits for the device and closes it, once. What was made on it must have been closed: an error says if not. The
// driver may wait for ever, for one that hangs or, as NVIDIA's, for another device whose copies do: nobody else does.
// What has not come to rest in time is destroyed when it has, if ever, and an error says so.
func (d *Device) Close() error {
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
			d.Facts.Name, d.Patience())
	}
}

// end destroys the device, and what was closed while it was held, when it has come to rest.
func (d *Device) end() error {
	if number(d.handle) == 0 {
		return nil // it was never opened
	}
	vulkan.DeviceWaitIdle(d.handle) // what fails has been told
	d.rest.inside.Wait()
	for _, destroy := range d.rest.later {
		destroy()
	}
	return d.destroy()
}
