//go:build cgo && linux

package vk

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"
)

// Import makes a buffer of the program's memory, without copying it, as a source and target of copies. It must begin
// and end at multiples of Facts.HostAlignment, be no mapping of a file, and stay where it is until the buffer is freed.
// The error says why it cannot be imported.
func (d *Device) Import(memory []byte) (*Buffer, error) {
	const hostAllocation = 0x80 // VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT
	const copies = 1 | 2        // VK_BUFFER_USAGE_TRANSFER_SRC_BIT, …_DST_BIT
	var pin runtime.Pinner
	defer pin.Unpin()
	at, size := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(memory)))), uint64(len(memory))
	grain := d.Facts.HostAlignment
	switch {
	case grain == 0 || d.f.hostPointer == 0:
		return nil, fmt.Errorf("%s imports no memory of programs", d.Facts.Name)
	case size == 0 || at%grain != 0 || size%grain != 0:
		return nil, fmt.Errorf("%d bytes at %#x: %s imports multiples of %d", size, at, d.Facts.Name, grain)
	}
	can := &hostPointer{head: head{kind: isHostPointer}}
	r := d.f.hostPointer.call(number(d.handle), hostAllocation, at, address(&pin, can))
	if r < 0 {
		return nil, r.err("asking about memory of the program")
	}
	b := &block{place: imported, arena: newArena(size), bytes: memory}
	kinds := &externalBuffer{head: head{kind: isExternalBuffer}, kinds: hostAllocation}
	from := &importHost{head: head{kind: isImportHost}, kind: hostAllocation, memory: at}
	err := b.makeBuffer(d, size, copies, address(&pin, kinds))
	if err == nil {
		wants := new(memoryRequirements)
		d.function("vkGetBufferMemoryRequirements").word(number(d.handle), number(b.buffer), address(&pin, wants))
		if kind := d.importedType(can.types & wants.types); kind < 0 {
			err = errors.New("no type of memory is for it")
		} else {
			err = b.bind(d, size, uint32(kind), address(&pin, from))
		}
	}
	if err != nil {
		b.free(d)
		return nil, fmt.Errorf("importing %d bytes to %s: %w", size, d.Facts.Name, err)
	}
	b.arena.take(size)
	d.memory.mu.Lock()
	defer d.memory.mu.Unlock()
	d.memory.blocks = append(d.memory.blocks, b)
	return d.buffer(b, 0, size), nil
}

// importedType is the first of some types of memory in which the device sees what the host writes; -1: there is none.
func (d *Device) importedType(types uint32) int {
	for i, t := range d.Facts.MemoryTypes {
		if types>>i&1 == 1 && t.Visible && t.Coherent {
			return i
		}
	}
	return -1
}
