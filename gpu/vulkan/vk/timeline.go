//go:build cgo && linux

package vk

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// Timeline is a counter (a timeline semaphore) that the device and the host raise and wait for.
type Timeline struct {
	d         *Device
	mu        sync.Mutex // guards semaphore while a test's gate may raise it and Close destroys it
	semaphore vulkan.Semaphore
}

// Point is a value that a timeline reaches.
type Point struct {
	Timeline *Timeline
	Value    uint64
}

// NewTimeline makes a timeline at 0.
func (d *Device) NewTimeline() (*Timeline, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	const timeline = 1 // VK_SEMAPHORE_TYPE_TIMELINE
	kind := &semaphoreType{head: head{kind: isSemaphoreType}, kind: timeline}
	info := &semaphoreInfo{head: head{kind: isSemaphore, next: address(&pin, kind)}}
	t := &Timeline{d: d}
	semaphore := new(vulkan.Semaphore)
	r := d.try("vkCreateSemaphore", func() vulkan.Result {
		return vulkan.CreateSemaphore(d.handle, vulkan.NewSemaphoreCreateInfoRef(pinned(&pin, info)), nil, semaphore)
	})
	t.semaphore = *semaphore
	if r < 0 {
		return nil, r.err("creating a timeline")
	}
	d.live.Add(1)
	return t, nil
}

// Value is what the timeline has reached. It costs some nanoseconds.
func (t *Timeline) Value() (uint64, error) {
	v, r := t.value()
	return v, r.err("reading a timeline")
}

// Wait blocks the calling thread until the timeline reaches a value. After limit it fails with Timeout.
func (t *Timeline) Wait(value uint64, limit time.Duration) error {
	if r := t.wait(value, uint64(limit)); r != Success {
		return fmt.Errorf("waiting for %s: %w", t.d.Facts.Name, r)
	}
	return nil
}

// Signal raises the timeline from the host.
func (t *Timeline) Signal(value uint64) error {
	return t.raise(value).err("raising a timeline")
}

// Close destroys the timeline. Nothing may wait for it.
func (t *Timeline) Close() {
	if number(t.semaphore) != 0 {
		t.d.live.Add(-1)
		t.d.release(t.destroy)
	}
}

func (t *Timeline) destroy() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.d.closed.add(t.d, t.semaphore)
	t.semaphore = handle[vulkan.Semaphore](0)
}

// closedTimelines are the newest timelines that were closed, and not destroyed yet: lavapipe's threads touch a timeline
// once more after it has reached the value that was waited for, and crash if it is gone.
type closedTimelines struct {
	mu     sync.Mutex
	newest []vulkan.Semaphore
}

// mostClosed is how many timelines are kept that way: a thread is done with one long before as many others are closed.
const mostClosed = 64

// add takes a timeline, and destroys the oldest one if there are too many.
func (c *closedTimelines) add(d *Device, s vulkan.Semaphore) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newest = append(c.newest, s); len(c.newest) > mostClosed {
		vulkan.DestroySemaphore(d.handle, c.newest[0], nil)
		c.newest = append(c.newest[:0], c.newest[1:]...)
	}
}

// destroy destroys them all. The device is idle.
func (c *closedTimelines) destroy(d *Device) {
	for _, s := range c.newest {
		vulkan.DestroySemaphore(d.handle, s, nil)
	}
	c.newest = nil
}

// Submit queues recordings of one queue, in order. They begin when all waits are reached, three at most, and raise done
// at their end. It never blocks.
func (d *Device) Submit(all []*Recording, waits []Point, done Point) error {
	r := d.trial.fails("vkQueueSubmit")
	if d.trial.hangs() {
		waits = append(waits, Point{d.gate, 1})
		d.hung.Store(d.trial.Patience > 0)
	}
	queue := number(all[0].lane.queue)
	for ; r == Success && len(all) > mostRecordings; all = all[mostRecordings:] { // a queue begins them in order
		r = d.submit(queue, all[:mostRecordings], waits, nil)
		waits = nil
	}
	if r == Success {
		r = d.submit(queue, all, waits, &done)
	}
	if r != Success {
		return r.err("submitting to " + d.Facts.Name)
	}
	return nil
}
