package tiers

import (
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// Way is how far the last piece of a group had come when, on its way to a device.
type Way struct {
	queued time.Time // the uploader knows of it
	sent   time.Time // and has the reader read it
	read   time.Time // the disk has given it
	slab   bool      // between these it waited for memory of the pool's, not for a place at the reader
}

// Explain says what the open wait for the group was for until it landed.
func (w *Way) Explain(idle *trace.Wait, landed time.Time) {
	idle.Until(w.queued, trace.Uploader)
	if w.slab {
		idle.Until(w.sent, trace.Slabs)
	}
	idle.Until(w.read, trace.Reader)
	idle.Until(landed, trace.Uploader)
}
