//go:build cgo && linux

package vk

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"

	"github.com/sluice-ai/sluice/gpu/driver"
)

// Device is an opened device with a queue for computing, and one for copies that run at the same time. Its methods may
// be called from any goroutine, but no two calls of Submit, or of methods of one Recording, at a time.
// Wide: Vulkan has so many handles, and a function is found for each call.
type Device struct {
	Facts    Facts
	physical *Physical
	handle   vulkan.Device
	compute  lane
	copies   lane // the same queue where the device has no other
	layout   vulkan.PipelineLayout
	cache    vulkan.PipelineCache
	memory   memory
	live     atomic.Int64 // buffers, kernels, recordings and timelines that were not closed
	rest     driver.Rest
	closed   closedTimelines
	inside   sync.WaitGroup // calls that, with some drivers, wait for all work: the goroutine may be left in them
	trial    *Trial
	gate     *Timeline   // for tests: submissions that hang wait for it
	hung     atomic.Bool // a test holds up a submission
	f        struct {
		createPipelines, allocateBuffers, submit, resetQueries, queryResults function
		bufferAddress, wait, value, signal                                   function
		bind, push, dispatch, indirect, barrier, copy, fill, stamp           function
		calibrate, hostPointer                                               function // 0: the driver does not have it
	}
}

// lane is a queue, and the pool of command buffers for its recordings.
type lane struct {
	family, number uint32 // of the queue
	queue          vulkan.Queue
	pool           vulkan.CommandPool
}

// PushSize is the bytes of push constants of every pipeline: the least that Vulkan guarantees. Larger arguments go to
// memory.
const PushSize = 128

// extensions are enabled on devices that have them.
var extensions = []string{"VK_EXT_memory_budget", "VK_KHR_cooperative_matrix", "VK_EXT_external_memory_host",
	"VK_KHR_calibrated_timestamps", "VK_EXT_calibrated_timestamps"}

// Open opens the device with all features that kernels may use.
func (p *Physical) Open() (*Device, error) {
	if err := p.Missing(); err != nil {
		return nil, err
	}
	family := slices.IndexFunc(p.Facts.Queues, func(q QueueFamily) bool { return q.Compute })
	if family < 0 {
		return nil, fmt.Errorf("%s has no queue that computes", p.Facts.Name)
	}
	d := &Device{Facts: p.Facts, physical: p, compute: lane{family: uint32(family)}, trial: p.library.trial}
	d.copies = d.beside()
	if err := d.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", p.Facts.Name, err), d.Close())
	}
	return d, nil
}

// Submissions are meant to take half a second at most. A device that the CPU emulates may wait long for its cores.
const (
	usualPatience = 10 * time.Second
	longPatience  = 2 * time.Minute
)

// Patience is how long the device may go without ending any of its work before it counts as hung, and how long Close
// waits for it. A test's patience counts only once a submission hangs: a busy machine may take long before that.
func (d *Device) Patience() time.Duration {
	switch {
	case d.hung.Load():
		return d.trial.Patience
	case d.Facts.Kind == CPU:
		return longPatience
	}
	return usualPatience
}

// beside finds the queue for copies: of an engine that does nothing else, or a second one that computes, or else the
// only one.
func (d *Device) beside() lane {
	for i, q := range d.Facts.Queues {
		if q.Transfer && !q.Compute && !q.Graphics {
			return lane{family: uint32(i)}
		}
	}
	if d.Facts.Queues[d.compute.family].Count > 1 {
		return lane{family: d.compute.family, number: 1}
	}
	return d.compute
}

// Apart says whether copies have a queue of their own.
func (d *Device) Apart() bool {
	return d.copies.family != d.compute.family || d.copies.number != d.compute.number
}

// open gets the lane's queue, and makes its pool.
func (l *lane) open(d *Device) error {
	queue := new(vulkan.Queue)
	vulkan.GetDeviceQueue(d.handle, l.family, l.number, queue)
	l.queue = *queue
	var pin runtime.Pinner
	defer pin.Unpin()
	const resettable = 2 // VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
	info := &commandPoolInfo{head: head{kind: isCommandPool}, flags: resettable, family: l.family}
	pool := new(vulkan.CommandPool)
	r := d.try("vkCreateCommandPool", func() vulkan.Result {
		return vulkan.CreateCommandPool(d.handle, vulkan.NewCommandPoolCreateInfoRef(pinned(&pin, info)), nil, pool)
	})
	l.pool = *pool
	return r.err("creating a command pool")
}

func (d *Device) open() error {
	if err := d.create(); err != nil {
		return err
	}
	for name, f := range map[string]*function{
		"vkCreateComputePipelines": &d.f.createPipelines, "vkAllocateCommandBuffers": &d.f.allocateBuffers,
		"vkQueueSubmit": &d.f.submit, "vkResetQueryPool": &d.f.resetQueries, "vkGetQueryPoolResults": &d.f.queryResults,
		"vkGetBufferDeviceAddress": &d.f.bufferAddress, "vkWaitSemaphores": &d.f.wait,
		"vkGetSemaphoreCounterValue": &d.f.value, "vkSignalSemaphore": &d.f.signal,
		"vkCmdBindPipeline": &d.f.bind, "vkCmdPushConstants": &d.f.push, "vkCmdDispatch": &d.f.dispatch,
		"vkCmdDispatchIndirect": &d.f.indirect, "vkCmdPipelineBarrier": &d.f.barrier, "vkCmdCopyBuffer": &d.f.copy,
		"vkCmdFillBuffer": &d.f.fill, "vkCmdWriteTimestamp": &d.f.stamp,
	} {
		if *f = d.function(name); *f == 0 {
			return fmt.Errorf("the driver lacks %s", name)
		}
	}
	if d.Facts.Has.Calibrates {
		d.f.calibrate = d.function("vkGetCalibratedTimestamps" + d.physical.calibration())
	}
	if d.Facts.HostAlignment > 0 {
		d.f.hostPointer = d.function("vkGetMemoryHostPointerPropertiesEXT")
	}
	if err := d.createLayout(); err != nil {
		return err
	}
	if err := errors.Join(d.compute.open(d), d.copies.open(d)); err != nil {
		return err
	}
	return d.openGate()
}

