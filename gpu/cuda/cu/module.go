//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cu

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// Module is a loaded module of kernels.
type Module struct {
	d      *Device
	handle uintptr
}

// Function is a kernel of a module.
type Function struct {
	handle uintptr
	Shared int // bytes of dynamic shared memory that a block may have
}

// usualShared is the bytes of shared memory that a block has without asking.
const usualShared = 48 << 10

// Load loads a cubin, a module compiled for the card.
func (d *Device) Load(cubin []byte) (*Module, error) {
	image, handle := append(bytes.Clone(cubin), 0), new(uintptr)
	if r := d.call(d.lib.load, uintptr(unsafe.Pointer(handle)), uintptr(unsafe.Pointer(&image[0]))); r != Success {
		return nil, r.err("loading kernels")
	}
	return &Module{d, *handle}, nil
}

// Close unloads the module. None of its kernels may run, or be recorded.
func (m *Module) Close() error { return m.d.call(m.d.lib.unload, m.handle).err("unloading kernels") }

// Function finds a kernel of the module, and allows it as much dynamic shared memory as the card can give it.
func (m *Module) Function(name string) (*Function, error) {
	const maxDynamicShared = 8
	c, handle := append([]byte(name), 0), new(uintptr)
	r := m.d.call(m.d.lib.getFunction, uintptr(unsafe.Pointer(handle)), m.handle, uintptr(unsafe.Pointer(&c[0])))
	if r != Success {
		return nil, r.err("finding kernel " + name)
	}
	f := &Function{*handle, usualShared}
	for most := m.d.Facts.Shared; most > usualShared; most -= 1 << 10 { // the kernel's static shared memory counts, too
		if m.d.call(m.d.lib.setFunction, f.handle, maxDynamicShared, uintptr(most)) == Success {
			f.Shared = most
			break
		}
	}
	return f, nil
}

// Options of the driver's compiler, numbered as CUjit_option.
const (
	optionErrors     = 5
	optionErrorsSize = 6
)

// Compile compiles PTX to a cubin for the card; name stands for it in errors.
func (d *Device) Compile(name, ptx string) ([]byte, error) {
	r := d.enter()
	defer d.leave()
	if r != Success {
		return nil, r.err("compiling " + name)
	}
	const isPTX = 1
	said, kinds := make([]byte, 4096), &[2]int32{optionErrors, optionErrorsSize}
	values := &[2]unsafe.Pointer{unsafe.Pointer(&said[0]), nil}
	*(*uintptr)(unsafe.Pointer(&values[1])) = uintptr(len(said))
	link, text, label := new(uintptr), append([]byte(ptx), 0), append([]byte(name), 0)
	r = call(d.lib.linkCreate, 2, uintptr(unsafe.Pointer(kinds)), uintptr(unsafe.Pointer(values)),
		uintptr(unsafe.Pointer(link)))
	if r != Success {
		return nil, r.err("compiling " + name)
	}
	defer func() {
		_ = call(d.lib.linkDestroy, *link) // the cubin was copied
		runtime.KeepAlive(kinds)           // until here the driver may write to the memory that the options name
		runtime.KeepAlive(values)
		runtime.KeepAlive(said)
	}()
	r = call(d.lib.linkAdd, *link, isPTX, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)),
		uintptr(unsafe.Pointer(&label[0])), 0, 0, 0)
	cubin, size := new(unsafe.Pointer), new(uint64)
	if r == Success {
		r = call(d.lib.linkComplete, *link, uintptr(unsafe.Pointer(cubin)), uintptr(unsafe.Pointer(size)))
	}
	if r != Success {
		why, _, _ := bytes.Cut(said, []byte{0})
		return nil, fmt.Errorf("compiling %s for %s: %w: %s", name, d.Facts.Name, r, bytes.TrimSpace(why))
	}
	return bytes.Clone(unsafe.Slice((*byte)(*cubin), *size)), nil
}
