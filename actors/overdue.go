package actors

import (
	"fmt"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
)

// overdue, from the device to itself after a time in which what a step waits for may have come.
type overdue struct{}

func (*overdue) Late() {}

// usuallyLate is how long a step waits for a drive that gives nothing of what it lacks.
const usuallyLate = 30 * time.Second

// vigil looks whether steps wait for too long. It belongs to the device's actor.
type vigil struct {
	most  time.Duration
	debt  *tiers.Debt // the drive's
	wake  run.Edge[overdue]
	timer *time.Timer // nil: nobody looks
	soon  bool        // it looks soon
}

// patience is how long a step waits. Where one of its model has waited in vain, and nothing has come since, the others
// hear of it sooner.
func (v *vigil) patience(g *guest) time.Duration {
	if g.weights.Overdue() {
		return v.most / 16
	}
	return v.most
}

// waited is for how long a step has waited for the drive. While the drive owes nothing it waits for the device.
func (v *vigil) waited(at *cursor) time.Duration { return min(now().Sub(at.waits), v.debt.Lasts()) }

// keep looks later, if a step waits now.
func (v *vigil) keep(at *cursor) {
	if at.step == nil || at.waits.IsZero() {
		return
	}
	soon, left := at.guest.weights.Overdue(), v.patience(at.guest)-v.waited(at)
	left = max(left, v.most/64)
	switch {
	case v.timer == nil:
		v.timer = time.AfterFunc(left, func() { v.wake.Send(&overdue{}) })
	case soon && !v.soon:
		v.timer.Reset(left)
	default:
		return
	}
	v.soon = soon
}

// end stops looking.
func (v *vigil) end() {
	if v.timer != nil {
		v.timer.Stop()
		v.timer = nil
	}
}

// look ends the wait of a step that has lasted too long. What it waits for may still come, and is taken then, but
// nobody is to wait for ever.
func (v *vigil) look(at *cursor) error {
	v.end()
	if at.step == nil || at.waits.IsZero() || !at.began || v.waited(at) < v.patience(at.guest) {
		return nil
	}
	g := at.guest
	err := g.weights.Late(at.left, v.most)
	at.failed = fmt.Errorf("%s: %w", segmentName(&g.spec.bound.Segments[at.segment]), err)
	return err
}
