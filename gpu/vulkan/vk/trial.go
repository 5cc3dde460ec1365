package vk

import (
	"sync"
	"time"
)

// Trial is what a test has the devices of a library suffer. A program has none: nil is one without faults. Its
// functions are called by any goroutine.
type Trial struct {
	Facts    func(*Facts)             // changes what a device says of itself
	Fails    func(call string) Result // what a call of Vulkan answers that is not made; Success: it is made
	Hangs    func() bool              // whether what is submitted now waits for Release: it holds up all behind it
	Apart    bool                     // whether each buffer has an allocation of its own
	Patience time.Duration            // the device's, once something hangs; 0: as ever

	mu       sync.Mutex
	released bool
	gates    []func() // each lets a device go on that hangs
}

// Release lets everything go on that hangs, and all that would hang from now on.
func (t *Trial) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released = true
	for _, open := range t.gates {
		open()
	}
}

// gate adds one that Release opens, at once if it has been called.
func (t *Trial) gate(open func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gates = append(t.gates, open); t.released {
		open()
	}
}

// fails is what a call answers that is not made.
func (t *Trial) fails(call string) Result {
	if t == nil || t.Fails == nil {
		return Success
	}
	return t.Fails(call)
}

// hangs says whether what is submitted now is to wait.
func (t *Trial) hangs() bool { return t != nil && t.Hangs != nil && t.Hangs() }
