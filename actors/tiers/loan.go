package tiers

import (
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Loan is groups that the device reads for a part of a segment. Nothing comes to their slots until it is settled.
type Loan struct {
	Groups []int
	meet   atomic.Uint32 // where the device's actor and whoever calls done find out which of them comes second
	done   func()        // bound once
}

// newLoan is one of which back hears if the device's actor has asked before, by Returned, whether it is over.
func newLoan(back func(*Loan)) *Loan {
	l := new(Loan)
	l.done = func() {
		if l.Returned() {
			back(l)
		}
	}
	return l
}

// Part is the device's work on a loan.
func (l *Loan) Part(segment int, last bool) backend.Work {
	l.meet.Store(0)
	return backend.Work{Segment: segment, Groups: l.Groups, Last: last, Done: l.done}
}

// Returned says, once the device has its work, whether it is done with it.
func (l *Loan) Returned() bool { return l.meet.Swap(1) == 1 }
