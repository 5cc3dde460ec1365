//go:build cgo && linux

package vk

import (
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Clocks, numbered as VkTimeDomainKHR.
const (
	deviceClock = 0 // the clock of timestamps
	hostClock   = 1 // CLOCK_MONOTONIC, which is time.Now's, too
)

// calibration is the suffix of the names of the functions that read both clocks, KHR or EXT; empty: the device has
// none.
func (p *Physical) calibration() string {
	for _, vendor := range []string{"KHR", "EXT"} {
		if p.extensions["VK_"+vendor+"_calibrated_timestamps"] {
			return vendor
		}
	}
	return ""
}

// calibrates says whether the device's clock and the host's can be read together.
func (p *Physical) calibrates() bool {
	if p.calibration() == "" {
		return false
	}
	list := p.library.function("vkGetPhysicalDeviceCalibrateableTimeDomains" + p.calibration())
	if list == 0 {
		return false
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	n := new(uint32)
	if list.call(number(p.handle), address(&pin, n), 0) < 0 {
		return false
	}
	all := make([]uint32, *n)
	if list.call(number(p.handle), address(&pin, n), slice(&pin, all)) < 0 {
		return false
	}
	return slices.Contains(all, deviceClock) && slices.Contains(all, hostClock)
}

// Calibrate reads the device's clock, in ticks: it showed tick between the host's times from and to. ok is false if the
// device cannot.
func (d *Device) Calibrate() (tick uint64, from, to time.Time, ok bool) {
	if d.f.calibrate == 0 {
		return 0, from, to, false
	}
	ticks, host, apart, r := d.clocks()
	var clock unix.Timespec
	before := time.Now() // time.Now reads the same clock, but does not return its count
	if r != Success || unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock) != nil {
		return 0, from, to, false
	}
	after := time.Now()
	ago, off := time.Duration(clock.Nano()-int64(host)), time.Duration(apart)
	return ticks, before.Add(-ago - off), after.Add(-ago + off), true
}

// StampBits is the valid bits of a timestamp, in recordings that compute and in those of copies; 0: these have no
// timestamps.
func (d *Device) StampBits() (compute, copies uint32) {
	return d.Facts.Queues[d.compute.family].StampBits, d.Facts.Queues[d.copies.family].StampBits
}
