//go:build cgo && linux

package vk

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// Recording is a command buffer. Commands are collected in Go, and End records them in one call of cgo. It may then be
// submitted any number of times, also while it runs.
type Recording struct {
	d      *Device
	lane   *lane
	buffer uint64
	stamps vulkan.QueryPool
	marks  int
	ops    []operation
	fixes  []fix
	data   []byte // push constants and structures, one after the other
	bound  *Kernel
	pin    runtime.Pinner // of Ticks: one for each call would be allocated where a processor has none to spare
}

// fix names an argument that is an offset into data. End, when data does not move any more, makes it an address.
type fix struct{ op, arg int }

// Record begins a recording that computes, with room for a number of timestamps.
func (d *Device) Record(stamps int) (*Recording, error) { return d.record(&d.compute, stamps) }

// RecordCopies begins a recording of nothing but copies and timestamps, which runs at the same time as those that
// compute, if the device can.
func (d *Device) RecordCopies(stamps int) (*Recording, error) { return d.record(&d.copies, stamps) }

func (d *Device) record(l *lane, stamps int) (*Recording, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	r := &Recording{d: d, lane: l}
	info := &commandBuffersInfo{head: head{kind: isCommandBuffers}, pool: number(l.pool), count: 1}
	buffer := new(uint64)
	made := d.try("vkAllocateCommandBuffers", func() vulkan.Result {
		return vulkan.Result(d.f.allocateBuffers.call(number(d.handle), address(&pin, info), address(&pin, buffer)))
	})
	if made < 0 {
		return nil, made.err("allocating a command buffer")
	}
	r.buffer = *buffer
	d.live.Add(1)
	if stamps > 0 {
		const timestamps = 2 // VK_QUERY_TYPE_TIMESTAMP
		info := &queryPoolInfo{head: head{kind: isQueryPool}, kind: timestamps, count: uint32(stamps)}
		pool := new(vulkan.QueryPool)
		made := d.try("vkCreateQueryPool", func() vulkan.Result {
			return vulkan.CreateQueryPool(d.handle, vulkan.NewQueryPoolCreateInfoRef(pinned(&pin, info)), nil, pool)
		})
		r.stamps = *pool
		if made < 0 {
			r.Close()
			return nil, made.err("creating a query pool")
		}
		d.f.resetQueries.word(number(d.handle), number(r.stamps), 0, uint64(stamps))
	}
	return r, nil
}

func (r *Recording) add(f function, args ...uint64) {
	op := operation{f: f}
	op.args[0] = r.buffer
	copy(op.args[1:], args)
	r.ops = append(r.ops, op)
}

// keep stores bytes for the last command, whose argument arg is to point to them.
func (r *Recording) keep(arg int, bytes []byte) {
	r.ops[len(r.ops)-1].args[arg] = uint64(len(r.data))
	r.fixes = append(r.fixes, fix{len(r.ops) - 1, arg})
	r.data = append(r.data, bytes...)
	for len(r.data)%8 != 0 {
		r.data = append(r.data, 0)
	}
}

// raw is the bytes of a value that has no pointers.
func raw[T any](p *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(p)), unsafe.Sizeof(*p)) }

// Use binds a kernel, and sets its push constants.
func Use[P any](r *Recording, k *Kernel, push *P) { r.use(k, raw(push)) }

// use is Use for all structures: each of its own would be a copy of this code.
func (r *Recording) use(k *Kernel, push []byte) {
	const compute = 1 // VK_PIPELINE_BIND_POINT_COMPUTE
	if r.bound != k {
		r.add(r.d.f.bind, compute, number(k.pipeline))
		r.bound = k
	}
	r.add(r.d.f.push, number(r.d.layout), computeStage, 0, uint64(len(push)), 0)
	r.keep(5, push)
}

// Bound is the name of the kernel bound last.
func (r *Recording) Bound() string {
	if r.bound == nil {
		return ""
	}
	return r.bound.Name
}

// Dispatch runs the bound kernel with x × y × z workgroups.
func (r *Recording) Dispatch(x, y, z uint32) { r.add(r.d.f.dispatch, uint64(x), uint64(y), uint64(z)) }

// DispatchFrom runs the bound kernel with a number of workgroups that is read, when it runs, from three uint32 at an
// offset of a buffer.
func (r *Recording) DispatchFrom(b *Buffer, offset uint64) {
	r.add(r.d.f.indirect, number(b.block.buffer), b.at+offset)
}

// Barrier makes later dispatches wait for earlier ones and see what they wrote. It names the stage of shaders alone:
// each further stage makes drivers flush more caches.
func (r *Recording) Barrier() {
	const shaders, write, read = 0x800, 0x40, 0x20
	r.barrier(shaders, shaders, write, read|write)
}

