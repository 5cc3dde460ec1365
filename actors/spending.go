package actors

import (
	"time"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/bill"
)

// spending is a sequence's part of its request's account, which the scheduler keeps: the account as of the last step
// that came back, and what the sequence has waited for since.
type spending struct {
	bill   bill.Bill
	told   bill.Bill // as recorded last
	waits  bill.Cause
	flying int // steps with rows of it that are in flight
}

// begin takes in that the sequence has come. If no step can be planned yet, it waits for what these wait for.
func (p *spending) begin(absent bool) {
	p.waits = bill.Queue
	if absent {
		p.waits = bill.Load
	}
}

// turn notes what the sequence waits for from now on.
func (p *spending) turn(at time.Time, waits bill.Cause) {
	if p.flying == 0 {
		p.bill.Until(at, p.waits)
	}
	p.waits = waits
}

// planned notes that a step with rows of the sequence was planned.
func (p *spending) planned(at time.Time) {
	p.turn(at, bill.Host)
	p.flying++
}

// again notes that what the sequence had in flight is lost.
func (p *spending) again(at time.Time) {
	if p.flying > 0 {
		p.flying, p.waits = 0, bill.Restart
	}
	p.turn(at, bill.Restart)
}

// back takes in that a step has come back without a result.
func (p *spending) back(at time.Time) {
	p.flying = max(p.flying-1, 0)
	p.bill.Until(at, bill.Restart)
}

// done takes in that a step has come back, in which the sequence had a part. bound says that a
// grammar applies to it.
func (p *spending) done(m *step, part *batch.Part, w *bill.Pass, bound bool) {
	p.flying = max(p.flying-1, 0)
	a := &p.bill
	before := bill.Host
	if m.behind {
		before = bill.Others
	}
	a.Until(m.times.started, before)
	w.Own = part.Rows
	a.Computed(m.times.computed, w)
	a.Until(m.times.sampling, bill.Host)
	wanted := len(m.compute.Wanted)
	a.Sampled(m.times.masking, part.Wanted, wanted, bill.Sampling)
	if bound {
		a.Until(m.times.sampled, bill.Grammar)
	} else {
		a.Until(m.times.sampled, bill.Others)
	}
}

// work is what a step's parts are told of it.
func (m *step) work() bill.Pass {
	w := bill.Pass{Weights: m.times.waited, Rows: len(m.compute.Tokens), Fixed: m.budget.Fixed}
	if gaps := &m.times.gaps; len(m.ran) > 0 { // a device with a clock: these include what the host saw
		w.Weights = gaps[trace.Reader] + gaps[trace.Slabs] + gaps[trace.Uploader] + gaps[trace.Expert]
		w.Host = gaps[trace.Host] + gaps[trace.Launch]
	}
	return w
}
