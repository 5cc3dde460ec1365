//go:build cgo && linux

package vk

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	vulkan "github.com/vulkan-go/vulkan"
)

// Place is a kind of memory: where a buffer lies, and whether the host reaches it.
type Place uint8

// Places. Stepwise and Staging are mapped: the host reads and writes them by Buffer.Bytes.
const (
	Local    Place = iota // the device's own memory
	Stepwise              // written by the host, read by kernels: the device's own memory if the host reaches it
	Staging               // the host's memory, cached: the source and target of copies, and what the host reads back
	imported              // the program's own memory, see Import
)

func (p Place) String() string {
	return [...]string{"device memory", "shared memory", "host memory", "the program's memory"}[p]
}

// Buffer is a range of memory that kernels reach by its address. It begins at a multiple of 256 bytes.
type Buffer struct {
	Address uint64
	Size    uint64
	Bytes   []byte // of mapped places, else nil
	block   *block
	at      uint64
}

// block is one allocation of the driver, divided among buffers, with one Vulkan buffer over all of it.
type block struct {
	place   Place
	memory  vulkan.DeviceMemory
	buffer  vulkan.Buffer
	address uint64
	bytes   []byte
	arena   arena
}

// memory is all blocks of a device.
type memory struct {
	mu     sync.Mutex
	blocks []*block
}

// blockSize is the size of a block: blocks are large since drivers allow few allocations, and large ones are faster to
// reach. A buffer that is larger has a block of its own.
func (d *Device) blockSize(p Place, size uint64) uint64 {
	n := uint64(1 << 30)
	switch {
	case d.trial != nil && d.trial.Apart:
		n = grain
	case p != Local:
		n = 16 << 20
	}
	if heap := d.Facts.Heaps[d.Facts.MemoryTypes[d.memoryType(p)].Heap]; n > heap.Size/64 {
		n = heap.Size / 64
	}
	return max(round(min(n, d.Facts.MaxAllocation), grain), round(size, grain))
}

// memoryType is the best type of memory for a place; -1: there is none.
func (d *Device) memoryType(p Place) int {
	best, most := -1, 0
	for i, t := range d.Facts.MemoryTypes {
		if s := p.likes(t); s > most && d.Facts.Heaps[t.Heap].Size >= 64<<20 {
			best, most = i, s
		}
	}
	return best
}

// likes is how good a type of memory is for a place; 0: it cannot be used.
func (p Place) likes(t MemoryType) int {
	switch {
	case p == Local && t.Local:
		return 4 - truth(t.Visible)
	case p == Stepwise && t.Visible && t.Coherent:
		return 1 + 2*truth(t.Local) - truth(t.Cache)
	case p == Staging && t.Visible && t.Coherent:
		return 2 + 2*truth(t.Cache) - truth(t.Local)
	case p == Local:
		return 1
	}
	return 0
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Allocate makes a buffer of size bytes. Its contents are not defined.
func (d *Device) Allocate(p Place, size uint64) (*Buffer, error) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	for _, b := range d.memory.blocks {
		if b.place != p {
			continue
		}
		if at, ok := b.arena.take(size); ok {
			return d.buffer(b, at, size), nil
		}
	}
	b, err := d.blockFor(p, size)
	if err != nil {
		return nil, err
	}
	d.memory.blocks = append(d.memory.blocks, b)
	at, _ := b.arena.take(size)
	return d.buffer(b, at, size), nil
}

func (d *Device) buffer(b *block, at, size uint64) *Buffer {
	d.live.Add(1)
	buffer := &Buffer{Address: b.address + at, Size: size, block: b, at: at}
	if b.bytes != nil {
		buffer.Bytes = b.bytes[at : at+size : at+size]
	}
	return buffer
}

// Free frees buffers that no work under way uses. Nil buffers are skipped.
func (d *Device) Free(buffers ...*Buffer) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	for _, b := range buffers {
		if b == nil || b.block == nil {
			continue
		}
		d.live.Add(-1)
		of, at, size := b.block, b.at, b.Size
		b.block, b.Bytes = nil, nil
		d.release(func() { d.memory.give(d, of, at, size) })
	}
}

// give frees a part of a block, and the block when all of it is free.
func (m *memory) give(d *Device, of *block, at, size uint64) {
	of.arena.give(at, size)
	if of.arena.empty() {
		m.blocks = slices.DeleteFunc(m.blocks, func(x *block) bool { return x == of })
		of.free(d)
	}
}

// Allocated is how many bytes of a place the driver has allocated.
func (d *Device) Allocated(p Place) (n uint64) {
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	for _, b := range d.memory.blocks {
		if b.place == p {
			n += b.arena.size
		}
	}
	return n
}

