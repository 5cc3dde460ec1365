package actors

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
)

type (
	// enter, from the facade, asks for a model to be run. The root passes it on to the device. The guest's tell.ready
	// or tell.fail answers.
	enter struct{ *lodger }
	// leave, from the facade, says that nobody asks for the model any more. The root stops its actors, then passes it
	// on. The guest's tell.gone answers when nothing of the model is left.
	leave struct{ *lodger }
)

func (*enter) Late() {}
func (*leave) Late() {}

// Refused ends the stay of a model whose house or device is gone.
func (m *enter) Refused() {
	m.guest.tell.fail(ErrClosed)
	m.guest.tell.gone()
}

// lodger is what the root knows of a model that runs or is about to.
type lodger struct {
	guest  *guest
	child  run.Child // its actor
	to     stayEdges
	hangUp func(error) // cancels all of the model's requests
	here   func()      // called if its actor cannot be started
}

type stayEdges struct { // at the device
	enter run.Edge[enter]
	leave run.Edge[leave]
}

// deviceMemory is the state that outlives the incarnations of the device's actor.
type deviceMemory struct {
	guests      []*guest             // by index; nil where none has it
	generations atomic.Uint64        // the uploader's latest generation
	working     atomic.Pointer[step] // the step during which the device's actor failed, if it was at one
	lost        []time.Time          // times, within lostWindow, at which the backend was lost
}

// A device that is lost more often than mostLost in lostWindow is given up: it is of no use if that goes on, and each
// time may take as long as a hang takes to be noticed.
const (
	mostLost   = 5
	lostWindow = 10 * time.Minute
)

// A model whose steps hang the device mostHung times in lostWindow, while others are computed there, is refused: it
// would take the others with it.
const mostHung = 2

// blame notes that the device hung in a step of a guest.
func (m *deviceMemory) blame(g *guest, at time.Time, err error) {
	g.hung = slices.DeleteFunc(g.hung, func(t time.Time) bool { return at.Sub(t) >= lostWindow })
	g.hung = append(g.hung, at)
	others := slices.ContainsFunc(m.guests, func(o *guest) bool { return o != nil && o != g && !o.refused })
	if len(g.hung) < mostHung || !others {
		return
	}
	g.refused = true
	g.tell.barred(fmt.Errorf("computing it hung the device %d times within %s, which other models need: it is refused for so "+
		"long: run it alone, or on another device: %w", len(g.hung), lostWindow, err))
}

// lose notes that the device was lost. If it hung, the step that it was at is blamed; else none is. An error means
// that the device is given up.
func (m *deviceMemory) lose(at time.Time, err error, during *step) error {
	if during != nil && errors.Is(err, backend.ErrHung) {
		during = m.oldest(during) // later steps ended with the oldest one
		m.blame(m.guests[during.guest], at, err)
	} else {
		during = nil
	}
	m.working.Store(during)
	m.lost = slices.DeleteFunc(m.lost, func(t time.Time) bool { return at.Sub(t) >= lostWindow })
	if m.lost = append(m.lost, at); len(m.lost) <= mostLost {
		return nil
	}
	return fmt.Errorf("given up, for the %dth time within %s: %w", len(m.lost), lostWindow, err)
}

// oldest returns the step that the device began first, among first, which has just failed, and all that still run
// there.
func (m *deviceMemory) oldest(first *step) *step {
	for g := range m.all() {
		for _, other := range g.flying {
			if other.times.started.Before(first.times.started) {
				first = other
			}
		}
	}
	return first
}

// all yields the guests that are there.
func (m *deviceMemory) all() iter.Seq[*guest] {
	return func(yield func(*guest) bool) {
		for _, g := range m.guests {
			if g != nil && !yield(g) {
				return
			}
		}
	}
}

// put stores a guest at its index.
func (m *deviceMemory) put(g *guest) {
	for len(m.guests) <= g.index {
		m.guests = append(m.guests, nil)
	}
	m.guests[g.index] = g
}
