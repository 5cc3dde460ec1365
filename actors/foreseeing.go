package actors

import (
	"time"

	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/promise"
)

// foreseeing is what a scheduler tells the outlook, and has learned for it. It belongs to the scheduler.
type foreseeing struct {
	to    *outlook
	ended time.Time     // when the last step was sampled
	back  promise.Shape // of a step that has come back, which tell has yet to tell; no rows: there is none
	took  time.Duration // by that step
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

// answered learns from an answer that has ended how long answers are. whole: it is not only as long as it might become.
func (f *foreseeing) answered(h *sequence, whole bool) {
	if h.Sent() == 0 || h.follows != nil {
		return
	}
	f.to.mu.Lock()
	defer f.to.mu.Unlock()
	f.to.load.Lengths.Observe(len(h.Tokens)-h.Prompt, whole)
}

// tell lets others see what there is to be done now; oldest is the first of the steps in flight, nil: there is none.
func (f *foreseeing) tell(s *batch.State, budget batch.Budget, oldest *step) {
	o := f.to
	o.mu.Lock()
	defer o.mu.Unlock()
	l := &o.load
	if f.back.Rows > 0 {
		l.Speed.Observe(f.back, f.took)
		l.Newest, f.back = f.took, promise.Shape{}
	}
	l.Budget, l.Seqs = budget, s.Ahead(l.Seqs[:0])
	l.Flying = promise.Shape{}
	if oldest != nil {
		l.Flying, o.since = oldest.shape, oldest.times.planned
	}
}
