package serve

import (
	"math"
	"runtime/debug"
)

// leastHeap is about what requests, kept answers and grammars may take together (server.Options: Limits in
// docs/serving.md). With a lower limit, the garbage collector would run in vain.
const leastHeap = 512 << 20

// limitHeap sets the limit of the Go heap, so that the garbage collector works harder before the machine, or our
// control group, runs out of memory: by default the heap may grow to twice its live data. left is what weights and
// caches, which are not on the heap, leave. A limit that GOMEMLIMIT has set stays.
func (l *loader) limitHeap(left int64) {
	if l.collector == math.MaxInt64 {
		debug.SetMemoryLimit(max(left/10*9, leastHeap))
	}
}
