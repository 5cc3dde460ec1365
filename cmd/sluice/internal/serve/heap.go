package serve

import (
	"math"
	"runtime/debug"
)

// leastHeap is about what requests, answers that are kept and forms may take together (server.Options: Limits in
// docs/serving.md). With less, the collector would look for garbage where there is none.
const leastHeap = 512 << 20

// limitHeap has the collector work harder before the machine, or the control group that we are in, has no memory left:
// by itself it lets garbage grow to as much as there is of the rest. Weights and caches lie outside of the heap, so it
// is told what they leave. Where GOMEMLIMIT is set, it has been told.
func (l *loader) limitHeap(left int64) {
	if l.collector == math.MaxInt64 {
		debug.SetMemoryLimit(max(left/10*9, leastHeap))
	}
}
