// Package probe measures what bounds the CPU device: how fast its threads read memory, and how fast they multiply
// with nothing to wait for. Kernels are reported as a share of these ceilings, taken in the same process.
package probe

//go:generate go run -C ../gen/probe . -o ../../probe

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/klauspost/cpuid/v2"

	"github.com/sluice-ai/sluice/internal/mem"
)

const (
	leastArea = 1 << 30 // bytes that all threads read in a pass, at least
	streams   = 4       // ranges that a thread reads at once: several keep more loads in flight
	piece     = 1 << 20 // bytes of a call; between calls the runtime may preempt the thread
	passes    = 5
	mostCache = 512 << 20 // a machine's last-level cache is taken to be at most this large
	thinArea  = 64 << 20  // bytes that are read however little memory is left
)

// rates measures passes that process an amount each, per second.
func rates(amount float64, pass func() time.Duration) []float64 {
	each := make([]float64, passes)
	for i := range each {
		each[i] = amount / pass().Seconds()
	}
	return each
}

// Read measures how many bytes per second so many threads read from memory, each its own range, in each of some passes
// over four times the last-level cache, or half the memory that is left if that is less: then the cache helps.
func Read(threads int) ([]float64, error) {
	each := area(mem.Available()) / int64(threads) &^ (streams*piece - 1)
	areas := make([][]byte, threads)
	for i := range areas {
		area, err := mem.Alloc(each)
		if err != nil {
			return nil, err
		}
		defer mem.Free(area) //nolint:errcheck // nothing to be done about it
		areas[i] = area
	}
	together(threads, func(i int) { touch(areas[i]) })
	pass := func() time.Duration { return together(threads, func(i int) { read(areas[i]) }) }
	return rates(float64(threads)*float64(each), pass), nil
}

// area is how many bytes all threads read in a pass if so many are available. Under a limit of memory, taking more
// would end the process.
func area(available int64) int64 {
	return max(thinArea, min(max(leastArea, 4*min(int64(cpuid.CPU.Cache.L3), mostCache)), available/2))
}

// together runs work on so many threads at once and returns how long the last one took.
func together(threads int, work func(i int)) time.Duration {
	var ready, done sync.WaitGroup
	ready.Add(threads)
	took := make([]time.Duration, threads)
	for i := range threads {
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
			began := time.Now()
			work(i)
			took[i] = time.Since(began)
		})
	}
	done.Wait()
	return slices.Max(took)
}

// passing returns a pass that runs so many threads; prepare makes each thread's work before any of them begins.
func passing(threads int, prepare func() func()) (pass func() time.Duration) {
	works := make([]func(), threads)
	for i := range works {
		works[i] = prepare()
	}
	return func() time.Duration { return together(threads, func(i int) { works[i]() }) }
}

// touch writes to every page, so that the system provides its memory.
func touch(area []byte) {
	for i := 0; i < len(area); i += 4096 {
		area[i] = 1
	}
}

// read reads an area in streams.
func read(area []byte) {
	stream := len(area) / streams
	for at := 0; at < stream; at += piece / streams {
		readStreams(&area[at], stream, piece/streams)
	}
}

// Multiply measures how many integer operations per second (a multiplication and an addition are two) so many threads
// do from registers, in each of some passes, with the instructions that a set of kernels is built on; nil where that is
// not known. Without VNNI sums are of 16 bits: what kernels do beside that, widening and scaling, is their own affair.
func Multiply(set string, threads int) []float64 {
	const rounds = 1 << 15 // 0.1 ms or so
	burst, ops := multiplier(set)
	if burst == nil {
		return nil
	}
	const bursts = 64
	return rates(float64(threads)*bursts*rounds*float64(ops), func() time.Duration {
		return together(threads, func(int) {
			for range bursts {
				burst(rounds)
			}
		})
	})
}
