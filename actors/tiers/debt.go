package tiers

import (
	"sync/atomic"
	"time"
)

// Debt is what the drive owes: since when it was asked for something, and has given nothing. A wait for weights that
// the device itself has yet to take in, or to make room for, is none. The uploader keeps it, for whoever waits.
type Debt struct {
	since atomic.Int64 // in nanoseconds since 1970; 0: nothing is owed
	reads int          // that have not ended; the uploader's
}

// Lasts is for how long the drive has owed something, and given nothing.
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

// given counts the end of one.
func (d *Debt) given() {
	d.reads--
	d.settle()
}

// settle begins anew what is still owed.
func (d *Debt) settle() {
	if d.reads == 0 {
		d.since.Store(0)
		return
	}
	d.since.Store(now().UnixNano())
}

// forget begins anew with nothing but that older reads have to end.
func (d *Debt) forget() {
	d.reads = 0
	d.since.Store(now().UnixNano())
}
