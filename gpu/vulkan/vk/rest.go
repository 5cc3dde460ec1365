//go:build cgo && linux

package vk

import (
	"fmt"
	"sync"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// rest is how a device is closed that may still be at work: one that hangs, or was lost. What it may be reading or
// writing cannot be destroyed before it has come to rest.
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

// leave closes a device that is held. The driver may wait for it for ever: nobody else does. What has not come to rest
// in time is destroyed when it has, if ever.
func (d *Device) leave() error {
	d.rest.once.Do(func() {
		d.rest.over = make(chan error, 1)
		go func() {
			vulkan.DeviceWaitIdle(d.handle) // that it is lost is known
			d.rest.inside.Wait()
			for _, destroy := range d.rest.later {
				destroy()
			}
			d.rest.over <- d.destroy()
		}()
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
