package tiers

import (
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
)

// Way is the times at which the last piece of a group reached the stages of its way to a device.
type Way struct {
	queued time.Time // when the uploader knew of it
	sent   time.Time // when the uploader asked the reader for it
	read   time.Time // when the disk had read it
	slab   bool      // from queued to sent it waited for a slab; if false, for credit at the reader
}

// Explain splits the open wait for the group by what it was for, until the group landed.
func (w *Way) Explain(idle *trace.Wait, landed time.Time) {
	idle.Until(w.queued, trace.Uploader)
	if w.slab {
		idle.Until(w.sent, trace.Slabs)
	}
	idle.Until(w.read, trace.Reader)
	idle.Until(landed, trace.Uploader)
}
