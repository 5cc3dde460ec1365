//go:build linux && (amd64 || arm64) && (cgo || cuda)

package cuda

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/sluice-ai/sluice/gpu/cuda/cu"
	"github.com/sluice-ai/sluice/gpu/driver"
)

// words is an allocator of page-locked 64-bit words of the host that the card writes, for timelines and timestamps.
// Freed words are used again.
type words struct {
	c    *cu.Device
	mu   sync.Mutex
	free map[int][][]uint64 // free ranges, by the logarithm to base 2 of their length
	all  [][]byte
	left []uint64 // words of the newest block that are not taken yet
}

const (
	wordsBlock = 8192 // words that are allocated at once
	wordsLeast = 8    // words of a line of the CPU's cache: no two ranges share a line
)

// take returns n words that are 0.
func (w *words) take(n int) ([]uint64, error) {
	class := bits.Len(uint(max(n, wordsLeast) - 1))
	w.mu.Lock()
	defer w.mu.Unlock()
	if list := w.free[class]; len(list) > 0 {
		w.free[class] = list[:len(list)-1]
		got := list[len(list)-1]
		clear(got)
		return got, nil
	}
	size := 1 << class
	if len(w.left) < size {
		memory, err := w.c.AllocateHost(8 * uint64(max(wordsBlock, size)))
		if err != nil {
			return nil, err
		}
		w.all = append(w.all, memory)
		w.left = unsafe.Slice((*uint64)(unsafe.Pointer(&memory[0])), len(memory)/8)
		clear(w.left)
	}
	got := w.left[:size:size]
	w.left = w.left[size:]
	return got, nil
}

// give frees words that take returned.
func (w *words) give(words []uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.free == nil {
		w.free = map[int][][]uint64{}
	}
	class := bits.Len(uint(len(words) - 1))
	w.free[class] = append(w.free[class], words)
}

func (w *words) close() (err error) {
	for _, memory := range w.all {
		err = errors.Join(err, w.c.FreeHost(memory))
	}
	return err
}

// timeline is a driver.Timeline: a word that streams raise and wait for.
type timeline struct {
	d     *device
	words []uint64
	word  *uint64
}

func (d *device) Timeline() (driver.Timeline, error) {
	words, err := d.words.take(1)
	if err != nil {
		return nil, err
	}
	d.live.Add(1)
	return &timeline{d, words, &words[0]}, nil
}

func (t *timeline) Value() (uint64, error) { return atomic.LoadUint64(t.word), nil }

func (t *timeline) Close() {
	t.d.live.Add(-1)
	t.d.rest.Release(func() { t.d.words.give(t.words) })
}

const (
	spins = 200                   // reads of a word before the thread sleeps
	nap   = 20 * time.Microsecond // sleep between reads
	looks = 50                    // reads between two checks whether the card is lost
)

// Wait reads the word again and again, with short sleeps: that is faster than the driver's functions for waiting.
func (t *timeline) Wait(value uint64, limit time.Duration) error {
	for range spins {
		if atomic.LoadUint64(t.word) >= value {
			return nil
		}
		runtime.Gosched()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(time.Microsecond), 0, 0, 0) // else naps last four times as long
	pause := unix.NsecToTimespec(int64(nap))
	for since, i := time.Now(), 1; atomic.LoadUint64(t.word) < value; i++ {
		if time.Since(since) >= limit {
			return fmt.Errorf("waiting for %s: %w", t.d.facts.Name, driver.ErrTimeout)
		}
		if i%looks == 0 {
			if err := t.d.fault(); err != nil {
				return err
			}
		}
		_ = unix.Nanosleep(&pause, nil) // a signal may end it early: the loop reads again
	}
	return nil
}
