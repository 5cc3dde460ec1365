package exchange

import (
	"sync"
	"time"
)

// Bounds of a slow client. A client reads its answer if it takes at least slowest bytes a second of what is
// available. It may be late by patient, and earlier reading counts for up to ahead: the system takes bytes from us in
// portions.
const (
	slowest = 8 << 10
	patient = 2 * time.Second
	ahead   = 4 * time.Second
)

// pace measures how a client keeps up with what is written to it.
type pace struct {
	mu     sync.Mutex
	since  time.Time     // since when a write waits; zero: none does
	behind time.Duration // what earlier ones waited, less what their bytes were worth: from -ahead to patient
}

// begin records the start of a write, and end its end and how many bytes were taken.
func (p *pace) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.since = now
}

func (p *pace) end(now time.Time, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	worth := time.Duration(bytes) * time.Second / slowest
	p.behind = max(-ahead, min(patient, p.behind+now.Sub(p.since)-worth))
	p.since = time.Time{}
}

// unread reports whether the client reads too slowly.
func (p *pace) unread(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.since.IsZero() && p.behind+now.Sub(p.since) > patient
}
