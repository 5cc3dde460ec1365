//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cu

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// Attributes of devices, numbered as CUdevice_attribute.
const (
	attributeProcessors   = 16
	attributeMajor        = 75
	attributeMinor        = 76
	attributeShared       = 97 // of a block that asks for it
	attributeRegister     = 99
	attributeReadOnly     = 113
	attributeWords        = 122 // streams can wait for words of 64 bits
	attributeHostPointers = 91  // registered memory has the same address on card and host
)

// Facts are the properties of a card, as the driver reports them.
type Facts struct {
	Name         string
	UUID         [16]byte
	Major, Minor int // of the compute capability
	Processors   int // multiprocessors
	Memory       uint64
	Shared       int  // the most bytes of shared memory of a block
	Registers    bool // memory of the program can be registered
	ReadOnly     bool // memory that the program may only read, too
	Words        bool // streams can wait for words in memory, and write them
}

// Physical is a card that can be opened.
type Physical struct {
	Facts  Facts
	Number int
	lib    *Library
	handle uintptr
}

// Devices lists all cards, in the driver's order.
func (l *Library) Devices() ([]*Physical, error) {
	n := new(int32)
	if r := call(l.getCount, uintptr(unsafe.Pointer(n))); r != Success && r != noDevice {
		return nil, r.err("counting cards")
	}
	var all []*Physical
	for i := range int(*n) {
		p := &Physical{Number: i, lib: l}
		if err := p.ask(); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// ask fills in the facts.
func (p *Physical) ask() error {
	l, handle := p.lib, new(int32)
	if r := call(l.get, uintptr(unsafe.Pointer(handle)), uintptr(p.Number)); r != Success {
		return r.err("finding a card")
	}
	p.handle = uintptr(*handle)
	f, name := &p.Facts, make([]byte, 256)
	if r := call(l.getName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)), p.handle); r != Success {
		return r.err("asking for a card's name")
	}
	text, _, _ := bytes.Cut(name, []byte{0})
	f.Name = string(text)
	size, id := new(uint64), new([16]byte)
	if r := call(l.totalMemory, uintptr(unsafe.Pointer(size)), p.handle); r != Success {
		return r.err("asking for a card's memory")
	}
	if r := call(l.getUUID, uintptr(unsafe.Pointer(id)), p.handle); r != Success {
		return r.err("asking for a card's UUID")
	}
	f.Memory, f.UUID = *size, *id
	f.Major, f.Minor = p.attribute(attributeMajor), p.attribute(attributeMinor)
	f.Processors, f.Shared = p.attribute(attributeProcessors), p.attribute(attributeShared)
	f.Registers = p.attribute(attributeRegister) != 0 && p.attribute(attributeHostPointers) != 0
	f.ReadOnly, f.Words = p.attribute(attributeReadOnly) != 0, p.attribute(attributeWords) != 0
	return nil
}

// attribute is an attribute of the card; 0: the driver does not know it.
func (p *Physical) attribute(number int) int {
	v := new(int32)
	if call(p.lib.getAttribute, uintptr(unsafe.Pointer(v)), uintptr(number), p.handle) != Success {
		return 0
	}
	return int(*v)
}

// Missing says what the card lacks to run kernels; nil if nothing.
func (p *Physical) Missing() error {
	if p.Facts.Major < 8 {
		return fmt.Errorf("%s cannot be used: it has compute capability %d.%d, and 8.0 (Ampere) is needed: use --device vulkan",
			p.Facts.Name, p.Facts.Major, p.Facts.Minor)
	}
	return nil
}

// Device is an opened card. Its methods may be called from any goroutine.
type Device struct {
	Facts    Facts
	Version  int // of the driver
	lib      *Library
	physical *Physical
	context  uintptr
}

// Open opens the card, by its primary context, of which a process has one.
func (p *Physical) Open() (*Device, error) {
	if err := p.Missing(); err != nil {
		return nil, err
	}
	context := new(uintptr)
	if r := call(p.lib.retain, uintptr(unsafe.Pointer(context)), p.handle); r != Success {
		return nil, r.err("opening " + p.Facts.Name)
	}
	return &Device{Facts: p.Facts, Version: p.lib.Version, lib: p.lib, physical: p, context: *context}, nil
}

