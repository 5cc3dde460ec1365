package probe

import "unsafe"

// readWords is readStreams in plain Go.
func readWords(p *byte, stride, n int) {
	words := func(i int) []uint64 {
		return unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(p), i*stride)), n/8)
	}
	a, b, c, d := words(0), words(1), words(2), words(3)
	var s0, s1, s2, s3 uint64
	for i := 0; i+8 <= len(a); i += 8 { // a cache line of each
		x, y, z, w := a[i:i+8:i+8], b[i:i+8:i+8], c[i:i+8:i+8], d[i:i+8:i+8]
		s0 += x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7]
		s1 += y[0] + y[1] + y[2] + y[3] + y[4] + y[5] + y[6] + y[7]
		s2 += z[0] + z[1] + z[2] + z[3] + z[4] + z[5] + z[6] + z[7]
		s3 += w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7]
	}
	sink(s0 + s1 + s2 + s3)
}

// sink keeps the compiler from leaving the reading out.
//
//go:noinline
func sink(uint64) {}
