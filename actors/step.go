package actors

import (
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/promise"
	"github.com/sluice-ai/sluice/stages/sample"
)

// step is one pass over the model on its way scheduler → device → sampler → scheduler, with its place in the ring of
// the device's model. It is refilled each time: whoever received it last owns it.
// Wide: it is what four actors hand on, refilled, so that a step allocates nothing.
type step struct {
	guest   int // index of the guest on the device whose model computes the step
	gen     uint64
	number  uint64        // counts all steps that were planned for the model, from 1
	compute *backend.Step // its logits are nil once the model is closed
	parts   []batch.Part
	shape   promise.Shape // what its time depends on
	budget  batch.Budget  // by which it was planned
	results []outcome     // by part
	drawn   []sample.Result
	err     error
	delays  delays // what delayed it until it was planned

	over      bool // the device's actor knows that it has ended
	behind    bool // the device had other steps when it came
	contended bool // other models had work for the device when it ended

	meet  atomic.Uint32 // left and ended swap it: the second one sees that the first was there
	ended func(error)   // called by the device when nothing of the step runs any more; bound once

	ran []backend.Ran // when a timed device ran its segments; written by the device's thread until it calls ended

	experts []int32       // those that its rows chose in the last route; written by tell
	told    atomic.Uint32 // like meet, for the device's actor and tell
	tell    func([]int32) // bound once

	times struct {
		planned, started, computed time.Time
		sampling, masking, sampled time.Time                      // masking: after the drawing
		waited                     time.Duration                  // for weights
		took                       time.Duration                  // to compute, as far as is known
		segments                   [ir.SegmentKinds]time.Duration // by kind
		gaps                       [trace.Causes]time.Duration    // of a timed device
	}
}

type ( // what a device's own threads tell its actor
	// computed says that a step on which they worked beside the actors has ended.
	computed struct{ step *step }
	// told says that they know which experts the rows of a step chose.
	told struct{ step *step }
)

func (*computed) Late() {}
func (*told) Late()     {}

// restarted says that its sender has restarted, and which step it failed on, if any.
type restarted = run.Restarted[step]

// lateEdges are from the device's own threads to its actor.
type lateEdges struct {
	computed run.Edge[computed]
	told     run.Edge[told]
}

// newStep makes a step of a guest's model, with room for its results. If the device ends the step only after left was
// called, or tells the experts only after the actor looked, its actor hears of it by a message.
func newStep(guest int, room batch.Limits, compute *backend.Step, out lateEdges) *step {
	m := &step{guest: guest, compute: compute, results: make([]outcome, room.Seqs)}
	m.drawn = make([]sample.Result, 0, room.Wanted)
	end, choices := &computed{m}, &told{m} // one of each is on its way at most
	m.ended = func(err error) {
		m.times.computed = trace.Instant()
		if m.err == nil {
			m.err = err
		}
		if m.meet.Swap(1) == 1 {
			out.computed.Send(end)
		}
	}
	m.tell = func(experts []int32) {
		m.experts = append(m.experts[:0], experts...)
		if m.told.Swap(1) == 1 {
			out.told.Send(choices)
		}
	}
	return m
}

// left says whether the device has ended the step already. It is called once the step is enqueued and its end was
// asked for.
func (m *step) left() bool { return m.meet.Swap(1) == 1 }

func (*step) Late()      {}
func (*step) Poisonous() {}

// measure sets the step's shape.
func (m *step) measure() {
	of := promise.Shape{Rows: len(m.compute.Tokens)}
	rows := 0
	for i := range m.parts {
		p := &m.parts[i]
		rows += p.Rows - p.Proposed - p.Again
		of.Seen += m.compute.Spans[i].Seen()
		of.Answer = of.Answer || p.Answers()
		of.Kept = of.Kept || p.Seq.Promised && p.Wanted > 0
	}
	of.Prompt = rows != len(m.parts)
	m.shape = of
}

// decodes says whether every sequence of the step has one row, besides rows of proposed tokens and rows that are
// computed again.
func (m *step) decodes() bool { return !m.shape.Prompt }

// answers says whether the step has a row that continues an answer.
func (m *step) answers() bool { return m.shape.Answer }

// proposals are the proposed tokens of a part.
func (m *step) proposals(part int) []int32 {
	span := &m.compute.Spans[part]
	end := span.Row + span.Rows
	return m.compute.Tokens[end-span.Proposed : end]
}

// slowest is the longest time that a segment of the step took, by the mean of each kind.
func (m *step) slowest(segments []ir.Segment) time.Duration {
	var count [ir.SegmentKinds]time.Duration
	for i := range segments {
		count[segments[i].Kind]++
	}
	longest := time.Duration(0)
	for kind, took := range m.times.segments {
		if count[kind] > 0 {
			longest = max(longest, took/count[kind])
		}
	}
	return longest
}

// outcome is the tokens that sampling gave a part: the proposed tokens that were accepted, and the one after them.
type outcome struct {
	tokens   []sample.Result // part of the step's drawn
	unmasked bool            // the mask of what may follow the last token has yet to be found
	cut      bool            // for want of that mask the proposed tokens that follow were not looked at
	err      error           // why there is no token after these
}