// Close closes the card. What was made on it is freed, unless another part of the program has it open, too.
func (d *Device) Close() error {
	return call(d.lib.release, d.physical.handle).err("closing " + d.Facts.Name)
}

// enter makes the card's context current on this goroutine's thread, and keeps the goroutine on it until leave: a
// context is a property of a thread.
func (d *Device) enter() Result {
	runtime.LockOSThread()
	return callEach(d.lib.setCurrent, d.context)
}

func (d *Device) leave() { runtime.UnlockOSThread() }

// call is the function call, with the card's context current.
//
//go:uintptrescapes
func (d *Device) call(f uintptr, args ...uintptr) Result {
	r := d.enter()
	defer d.leave()
	if r != Success {
		return r
	}
	return call(f, args...)
}

// Memory is how many bytes of the card's memory are free, and how many it has.
func (d *Device) Memory() (free, total uint64, err error) {
	both := new([2]uint64)
	r := d.call(d.lib.memInfo, uintptr(unsafe.Pointer(&both[0])), uintptr(unsafe.Pointer(&both[1])))
	return both[0], both[1], r.err("asking for free memory")
}

// Allocate allocates memory of the card, at a multiple of 256. It returns the address.
func (d *Device) Allocate(size uint64) (uint64, error) {
	p := new(uint64)
	r := d.call(d.lib.alloc, uintptr(unsafe.Pointer(p)), uintptr(size))
	return *p, r.err("taking memory of " + d.Facts.Name)
}

// Free frees memory of the card.
func (d *Device) Free(address uint64) error {
	return d.call(d.lib.free, uintptr(address)).err("giving back memory")
}

// Reach makes the memory of another card usable for this one's kernels, at its addresses.
func (d *Device) Reach(other *Device) error {
	if d.context == other.context {
		return nil
	}
	can := new(int32)
	r := call(d.lib.canReach, uintptr(unsafe.Pointer(can)), d.physical.handle, other.physical.handle)
	if r == Success && *can == 0 {
		return fmt.Errorf("card %d does not reach the memory of card %d: neither NVLink nor a PCIe switch joins them, or the "+
			"system keeps them apart", d.physical.Number, other.physical.Number)
	}
	if r == Success {
		r = d.call(d.lib.enableReach, other.context, 0)
	}
	if r == reached {
		r = Success
	}
	return r.err("reaching the memory of another card")
}

// AllocateHost allocates page-locked memory of the host, which has the same address on the card.
func (d *Device) AllocateHost(size uint64) ([]byte, error) {
	const portable, mapped = 1, 2
	p := new(unsafe.Pointer)
	r := d.call(d.lib.hostAlloc, uintptr(unsafe.Pointer(p)), uintptr(size), portable|mapped)
	if r != Success {
		return nil, r.err("taking page-locked memory")
	}
	return unsafe.Slice((*byte)(*p), size), nil
}

// FreeHost frees page-locked memory of the host.
func (d *Device) FreeHost(memory []byte) error {
	return d.call(d.lib.hostFree, uintptr(unsafe.Pointer(&memory[0]))).err("giving back page-locked memory")
}

// Register page-locks memory of the program, which then has the same address on the card.
func (d *Device) Register(memory []byte) error {
	const portable, mapped, readOnly = 1, 2, 8
	if !d.Facts.Registers {
		return notPermitted.err("registering memory with " + d.Facts.Name)
	}
	at := uintptr(unsafe.Pointer(&memory[0]))
	r := d.call(d.lib.register, at, uintptr(len(memory)), portable|mapped)
	if r != Success && d.Facts.ReadOnly {
		r = d.call(d.lib.register, at, uintptr(len(memory)), portable|mapped|readOnly)
	}
	return r.err("registering memory with " + d.Facts.Name)
}

// Unregister undoes Register.
func (d *Device) Unregister(memory []byte) error {
	return d.call(d.lib.unregister, uintptr(unsafe.Pointer(&memory[0]))).err("unregistering memory")
}

// AddressOf is the address of memory of the host.
func AddressOf(memory []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&memory[0]))) }
