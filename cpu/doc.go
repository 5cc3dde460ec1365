// Package cpu is the CPU device: it compiles bound programs and runs their segments on a pool of threads.
//
// internal/ir/live plans phases with a barrier between them, by the CPU's rules (plan.go): chains of operations on
// single rows, products with weights (cpu/kernels), attention over the paged cache. They are bound to memory (bind.go)
// and run (run.go, execution.go); their chunks go to whichever worker is free (pool.go): nothing in the arithmetic
// depends on that. Weights, cache and activations lie outside the Go heap (memory.go).
package cpu
