//go:build cgo && linux

package vulkan

import (
	"errors"
	"slices"
	"time"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
)

const (
	probeBytes  = 32 << 20 // of a copy
	probeCopies = 4        // of a submit
	probeTime   = 300 * time.Millisecond
	probeLeast  = 6 // submits, however long they take
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
	local, err := memory.take(vk.Local, probeBytes, "measuring")
	if err != nil {
		return r, err
	}
	var to [2]*vk.Buffer // of two recordings
	for i := range to {
		if to[i], err = memory.take(vk.Local, probeBytes*probeCopies, "measuring"); err != nil {
			return r, err
		}
	}
	q := v.queue
	r.Bus, err = steady(func(i int) (*submission, error) {
		x, err := q.fill(v.d.RecordCopies, 0, copies(to[i], host))
		return &submission{submit: func() (uint64, error) { return q.copy(x, 0, 0) },
			wait: func(value uint64) error { return q.reach(q.copies, value, 0) }, close: func() { q.close(x) }}, err
	})
	if err != nil {
		return r, err
	}
	r.Memory, err = steady(func(i int) (*submission, error) {
		x, err := q.record(0, copies(to[i], local))
		return &submission{submit: func() (uint64, error) { return q.submit(0, x) }, wait: q.wait,
			close: func() { q.close(x) }}, err
	})
	r.Memory *= 2 // it is read and written
	return r, err
}

// submission is a recording with the queue that it goes to.
type submission struct {
	submit func() (uint64, error)
	wait   func(uint64) error
	close  func()
}

// steady submits two recordings in turn, so that one always waits behind the other, as copies of weights do. It returns
// the median bytes per second of the later half: a card and its bus take some time to come to their full clocks.
func steady(record func(i int) (*submission, error)) (rate float64, err error) {
	var both [2]*submission
	for i := range both {
		if both[i], err = record(i); err != nil {
			return 0, err
		}
		defer both[i].close()
	}
	began := time.Now()
	last, values, took := began, [2]uint64{}, []time.Duration(nil)
	for i := 0; i < probeLeast || time.Since(began) < probeTime; i++ {
		x := both[i%2]
		if values[i%2], err = x.submit(); err != nil {
			return 0, err
		}
		if i == 0 {
			continue
		}
		if err = both[(i-1)%2].wait(values[(i-1)%2]); err != nil {
			return 0, err
		}
		ended := time.Now()
		took = append(took, ended.Sub(last))
		last = ended
	}
	later := took[len(took)/2:]
	slices.Sort(later)
	rate = probeBytes * probeCopies / later[len(later)/2].Seconds()
	return rate, errors.Join(both[0].wait(values[0]), both[1].wait(values[1]))
}

// copies records some that do not meet.
func copies(to, from *vk.Buffer) func(*vk.Recording) error {
	return func(r *vk.Recording) error {
		for i := range uint64(probeCopies) {
			r.Copy(to, i*probeBytes, from, 0, probeBytes)
		}
		return nil
	}
}
