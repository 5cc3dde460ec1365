package tiers

import (
	"sync/atomic"

	"github.com/sluice-ai/sluice/internal/backend"
)

// Loan is the lease of the groups that the device reads for one part of a segment. Until the loan is settled, nothing
// is uploaded to their slots.
type Loan struct {
	Groups []int
	meet   atomic.Uint32 // where the device's actor and whoever calls done find out which of them comes second
	done   func()        // bound once
}

// newLoan returns a loan. It calls back when the device is done with it, if the device's actor has asked before
// whether it is (Returned) and was told no.
func newLoan(back func(*Loan)) *Loan {
	l := new(Loan)
	l.done = func() {
		if l.Returned() {
			back(l)
		}
	}
	return l
}

// Part is the device's work with a loan: a part of a segment.
func (l *Loan) Part(segment int, last bool) backend.Work {
	l.meet.Store(0)
	return backend.Work{Segment: segment, Groups: l.Groups, Last: last, Done: l.done}
}

// Returned marks one side as done, and reports whether the other side was done before it. The device's actor asks once,
// after it has given the device the work; done, by which the device reports the end, asks as the other side.
func (l *Loan) Returned() bool { return l.meet.Swap(1) == 1 }
