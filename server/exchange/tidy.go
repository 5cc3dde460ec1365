package exchange

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Intervals for returning freed memory to the system: without it the memory stays with the process until other
// requests fill as much again. Checking is cheap; returning costs a garbage collection and page faults later.
const (
	soon   = time.Second     // after a request has given back what it cost
	again  = 5 * time.Second // after memory was given back
	litter = 32 << 20        // bytes more than there were then, to be worth it
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

// heap returns the bytes of system memory that the heap has, free memory and garbage included.
func heap() (bytes uint64) {
	all := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(all)
	for _, s := range all {
		bytes += s.Value.Uint64()
	}
	return bytes
}
