package exchange

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Thresholds for returning freed memory to the system. Otherwise the process keeps it until other requests fill it
// again. Checking is cheap; returning costs a garbage collection and page faults later.
const (
	soon   = time.Second     // from the end of a request's charge to the check
	again  = 5 * time.Second // least time between two returns
	litter = 32 << 20        // bytes by which the heap must have grown since the last return
)

// tidy schedules a check for memory to return.
func (in *Intake) tidy() {
	if !in.tidying.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(max(soon, time.Until(in.rests)), func() {
		if heap() >= in.tidied+litter {
			debug.FreeOSMemory()
			in.tidied, in.rests = heap(), time.Now().Add(again)
		}
		in.tidying.Store(false)
	})
}

// heap returns the bytes that the heap takes from the system, garbage and free memory included.
func heap() (bytes uint64) {
	all := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(all)
	for _, s := range all {
		bytes += s.Value.Uint64()
	}
	return bytes
}
