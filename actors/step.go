package actors

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/batch"
	"github.com/sluice-ai/sluice/stages/sample"
)

// step is one pass over the model on its way scheduler → device → sampler → scheduler, with its place in the ring of
// the device's model. It is refilled each time: whoever received it last owns it.
// Wide: it is what four actors hand on, refilled, so that a step allocates nothing.
type step struct {
	guest   int // of the device, whose model's it is
	gen     uint64
	number  uint64        // of all steps that were planned
	compute *backend.Step // its logits are nil once the model is closed
	parts   []batch.Part
	budget  batch.Budget // by which it was planned
	results []outcome    // by part
	drawn   []sample.Result
	err     error
	delays  delays // until it was planned

	over      bool // the device's actor knows that it has ended
	contended bool // other models had work for the device when it ended

	meet  atomic.Uint32 // where the device's actor and whoever calls ended find out which of them comes second
	ended func(error)   // told by the device that nothing of the step runs any more; bound once

	ran []backend.Ran // what a timed device did for it; written by its thread until it tells that the step ended

	experts []int32       // that its rows chose last; written by tell
	told    atomic.Uint32 // as meet, of the device's actor and whoever calls tell
	tell    func([]int32) // bound once

	times struct {
		planned, started, computed, sampling, sampled time.Time
		waited                                        time.Duration                  // for weights
		took                                          time.Duration                  // to compute, as far as is known
		segments                                      [ir.SegmentKinds]time.Duration // by kind
		gaps                                          [trace.Causes]time.Duration    // of a timed device
	}
}

type ( // what a device's own threads tell its actor
	// computed: a step that they worked on beside the actors has ended.
	computed struct{ step *step }
	// told: they know which experts the rows of a step go to.
	told struct{ step *step }
)

func (*computed) Late() {}
func (*told) Late()     {}

// restarted may say which step its sender died of.
type restarted = run.Restarted[step]

// lateEdges are from the device's own threads to its actor.
type lateEdges struct {
	computed run.Edge[computed]
	told     run.Edge[told]
}

// newStep makes a step of a guest's model, with room for what it may give. What the device ends only after left was
// called, and what it tells late, comes to its actor by a message.
func newStep(guest int, room batch.Limits, compute *backend.Step, out lateEdges) *step {
	m := &step{guest: guest, compute: compute, results: make([]outcome, room.Seqs)}
	m.drawn = make([]sample.Result, 0, room.Wanted)
	end, choices := &computed{m}, &told{m} // one of each is on its way at most
	m.ended = func(err error) {
		m.times.computed = now()
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

// left is called once the step is enqueued and its end was asked for; it says whether the device ended it already.
func (m *step) left() bool { return m.meet.Swap(1) == 1 }

func (*step) Late()      {}
func (*step) Poisonous() {}

// decodes says whether every sequence of the step has one row, and those of tokens that are proposed, or were.
func (m *step) decodes() bool {
	rows := 0
	for i := range m.parts {
		rows += m.parts[i].Rows - m.parts[i].Proposed - m.parts[i].Again
	}
	return rows == len(m.parts)
}

// answers says whether it has a row of an answer.
func (m *step) answers() bool {
	return slices.ContainsFunc(m.parts, func(p batch.Part) bool { return p.Rows-p.Proposed-p.Again == 1 && p.Wanted > 0 })
}

// proposals are the proposed tokens of a part.
func (m *step) proposals(part int) []int32 {
	span := &m.compute.Spans[part]
	end := span.Row + span.Rows
	return m.compute.Tokens[end-span.Proposed : end]
}

// slowest is the longest segment of a step, by the mean of its kind.
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

// outcome is the tokens that sampling gave a part: those that are the proposed ones, and the one after them.
type outcome struct {
	tokens   []sample.Result // part of the step's drawn
	unmasked bool            // which tokens may follow the last one is to be found yet
	cut      bool            // so that proposed tokens behind that were not looked at
	err      error           // of the token after these
}
