package actors

import (
	"fmt"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
)

// overdue, from the device to itself by a timer, says that the watchdog is to look.
type overdue struct{}

func (*overdue) Late() {}

// usuallyLate is how long a step waits for weights while the drive gives nothing.
const usuallyLate = 30 * time.Second

// watchdog ends steps that wait for weights for too long. It belongs to the device's actor.
type watchdog struct {
	most  time.Duration // how long a step waits; see patience
	debt  *tiers.Debt   // of the drive
	wake  run.Edge[overdue]
	timer *time.Timer // nil: no look is due
	soon  bool        // the timer was set for a model that is overdue
}

// patience is how long a step of a guest waits. If one has waited in vain, and nothing has come since, the next ones
// are ended sooner.
func (w *watchdog) patience(g *guest) time.Duration {
	if g.weights.Overdue() {
		return w.most / 16
	}
	return w.most
}

// waited is for how long a step has waited for the drive. While no read is under way, it waits for the device instead,
// which does not count.
func (w *watchdog) waited(at *cursor) time.Duration { return min(now().Sub(at.waits), w.debt.Lasts()) }

// keep sets the timer for the next look, if a step waits now.
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

// end stops the timer.
func (w *watchdog) end() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// look ends the wait of a step that has lasted too long. Weights that come later are taken all the same, but nobody is
// to wait for them for ever.
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