// BarrierAll is Barrier that also covers copies and the sizes of indirect dispatches.
func (r *Recording) BarrierAll() {
	const stages = 0x800 | 0x1000 | 0x2 // compute, transfer, indirect commands
	const writes = 0x40 | 0x1000        // by shaders, by transfers
	r.barrier(stages, stages, writes, writes|0x20|0x800|0x1)
}

// BarrierToHost makes what was written visible to the host once the recording is done.
func (r *Recording) BarrierToHost() {
	const stages, host, writes, read = 0x800 | 0x1000, 0x4000, 0x40 | 0x1000, 0x2000
	r.barrier(stages, host, writes, read)
}

// barrier makes the stages after wait for the stages before. accesses of the former see writes of the latter.
func (r *Recording) barrier(before, after uint64, writes, accesses uint32) {
	r.add(r.d.f.barrier, before, after, 0, 1, 0, 0, 0, 0, 0)
	r.keep(5, raw(&memoryBarrier{head: head{kind: isBarrier}, from: writes, to: accesses}))
}

// Copy copies n bytes between buffers.
func (r *Recording) Copy(to *Buffer, at uint64, from *Buffer, offset, n uint64) {
	r.add(r.d.f.copy, number(from.block.buffer), number(to.block.buffer), 1, 0)
	r.keep(4, raw(&bufferCopy{from.at + offset, to.at + at, n}))
}

// Fill sets a buffer, whose size is a multiple of four, to one word.
func (r *Recording) Fill(to *Buffer, word uint32) {
	r.add(r.d.f.fill, number(to.block.buffer), to.at, to.Size, uint64(word))
}

// Stamp takes a timestamp when all commands before it are done, and returns its number.
func (r *Recording) Stamp() int {
	const bottom = 0x2000 // VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT
	r.add(r.d.f.stamp, bottom, number(r.stamps), uint64(r.marks))
	r.marks++
	return r.marks - 1
}

// End records all commands.
func (r *Recording) End() error {
	var pin runtime.Pinner
	defer pin.Unpin()
	begin := &beginInfo{head: head{kind: isBegin}, flags: 4} // VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
	buffer := handle[vulkan.CommandBuffer](r.buffer)
	begun := r.d.try("vkBeginCommandBuffer", func() vulkan.Result {
		return vulkan.BeginCommandBuffer(buffer, vulkan.NewCommandBufferBeginInfoRef(pinned(&pin, begin)))
	})
	if begun < 0 {
		return begun.err("beginning a recording")
	}
	base := slice(&pin, r.data)
	for _, f := range r.fixes {
		r.ops[f.op].args[f.arg] += base
	}
	batch(r.ops)
	r.ops, r.fixes, r.data = nil, nil, nil
	return r.d.try("vkEndCommandBuffer", func() vulkan.Result { return vulkan.EndCommandBuffer(buffer) }).
		err("ending a recording")
}

// ResetStamps clears the timestamps for another run. The recording must not be running.
func (r *Recording) ResetStamps() {
	r.d.f.resetQueries.word(number(r.d.handle), number(r.stamps), 0, uint64(r.marks))
}

// Ticks appends the timestamps of a recording that is done, in ticks of the device's clock.
func (r *Recording) Ticks(to []uint64) ([]uint64, error) {
	const wide = 1 // VK_QUERY_RESULT_64_BIT
	if r.marks == 0 {
		return to, errors.New("no timestamps were recorded")
	}
	r.d.inside.Add(1)
	defer r.d.inside.Done()
	defer r.pin.Unpin()
	at := len(to)
	to = slices.Grow(to, r.marks)[:at+r.marks]
	result := r.d.f.queryResults.call(number(r.d.handle), number(r.stamps), 0, uint64(r.marks), uint64(8*r.marks),
		slice(&r.pin, to[at:]), 8, wide)
	if result != Success {
		return to[:at], fmt.Errorf("reading %d timestamps: %w", r.marks, result)
	}
	return to, nil
}

// Marks is the number of the recording's timestamps.
func (r *Recording) Marks() int { return r.marks }

// Stamps reads the timestamps of a recording that is done, in nanoseconds since its first one.
func (r *Recording) Stamps() ([]float64, error) {
	ticks, err := r.Ticks(nil)
	if err != nil {
		return nil, err
	}
	ns := make([]float64, r.marks)
	for i, t := range ticks {
		ns[i] = float64(t-ticks[0]) * r.d.Facts.Tick
	}
	return ns, nil
}

// Close frees the recording. It must not be running.
func (r *Recording) Close() {
	if r.buffer == 0 {
		return
	}
	buffer := handle[vulkan.CommandBuffer](r.buffer)
	r.buffer = 0
	r.d.live.Add(-1)
	r.d.release(func() {
		if number(r.stamps) != 0 {
			vulkan.DestroyQueryPool(r.d.handle, r.stamps, nil)
		}
		vulkan.FreeCommandBuffers(r.d.handle, r.lane.pool, 1, []vulkan.CommandBuffer{buffer})
	})
}
