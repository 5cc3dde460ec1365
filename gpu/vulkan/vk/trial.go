package vk

import (
	"sync"
	"time"
)

// Trial is the faults that a test causes in the devices of a library; nil: none. Its functions are called from any
// goroutine.
type Trial struct {
	Facts    func(*Facts)             // changes the facts of a device
	Fails    func(call string) Result // the result of a call that is not made; Success: it is made
	Hangs    func() bool              // whether what is submitted now waits for Release, and all behind it
	Apart    bool                     // whether each buffer has an allocation of its own
	Patience time.Duration            // the device's, once something hangs; 0: as ever

	mu       sync.Mutex
	released bool
	gates    []func() // each lets a device that hangs go on
}

// Release lets everything that hangs go on, and lets nothing hang any more.
func (t *Trial) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released = true
	for _, open := range t.gates {
		open()
	}
}

// gate adds a function that Release calls; it is called at once if Release was.
func (t *Trial) gate(open func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gates = append(t.gates, open); t.released {
		open()
	}
}

// fails is the result of a call that is not made; Success: it is made.
func (t *Trial) fails(call string) Result {
	if t == nil || t.Fails == nil {
		return Success
	}
	return t.Fails(call)
}

// hangs says whether what is submitted now is to wait.
func (t *Trial) hangs() bool { return t != nil && t.Hangs != nil && t.Hangs() }
