// Package cu is the binding to NVIDIA's driver: devices and their facts, memory, modules, streams, graphs. libcuda.so.1
// is opened at run time, without cgo: a program that links this package starts where there is none. No toolkit is
// needed. No kernels and no models live here.
//
// Where the program is built without cgo this package is left out, since to open a library takes a libc, which static
// programs do without; the build tag cuda includes it nevertheless. Without it there is only Open, which returns an
// error that says so.
package cu
