package actors

import (
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/promise"
)

// foreseeing is what a scheduler tells the outlook, and has learned for it. It belongs to the scheduler.
type foreseeing struct {
	to      *outlook
	ended   time.Time     // when the last step was sampled
	back    promise.Shape // of a step that has come back, which tell has yet to tell; no rows: there is none
	took    time.Duration // by that step
	answers float64       // that have ended; older ones count for less
	tokens  float64       // of these
}

// begin lets others see what steps may have.
func (f *foreseeing) begin(limits batch.Limits) {
	f.to.mu.Lock()
	defer f.to.mu.Unlock()
	f.to.load.Limits = limits
}

// computed learns from a step that has come back. Of steps in flight together each has the time since the one before.
func (f *foreseeing) computed(m *step) {
	f.back, f.took = m.shape, m.times.sampled.Sub(latest(m.times.planned, f.ended))
	f.ended = m.times.sampled
}

// answered learns from an answer that has ended how long answers are.
func (f *foreseeing) answered(h *sequence) {
	const keep = 1 - 1.0/64
	if n := h.Sent(); n > 0 && h.follows == nil {
		f.answers, f.tokens = f.answers*keep+1, f.tokens*keep+float64(n)
	}
}

// tell lets others see what there is to be done now; oldest is the first of the steps in flight, nil: there is none.
func (f *foreseeing) tell(s *batch.State, budget batch.Budget, oldest *step) {
	o := f.to
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &o.load
	if f.back.Rows > 0 {
		l.Speed.Observe(f.back, f.took)
		f.back = promise.Shape{}
	}
	l.Budget, l.Seqs = budget, s.Ahead(l.Seqs[:0])
	l.Flying, l.Answer = promise.Shape{}, 0
	if f.answers > 0 {
		l.Answer = int(f.tokens/f.answers + 0.5)
	}
	if oldest != nil {
		l.Flying, o.since = oldest.shape, oldest.times.planned
	}
}
