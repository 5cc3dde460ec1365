// Package cpu is the CPU device: it compiles bound programs and runs their segments on a pool of threads.
//
// A segment becomes phases with a barrier between them (compile.go): chains of operations on single rows, products
// with weights (cpu/kernels), attention over the paged cache. Chunks of a phase go to whichever worker is free;
// nothing in the arithmetic depends on that. Weights, cache and activations lie outside the Go heap.
package cpu
