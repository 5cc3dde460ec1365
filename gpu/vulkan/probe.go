//go:build cgo && linux

package vulkan

import (
	"errors"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

const (
	probeBytes  = 64 << 20 // of a copy
	probeCopies = 8        // of a submit
	probeTries  = 4        // the first of them wakes the card
)

// Measure finds how fast copies reach a device's memory from page-locked memory of the host, and how fast that memory
// is read and written. A device that is none of ours has no rates. It takes tenths of a second.
func Measure(d backend.Device) (r Rates, err error) {
	v, ok := d.(*Device)
	if !ok {
		return r, nil
	}
	memory := buffers{d: v.d}
	defer memory.free()
	host, err := memory.take(vk.Staging, probeBytes, "measuring")
	if err != nil {
		return r, err
	}
	var local [2]*vk.Buffer
	for i := range local {
		if local[i], err = memory.take(vk.Local, probeBytes, "measuring"); err != nil {
			return r, err
		}
	}
	q := v.queue
	bus, err := q.fill(v.d.RecordCopies, copies(local[0], host))
	if err != nil {
		return r, err
	}
	defer q.close(bus)
	inside, err := q.record(copies(local[1], local[0]))
	if err != nil {
		return r, err
	}
	defer q.close(inside)
	for range probeTries {
		toDevice, busErr := timed(func() (uint64, error) { return q.copy(bus, 0, 0) }, func(value uint64) error {
			return q.reach(q.copies, value)
		})
		within, err := timed(func() (uint64, error) { return q.submit(0, inside) }, q.wait)
		if err := errors.Join(busErr, err); err != nil {
			return r, err
		}
		const bytes = probeBytes * probeCopies
		r.Bus, r.Memory = max(r.Bus, bytes/toDevice), max(r.Memory, 2*bytes/within)
	}
	return r, nil
}

// copies records some of the same.
func copies(to, from *vk.Buffer) func(*vk.Recording) error {
	return func(r *vk.Recording) error {
		for range probeCopies {
			r.Copy(to, 0, from, 0, probeBytes)
		}
		return nil
	}
}

// timed is the seconds from a submit to its end.
func timed(submit func() (uint64, error), wait func(uint64) error) (float64, error) {
	began := time.Now()
	value, err := submit()
	if err == nil {
		err = wait(value)
	}
	return time.Since(began).Seconds(), err
}
