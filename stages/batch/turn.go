package batch

import "time"

// Turns decides which model's step a device computes next when several models share it: that of the model that has
// had least of the device's time; of equals, of the one that has waited longest. A model gets no credit for idle
// time: it begins with the time of that busy model that has had least.
type Turns struct {
	models []claim
	clock  uint64
}

// claim is the account of one model: what it does, and the device's time that it has had.
type claim struct {
	stage stage
	had   time.Duration
	since uint64 // Turns.clock when it began to wait
}

// stage is what a model does between two steps.
type stage uint8

const (
	idle      stage = iota
	queued          // it has a step for the device
	computing       // the device has it
	thinking        // its step is done; whether another follows, Wait or Idle will say
)

// NewTurns makes the turns of so many models, numbered from 0.
func NewTurns(models int) *Turns { return &Turns{models: make([]claim, models)} }

// Enter adds a model that has had no time yet. No other model has its number now.
func (t *Turns) Enter(model int) {
	if model >= len(t.models) {
		t.models = append(t.models, make([]claim, model+1-len(t.models))...)
	}
	t.models[model] = claim{}
}

// Wait says that a model has a step for the device.
func (t *Turns) Wait(model int) {
	c := &t.models[model]
	if c.stage == idle {
		c.had = max(c.had, t.least())
	}
	t.clock++
	c.stage, c.since = queued, t.clock
}

// least is the time of that busy model that has had least; 0 if none is busy.
func (t *Turns) least() (least time.Duration) {
	found := false
	for i := range t.models {
		if c := &t.models[i]; c.stage != idle && (!found || c.had < least) {
			least, found = c.had, true
		}
	}
	return least
}

// Idle says that no step of the model follows for now, or that its step was taken back.
func (t *Turns) Idle(model int) { t.models[model].stage = idle }

// Took says how long the model's step took; it may have another soon.
func (t *Turns) Took(model int, d time.Duration) {
	t.models[model].had += d
	t.models[model].stage = thinking
}

// Contended says whether models besides this one have work for the device.
func (t *Turns) Contended(model int) bool {
	for i := range t.models {
		if i != model && t.models[i].stage != idle {
			return true
		}
	}
	return false
}

// Next returns the model whose step is computed now. ok is false if none waits, or if the model whose turn it is has
// yet to say whether another step follows: that takes microseconds, while steps of others may take a second.
func (t *Turns) Next() (model int, ok bool) {
	best := -1
	for i := range t.models {
		if c := &t.models[i]; (c.stage == queued || c.stage == thinking) && (best < 0 || t.before(c, &t.models[best])) {
			best = i
		}
	}
	if best < 0 || t.models[best].stage == thinking {
		return 0, false
	}
	t.models[best].stage = computing
	return best, true
}

// before says whose turn comes first. A model that thinks and has had as much as one that waits does not hold it up.
func (t *Turns) before(a, b *claim) bool {
	switch {
	case a.had != b.had:
		return a.had < b.had
	case a.stage != b.stage:
		return a.stage == queued
	}
	return a.since < b.since
}
