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
	// enter, from the facade: a model is to run. It is passed on to the device. Whether it can is told by the guest.
	enter struct{ *lodger }
	// leave, from the facade: nobody asks for the model any more. Its actors are stopped, then it is passed on. That
	// nothing of the model is left is told by the guest.
	leave struct{ *lodger }
)

func (*enter) Late() {}
func (*leave) Late() {}

// Refused ends the stay of a model whose house or device is gone.
func (m *enter) Refused() {
	m.guest.tell.fail(ErrClosed)
	m.guest.tell.gone()
}

// lodger is what the root knows of a model.
type lodger struct {
	guest  *guest
	child  run.Child // its actor
	to     stayEdges
	hangUp func(error) // all of the model's requests
	here   func()      // its actor has started
}

type stayEdges struct { // at the device
	enter run.Edge[enter]
	leave run.Edge[leave]
}

// deviceMemory is what outlives a device's incarnations.
type deviceMemory struct {
	guests      []*guest             // by index; nil where none has it
	generations atomic.Uint64        // of the uploader
	working     atomic.Pointer[step] // what the device died of, if it died of a step
	lost        []time.Time          // when its backend was, in lostWindow
}

// A device that is lost more often than mostLost in lostWindow is given up: what is lost without an end is of no use,
// and each time may take as long as a hang does to be seen.
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

// lose notes that the device was lost. The step that it was at, if any, is to blame if the device hung, and no other.
// An error gives the device up.
func (m *deviceMemory) lose(at time.Time, err error, during *step) error {
	if during != nil && errors.Is(err, backend.ErrHung) {
		during = m.oldest(during) // those after it ended with it
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

// oldest is the step that the device began first, of those that run there and the one that has just failed.
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

// all are the guests that are there.
func (m *deviceMemory) all() iter.Seq[*guest] {
	return func(yield func(*guest) bool) {
		for _, g := range m.guests {
			if g != nil && !yield(g) {
				return
			}
		}
	}
}

// put gives a guest its place.
func (m *deviceMemory) put(g *guest) {
	for len(m.guests) <= g.index {
		m.guests = append(m.guests, nil)
	}
	m.guests[g.index] = g
}
