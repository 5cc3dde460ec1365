//go:build cgo && linux

package vk

import (
	vulkan "github.com/vulkan-go/vulkan"
)

// Hold has everything that is closed from now on stay until the device has come to rest, in Close. It is for one that
// hangs, or was lost.
func (d *Device) Hold() { d.rest.Hold() }

// release destroys something of the device's, now or when it has come to rest.
func (d *Device) release(destroy func()) { d.rest.Release(destroy) }

// Close waits for the device and closes it, once. What was made on it must have been closed: an error says if not. The
// driver may wait for ever, for one that hangs or, as NVIDIA's, for another device whose copies do: nobody else does.
// What has not come to rest in time is destroyed when it has, if ever, and an error says so.
func (d *Device) Close() error { return d.rest.Close(d.Facts.Name, d.Patience(), d.end) }

// end destroys the device, and what was closed while it was held, when it has come to rest.
func (d *Device) end() error {
	if number(d.handle) == 0 {
		return nil // it was never opened
	}
	vulkan.DeviceWaitIdle(d.handle) // what fails has been told
	d.inside.Wait()
	d.rest.Free()
	return d.destroy()
}
