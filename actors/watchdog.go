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

// watchdog looks whether steps wait for too long. It belongs to the device's actor.
type watchdog struct {
	most  time.Duration
	debt  *tiers.Debt // the drive's
	wake  run.Edge[overdue]
	timer *time.Timer // nil: nobody looks
	soon  bool        // it looks soon
}

// patience is how long a step waits. Where one of its model has waited in vain, and nothing has come since, the others
// hear of it sooner.
func (w *watchdog) patience(g *guest) time.Duration {
	if g.weights.Overdue() {
		return w.most / 16
	}
	return w.most
}

// waited is for how long a step has waited for the drive. While the drive owes nothing it waits for the device.
func (w *watchdog) waited(at *cursor) time.Duration { return min(now().Sub(at.waits), w.debt.Lasts()) }

// keep looks later, if a step waits now.
func (w *watchdog) keep(at *cursor) {
	if at.step == nil || at.waits.IsZero() {
		return
	}
	soon, left := at.guest.weights.Overdue(), w.patience(at.guest)-w.waited(at)
	left = max(left, w.most/64)
	switch {
	case w.timer == nil:
		w.timer = time.AfterFunc(left, func() { w.wake.Send(&overdue{}) })
	case soon && !w.soon:
		w.timer.Reset(left)
	default:
		return
	}
	w.soon = soon
}

// end stops looking.
func (w *watchdog) end() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// look ends the wait of a step that has lasted too long. What it waits for may still come, and is taken then, but
// nobody is to wait for ever.
func (w *watchdog) look(at *cursor) error {
	w.end()
	if at.step == nil || at.waits.IsZero() || !at.began || w.waited(at) < w.patience(at.guest) {
		return nil
	}
	g := at.guest
	err := g.weights.Late(at.left, w.most)
	at.failed = fmt.Errorf("%s: %w", segmentName(&g.spec.bound.Segments[at.segment]), err)
	return err
}
