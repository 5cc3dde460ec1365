//go:build cgo && linux

package vk

import (
	vulkan "github.com/vulkan-go/vulkan"
)

// Hold makes everything that is closed from now on wait for Close: the device hangs or was lost, and may still be using
// it.
func (d *Device) Hold() { d.rest.Hold() }

// release destroys an object of the device, now or, if it is held, when it has come to rest.
func (d *Device) release(destroy func()) { d.rest.Release(destroy) }

// Close waits until the device is idle and closes it, once. It returns an error if objects were not closed before. The
// driver may wait for ever, for a device that hangs or, as NVIDIA's, for another one whose copies do: so Close waits
// for Patience at most, and returns an error. What the device uses is then destroyed when it comes to rest, if ever.
func (d *Device) Close() error { return d.rest.Close(d.Facts.Name, d.Patience(), d.end) }

// end waits until the device is at rest, and destroys it with what was closed while it was held.
func (d *Device) end() error {
	if number(d.handle) == 0 {
		return nil // it was never opened
	}
	vulkan.DeviceWaitIdle(d.handle) // errors were reported before
	d.inside.Wait()
	d.rest.Free()
	return d.destroy()
}
