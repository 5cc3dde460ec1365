//go:build race

package cpu_test

// racing: the race detector looks on. It sees no assembly, so one set of kernels is enough, and each takes minutes.
const racing = true
