package exchange

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// What requests leave behind is given back to the system soon: else it stays with us until others have filled as much
// again. Looking is cheap; giving back costs a collection, and the pages that are taken again.
const (
	soon   = time.Second     // after a request has given back what it cost
	again  = 5 * time.Second // after memory was given back
	litter = 32 << 20        // bytes more than there were then, to be worth it
)

// tidy has somebody look soon.
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

// heap is how many bytes the heap has of the system's memory, those that are free or garbage included.
func heap() (bytes uint64) {
	all := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(all)
	for _, s := range all {
		bytes += s.Value.Uint64()
	}
	return bytes
}