// blockFor makes a block for a buffer. If there is too little memory for a block of the usual size, it is as large as
// the buffer. If the memory of the device that the host reaches is full, a Stepwise block lies in the host's memory.
func (d *Device) blockFor(p Place, size uint64) (*block, error) {
	kind := d.memoryType(p)
	if kind < 0 {
		return nil, fmt.Errorf("%s has no memory that can be %s", d.Facts.Name, p)
	}
	b, err := d.newBlock(p, kind, d.blockSize(p, size))
	if least := round(max(size, 1), grain); Scarce(err) && least < d.blockSize(p, size) {
		b, err = d.newBlock(p, kind, least)
	}
	if other := d.memoryType(Staging); Scarce(err) && p == Stepwise && other >= 0 && other != kind {
		b, err = d.newBlock(p, other, d.blockSize(p, size))
	}
	if err != nil {
		return nil, fmt.Errorf("%s of %s on %s: %w%s", mib(size), p, d.Facts.Name, err, d.free(kind))
	}
	return b, nil
}

// free says, for people, how much of a type's memory is free, as the driver says now.
func (d *Device) free(kind int) string {
	heap := d.physical.Budgets()[d.Facts.MemoryTypes[kind].Heap]
	if !d.Facts.Has.Budget {
		return fmt.Sprintf(": it has %s there, and does not say how much of it is free", mib(heap.Size))
	}
	return fmt.Sprintf(": of %s there this program has %s, and %s more are free for it", mib(heap.Size), mib(heap.Used),
		mib(heap.Budget-min(heap.Used, heap.Budget)))
}

// mib is a size for people.
func mib(bytes uint64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

func (d *Device) newBlock(p Place, kind int, size uint64) (*block, error) {
	b := &block{place: p, arena: newArena(size)}
	if err := b.create(d, uint32(kind), size); err != nil {
		b.free(d)
		return nil, err
	}
	return b, nil
}

func (b *block) create(d *Device, kind uint32, size uint64) error {
	const transfer, storage, indirect, addressed = 0x3, 0x20, 0x100, 0x20000 // VkBufferUsageFlagBits
	const deviceAddress = 2                                                  // VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT
	var pin runtime.Pinner
	defer pin.Unpin()
	if err := b.makeBuffer(d, size, transfer|storage|indirect|addressed, 0); err != nil {
		return err
	}
	flags := &allocateFlags{head: head{kind: isAllocateFlags}, flags: deviceAddress}
	if err := b.bind(d, size, kind, address(&pin, flags)); err != nil {
		return err
	}
	b.address = d.f.bufferAddress.word(number(d.handle),
		address(&pin, &addressInfo{head: head{kind: isAddress}, buffer: number(b.buffer)}))
	if b.place == Local {
		return nil
	}
	var data unsafe.Pointer
	r := d.try("vkMapMemory", func() vulkan.Result {
		return vulkan.MapMemory(d.handle, b.memory, 0, vulkan.DeviceSize(size), 0, &data)
	})
	if r < 0 {
		return r.err("mapping")
	}
	b.bytes = unsafe.Slice((*byte)(data), size)
	return nil
}

// makeBuffer makes the Vulkan buffer over all of a block; next is the address of a structure that extends its
// description.
func (b *block) makeBuffer(d *Device, size uint64, usage uint32, next uint64) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	info := &bufferInfo{head: head{kind: isBuffer, next: next}, size: size, usage: usage}
	if d.copies.family != d.compute.family {
		const concurrent = 1 // VK_SHARING_MODE_CONCURRENT
		info.sharing, info.familyCount = concurrent, 2
		info.families = slice(&pin, []uint32{d.compute.family, d.copies.family})
	}
	buffer := new(vulkan.Buffer)
	r := d.try("vkCreateBuffer", func() vulkan.Result {
		return vulkan.CreateBuffer(d.handle, vulkan.NewBufferCreateInfoRef(pinned(&pin, info)), nil, buffer)
	})
	b.buffer = *buffer
	return r.err("creating a buffer")
}

// bind allocates a block's memory, of a type; next is the address of a structure that extends the request.
func (b *block) bind(d *Device, size uint64, kind uint32, next uint64) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	allocate := &allocateInfo{head: head{kind: isAllocate, next: next}, size: size, memoryType: kind}
	memory := new(vulkan.DeviceMemory)
	r := d.try("vkAllocateMemory", func() vulkan.Result {
		return vulkan.AllocateMemory(d.handle, vulkan.NewMemoryAllocateInfoRef(pinned(&pin, allocate)), nil, memory)
	})
	b.memory = *memory
	if r < 0 {
		return r.err("allocating")
	}
	r = d.try("vkBindBufferMemory", func() vulkan.Result { return vulkan.BindBufferMemory(d.handle, b.buffer, b.memory, 0) })
	return r.err("binding memory")
}

func (b *block) free(d *Device) {
	if number(b.buffer) != 0 {
		vulkan.DestroyBuffer(d.handle, b.buffer, nil)
	}
	if number(b.memory) != 0 {
		vulkan.FreeMemory(d.handle, b.memory, nil)
	}
}

// close frees all blocks, and reports those that were still in use.
func (m *memory) close(d *Device) error {
	for _, b := range m.blocks {
		b.free(d)
	}
	n := len(m.blocks)
	m.blocks = nil
	if n > 0 {
		return fmt.Errorf("%d blocks of memory were still in use", n)
	}
	return nil
}
