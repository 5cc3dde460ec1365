// Package cu is the binding to NVIDIA's driver: devices and their facts, memory, modules, streams, graphs. libcuda.so.1
// is opened at run time, without cgo: a program that links this package starts where there is none. No toolkit is
// needed. No kernels and no models live here.
//
// Where the program is built without cgo this package is left out, since opening a library takes a libc, which static
// programs do without; the build tag cuda has it nevertheless. Open is all there is then, and says so.
package cu
