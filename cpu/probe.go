package cpu

import (
	"sync"
	"time"
	"unsafe"

	"github.com/sluice-ai/sluice/internal/mem"
)

// probeBytes is how much the threads read in a pass, together: more than they can find in their caches.
const probeBytes = 1 << 30

// ReadBandwidth measures how many bytes per second so many threads read from memory, each its own range in four
// streams, which reads more than one stream does. It takes about a second, and probeBytes of memory while it
// runs; where that much cannot be had it returns the error.
func ReadBandwidth(threads int) (float64, error) {
	areas := make([][]byte, threads)
	each := int64(probeBytes / threads &^ 4095)
	var wg sync.WaitGroup
	for i := range areas {
		area, err := mem.Alloc(each)
		if err != nil {
			return 0, err
		}
		defer mem.Free(area) //nolint:errcheck // nothing to be done about it
		areas[i] = area
		wg.Go(func() { touch(area) })
	}
	wg.Wait()
	best := 0.0
	for range 3 {
		began := time.Now()
		for _, area := range areas {
			wg.Go(func() { sink(sum(area)) })
		}
		wg.Wait()
		best = max(best, float64(threads)*float64(each)/time.Since(began).Seconds())
	}
	return best, nil
}

// touch gives every page its memory.
func touch(area []byte) {
	for i := 0; i < len(area); i += 4096 {
		area[i] = 1
	}
}

// sum reads an area in four streams.
func sum(area []byte) uint64 {
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&area[0])), len(area)/8)
	n := len(words) / 4
	a, b, c, d := words[:n], words[n:2*n], words[2*n:3*n], words[3*n:4*n]
	var s0, s1, s2, s3 uint64
	for i := 0; i+8 <= n; i += 8 { // a cache line of each
		x, y, z, w := a[i:i+8:i+8], b[i:i+8:i+8], c[i:i+8:i+8], d[i:i+8:i+8]
		s0 += x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7]
		s1 += y[0] + y[1] + y[2] + y[3] + y[4] + y[5] + y[6] + y[7]
		s2 += z[0] + z[1] + z[2] + z[3] + z[4] + z[5] + z[6] + z[7]
		s3 += w[0] + w[1] + w[2] + w[3] + w[4] + w[5] + w[6] + w[7]
	}
	return s0 + s1 + s2 + s3
}

// sink keeps the compiler from leaving the reading out.
//
//go:noinline
func sink(uint64) {}
