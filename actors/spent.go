package actors

import (
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
)

// lost takes in, for all its sequences, that a step has come back without a result.
func lost(m *step) {
	at := trace.Instant()
	for i := range m.parts {
		m.parts[i].Seq.Owner.(*sequence).spending.back(at)
	}
}

// spend notes what each sequence waits for, where that has changed. busy says that steps are in flight, drafts that
// they wait for guesses.
func spend(s *batch.State, busy, drafts bool) {
	var at time.Time
	for _, q := range s.Seqs() {
		h := q.Owner.(*sequence)
		if h.spending.flying > 0 {
			continue
		}
		if waits := awaits(s, q, &h.spending, busy, drafts); waits != h.spending.waits {
			if at.IsZero() {
				at = trace.Instant()
			}
			h.spending.turn(at, waits)
		}
	}
}

// awaits is the cause of the time from now on of a sequence without rows in flight.
func awaits(s *batch.State, q *batch.Seq, p *spending, busy, drafts bool) bill.Cause {
	switch s.Awaits(q) {
	case batch.WaitMask:
		return bill.Grammar
	case batch.WaitReader:
		return bill.Write
	case batch.WaitPlace:
		return bill.Queue
	case batch.WaitBlocks:
		return bill.Room
	case batch.WaitTurn:
		switch {
		case busy:
			return bill.Others
		case drafts:
			return bill.Draft
		}
		return bill.Host
	}
	return p.waits
}
