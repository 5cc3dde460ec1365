package exchange

import (
	"sync"
	"time"
)

// Bounds of a slow client. A client counts as reading if it takes at least slowest bytes a second while bytes are
// available. It may fall behind by patient. Faster reading before makes up for up to ahead of slower reading, since
// the system takes bytes from us in large portions.
const (
	slowest = 8 << 10
	patient = 2 * time.Second
	ahead   = 4 * time.Second
)

// pace measures how a client keeps up with what is written to it.
type pace struct {
	mu     sync.Mutex
	since  time.Time     // when the write under way began; zero: none is
	behind time.Duration // time of earlier writes, less what slowest allows for their bytes: from -ahead to patient
}

// begin records the start of a write; end records its end and the number of bytes that were taken.
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