// try makes a call, unless a test makes it fail.
func (d *Device) try(name string, call func() vulkan.Result) Result {
	if r := d.trial.fails(name); r != Success {
		return r
	}
	return Result(call())
}

// openGate makes the timeline that submissions wait for if a test lets them hang.
func (d *Device) openGate() error {
	if d.trial == nil || d.trial.Hangs == nil {
		return nil
	}
	gate, err := d.NewTimeline()
	if err != nil {
		return err
	}
	d.gate = gate
	d.live.Add(-1) // the gate does not count: it is the test's
	d.trial.gate(func() {
		gate.mu.Lock()
		defer gate.mu.Unlock()
		if number(gate.semaphore) != 0 {
			_ = gate.Signal(1) // an error shows in the submissions that wait
		}
	})
	return nil
}

// pinned pins a structure, and returns its address as vulkan-go takes it.
func pinned[T any](pin *runtime.Pinner, p *T) unsafe.Pointer {
	pin.Pin(p)
	return unsafe.Pointer(p)
}

func (d *Device) create() error {
	var pin runtime.Pinner
	defer pin.Unpin()
	has := d.Facts.Has
	enabled := new(features)
	chain := enabled.chain(&pin, has.Matrix)
	for _, f := range flags {
		if f.has != nil && *f.has(&has) || f.has == nil && d.Facts.Subgroup.Selectable {
			*f.at(enabled) = 1
		}
	}
	known := slices.DeleteFunc(slices.Clone(extensions), func(name string) bool {
		return !d.physical.extensions[name] || strings.HasSuffix(name, "cooperative_matrix") && !has.Matrix ||
			strings.HasSuffix(name, "memory_budget") && !has.Budget ||
			strings.HasSuffix(name, "calibrated_timestamps") && !has.Calibrates ||
			strings.HasSuffix(name, "memory_host") && d.Facts.HostAlignment == 0
	})
	queues := []queueInfo{{head: head{kind: isQueue}, family: d.compute.family, count: 1}}
	if d.copies.family != d.compute.family {
		queues = append(queues, queueInfo{head: head{kind: isQueue}, family: d.copies.family, count: 1})
	}
	queues[0].count += uint64(d.copies.number)
	for i := range queues {
		queues[i].priorities = slice(&pin, []float32{1, 1})
	}
	info := &deviceInfo{head: head{kind: isDevice, next: chain}, queueCount: uint32(len(queues)),
		queues: slice(&pin, queues), extensionCount: uint64(len(known)), extensions: texts(&pin, known)}
	device := new(vulkan.Device)
	r := d.try("vkCreateDevice", func() vulkan.Result {
		return vulkan.CreateDevice(d.physical.handle, vulkan.NewDeviceCreateInfoRef(pinned(&pin, info)), nil, device)
	})
	d.handle = *device
	if r == Success {
		d.physical.library.devices.Add(1)
	}
	return r.err("creating a device")
}

func (d *Device) function(name string) function {
	var pin runtime.Pinner
	defer pin.Unpin()
	get := d.physical.library.function("vkGetDeviceProcAddr")
	return function(get.word(number(d.handle), text(&pin, name)))
}

// createLayout makes the one layout of all pipelines: push constants, which hold addresses of buffers, and no sets.
func (d *Device) createLayout() error {
	var pin runtime.Pinner
	defer pin.Unpin()
	ranges := &pushRange{stages: computeStage, size: PushSize}
	info := &layoutInfo{head: head{kind: isLayout}, rangeCount: 1, ranges: address(&pin, ranges)}
	layout := new(vulkan.PipelineLayout)
	r := d.try("vkCreatePipelineLayout", func() vulkan.Result {
		return vulkan.CreatePipelineLayout(d.handle, vulkan.NewPipelineLayoutCreateInfoRef(pinned(&pin, info)), nil, layout)
	})
	d.layout = *layout
	return r.err("creating a pipeline layout")
}

// Idle waits until the queue has done all that was submitted to compute.
func (d *Device) Idle() error {
	return Result(vulkan.QueueWaitIdle(d.compute.queue)).err("waiting for the queue")
}

// destroy destroys a device that has come to rest, and reports objects that were not closed.
func (d *Device) destroy() error {
	var err error
	if n := d.live.Load(); n != 0 {
		err = fmt.Errorf("%d objects of %s are still open", n, d.Facts.Name)
	}
	err = errors.Join(err, d.memory.close(d))
	if d.gate != nil {
		d.gate.destroy()
	}
	d.closed.destroy(d)
	if number(d.cache) != 0 {
		vulkan.DestroyPipelineCache(d.handle, d.cache, nil)
	}
	for _, pool := range []vulkan.CommandPool{d.compute.pool, d.copies.pool} {
		if number(pool) != 0 {
			vulkan.DestroyCommandPool(d.handle, pool, nil)
		}
	}
	if number(d.layout) != 0 {
		vulkan.DestroyPipelineLayout(d.handle, d.layout, nil)
	}
	vulkan.DestroyDevice(d.handle, nil)
	d.handle = handle[vulkan.Device](0)
	d.physical.library.devices.Add(-1)
	return err
}
