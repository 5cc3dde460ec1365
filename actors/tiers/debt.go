package tiers

import (
	"sync/atomic"
	"time"
)

// Debt is the time for which reads of the drive have been under way without any of them ending. Time in which the
// device has yet to take in what was read, or to make room for more, does not count. The uploader writes it; whoever
// waits for weights reads it.
type Debt struct {
	since atomic.Int64 // when the first open read was asked for, or the last one ended, in ns since 1970; 0: none is open
	reads int          // reads that have not ended; only the uploader uses it
}

// Lasts returns for how long reads have been under way without any of them ending; 0: none is.
func (d *Debt) Lasts() time.Duration {
	since := d.since.Load()
	if since == 0 {
		return 0
	}
	return now().Sub(time.Unix(0, since))
}

// asked counts a read.
func (d *Debt) asked() {
	if d.reads++; d.reads == 1 {
		d.since.Store(now().UnixNano())
	}
}

// given counts the end of a read.
func (d *Debt) given() {
	d.reads--
	d.settle()
}

// settle starts the time anew if reads are under way, and ends it if none are.
func (d *Debt) settle() {
	if d.reads == 0 {
		d.since.Store(0)
		return
	}
	d.since.Store(now().UnixNano())
}

// forget begins a new generation, which has no reads yet; the time runs until settle, since older reads have to end
// first.
func (d *Debt) forget() {
	d.reads = 0
	d.since.Store(now().UnixNano())
}
