//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cu

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// usual is the file of the driver's library.
const usual = "libcuda.so.1"

// abi is the CUDA version whose functions are asked for: of a function that has several versions, the newest that this
// one has.
const abi = 12000

// Library is the driver's opened library. It is never closed, which the driver does not support well.
// Wide: a field is a function of the driver.
type Library struct {
	Version int // of the driver: 12040 is CUDA 12.4

	getCount, get, getName, getUUID, totalMemory, getAttribute uintptr
	retain, release, setCurrent, canReach, enableReach         uintptr

	memInfo, alloc, free, hostAlloc, hostFree, register, unregister uintptr

	load, unload, getFunction, setFunction                uintptr
	linkCreate, linkAdd, linkComplete, linkDestroy        uintptr
	streamCreate, streamDestroy, streamQuery, streamSync  uintptr
	waitValue, writeValue, copyAsync, fillAsync, launch   uintptr
	graphCreate, graphDestroy, graphKernel, graphCopy     uintptr
	graphFill, graphEmpty, instantiate, execDestroy, exec uintptr
}

// functions are the driver's functions by name, and the fields for their addresses.
func (l *Library) functions() map[string]*uintptr {
	return map[string]*uintptr{"cuDeviceGetCount": &l.getCount, "cuDeviceGet": &l.get, "cuDeviceGetName": &l.getName,
		"cuDeviceGetUuid": &l.getUUID, "cuDeviceTotalMem": &l.totalMemory, "cuDeviceGetAttribute": &l.getAttribute,
		"cuDevicePrimaryCtxRetain": &l.retain, "cuDevicePrimaryCtxRelease": &l.release, "cuCtxSetCurrent": &l.setCurrent,
		"cuDeviceCanAccessPeer": &l.canReach, "cuCtxEnablePeerAccess": &l.enableReach,
		"cuMemGetInfo": &l.memInfo, "cuMemAlloc": &l.alloc, "cuMemFree": &l.free, "cuMemHostAlloc": &l.hostAlloc,
		"cuMemFreeHost": &l.hostFree, "cuMemHostRegister": &l.register, "cuMemHostUnregister": &l.unregister,
		"cuModuleLoadData": &l.load, "cuModuleUnload": &l.unload, "cuModuleGetFunction": &l.getFunction,
		"cuFuncSetAttribute": &l.setFunction, "cuLinkCreate": &l.linkCreate, "cuLinkAddData": &l.linkAdd,
		"cuLinkComplete": &l.linkComplete, "cuLinkDestroy": &l.linkDestroy, "cuStreamCreate": &l.streamCreate,
		"cuStreamDestroy": &l.streamDestroy, "cuStreamQuery": &l.streamQuery, "cuStreamSynchronize": &l.streamSync,
		"cuStreamWaitValue64": &l.waitValue, "cuStreamWriteValue64": &l.writeValue, "cuMemcpyAsync": &l.copyAsync,
		"cuMemsetD32Async": &l.fillAsync, "cuLaunchKernel": &l.launch, "cuGraphCreate": &l.graphCreate,
		"cuGraphDestroy": &l.graphDestroy, "cuGraphAddKernelNode": &l.graphKernel, "cuGraphAddMemcpyNode": &l.graphCopy,
		"cuGraphAddMemsetNode": &l.graphFill, "cuGraphAddEmptyNode": &l.graphEmpty, "cuGraphInstantiate": &l.instantiate,
		"cuGraphExecDestroy": &l.execDestroy, "cuGraphLaunch": &l.exec}
}

// Functions lists the names of the driver's functions that are used.
func (l *Library) Functions() []string { return slices.Sorted(maps.Keys(l.functions())) }

// Open opens the driver: libcuda.so.1, or another file with its functions.
func Open(path string) (*Library, error) {
	if path == "" {
		path = usual
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("CUDA needs NVIDIA's driver, and its library cannot be opened (%w): install the driver, which has "+
			"libcuda.so.1; the CUDA toolkit is not needed", err)
	}
	find, err := purego.Dlsym(lib, "cuGetProcAddress_v2")
	if err != nil {
		return nil, fmt.Errorf("%s is older than CUDA 12: install a newer driver (%w)", path, err)
	}
	l := &Library{}
	var initialise, version uintptr
	all := l.functions()
	all["cuInit"], all["cuDriverGetVersion"] = &initialise, &version
	for name, to := range all {
		if err := lookUp(find, name, to); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	if r := call(initialise, 0); r != Success {
		return nil, fmt.Errorf("NVIDIA's driver does not start: %w", r)
	}
	v := new(int32)
	r := call(version, uintptr(unsafe.Pointer(v)))
	l.Version = int(*v)
	return l, r.err("asking for the driver's version")
}

// lookUp finds the address of a function, which may be a later version of it.
func lookUp(find uintptr, name string, to *uintptr) error {
	c, status := append([]byte(name), 0), new(int32)
	r := call(find, uintptr(unsafe.Pointer(&c[0])), uintptr(unsafe.Pointer(to)), abi, 0, uintptr(unsafe.Pointer(status)))
	if r != Success || *to == 0 {
		return fmt.Errorf("the driver has no %s (%w): install a newer one", name, max(r, notFound))
	}
	return nil
}

// call calls a function of the driver. Go memory that arguments point to does not move meanwhile.
//
//go:uintptrescapes
func call(f uintptr, args ...uintptr) Result {
	r, _, _ := purego.SyscallN(f, args...)
	return Result(int32(r))
}

// arguments are those of a call of the driver's, and the address of those of a kernel that it launches.
type arguments struct {
	list   [11]uintptr
	kernel unsafe.Pointer
}

// spare has arguments of calls that have returned.
var spare = sync.Pool{New: func() any { return new(arguments) }}

// callEach is call without an allocation, for what is called for each step: no argument is an address of Go's memory.
func callEach(f uintptr, list ...uintptr) Result {
	a := spare.Get().(*arguments)
	r := a.call(f, list...)
	spare.Put(a)
	return r
}

func (a *arguments) call(f uintptr, list ...uintptr) Result {
	r, _, _ := purego.SyscallN(f, a.list[:copy(a.list[:], list)]...)
	return Result(int32(r))
}
