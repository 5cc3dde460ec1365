//go:build cgo && linux

package vk

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	vulkan "github.com/vulkan-go/vulkan"
)

// Timeline is a counter that the device and the host raise and wait for.
type Timeline struct {
	d         *Device
	mu        sync.Mutex // of the semaphore's end, where somebody may raise it then
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
	var pin runtime.Pinner
	defer pin.Unpin()
	v := new(uint64)
	r := t.d.f.value.call(number(t.d.handle), number(t.semaphore), address(&pin, v))
	return *v, r.err("reading a timeline")
}

// Wait blocks the calling thread until the timeline reaches a value. After limit it fails with Timeout.
func (t *Timeline) Wait(value uint64, limit time.Duration) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	info := &waitInfo{head: head{kind: isWait}, count: 1, semaphores: slice(&pin, []uint64{number(t.semaphore)}),
		values: slice(&pin, []uint64{value})}
	if r := t.d.f.wait.call(number(t.d.handle), address(&pin, info), uint64(limit)); r != Success {
		return fmt.Errorf("waiting for %s: %w", t.d.Facts.Name, r)
	}
	return nil
}

// Signal raises the timeline from the host.
func (t *Timeline) Signal(value uint64) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	info := &signalInfo{head: head{kind: isSignal}, semaphore: number(t.semaphore), value: value}
	return t.d.f.signal.call(number(t.d.handle), address(&pin, info)).err("raising a timeline")
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
	vulkan.DestroySemaphore(t.d.handle, t.semaphore, nil)
	t.semaphore = handle[vulkan.Semaphore](0)
}

// Submit queues recordings of one kind, one after the other, to begin when all waits are reached, and to raise done at
// their end. It never waits.
func (d *Device) Submit(all []*Recording, waits []Point, done Point) error {
	const everything = 0x10000 // VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
	if r := d.trial.fails("vkQueueSubmit"); r != Success {
		return r.err("submitting to " + d.Facts.Name)
	}
	if d.trial.hangs() {
		waits = append(waits, Point{d.gate, 1})
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	semaphores, values, stages := make([]uint64, len(waits)), make([]uint64, len(waits)), make([]uint32, len(waits))
	for i, w := range waits {
		semaphores[i], values[i], stages[i] = number(w.Timeline.semaphore), w.Value, everything
	}
	buffers := make([]uint64, len(all))
	for i, r := range all {
		buffers[i] = r.buffer
	}
	line := &timelineSubmit{head: head{kind: isTimelineSubmit}, waitCount: uint32(len(waits)), waits: slice(&pin, values),
		signalCount: 1, signals: slice(&pin, []uint64{done.Value})}
	info := &submitInfo{head: head{kind: isSubmit, next: address(&pin, line)},
		waitCount: uint32(len(waits)), waits: slice(&pin, semaphores), waitStages: slice(&pin, stages),
		bufferCount: uint64(len(all)), buffers: slice(&pin, buffers),
		signalCount: 1, signals: slice(&pin, []uint64{number(done.Timeline.semaphore)})}
	return d.f.submit.call(number(all[0].lane.queue), 1, address(&pin, info), 0).err("submitting to " + d.Facts.Name)
}
