package actors

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram's buckets hold durations up to 0.5 ms, 1 ms, 2 ms and so on, to about a minute; one more counts what
// took longer.
const (
	shortest = 500 * time.Microsecond
	doubles  = 18
)

// histogram counts durations by length. Any goroutine may add some.
type histogram struct {
	counts [doubles + 1]atomic.Uint64
	sum    atomic.Int64 // nanoseconds
}

func (h *histogram) add(d time.Duration) {
	d = max(d, 0)
	h.counts[min(doubles, bits.Len64(uint64(max(d-1, 0)/shortest)))].Add(1)
	h.sum.Add(int64(d))
}

// Histogram is a snapshot of a histogram. Up is cumulative, as in Prometheus.
type Histogram struct {
	Count uint64
	Sum   time.Duration
	Up    []Bucket // by ascending To; what took longer than the last To is in Count alone
}

// Bucket is how many durations were To or shorter.
type Bucket struct {
	To    time.Duration
	Count uint64
}

func (h *histogram) load() (out Histogram) {
	out.Sum = time.Duration(h.sum.Load())
	for i := range h.counts {
		out.Count += h.counts[i].Load()
		if i < doubles {
			out.Up = append(out.Up, Bucket{shortest << i, out.Count})
		}
	}
	return out
}
