package actors

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/stages/kv"
)

// stats are the counts behind /metrics, bench and health. Each counter has one actor that writes it; any goroutine may
// read.
// Wide: each is a counter.
type stats struct {
	running, waiting        atomic.Int64
	requests, failedSteps   atomic.Uint64
	promptTokens, generated atomic.Uint64
	proposed, accepted      atomic.Uint64 // tokens
	drafted, draftedRight   atomic.Uint64 // those of them that a draft model guessed
	lacking                 atomic.Uint32 // a trace.Cause: why there is no step to plan; 0: there is one or more
	spans                   *trace.Track  // gets the spans of segments and of steps
	firstToken, between     histogram     // from the request to the first token; from one token to the next
	queue                   histogram     // from the request to its first rows in a step
	streamed                tiers.Traffic

	last struct { // of the step planned last; only the scheduler uses it
		number  uint64
		planned time.Time
		work    time.Duration
		sample  time.Duration
		chained bool
	}
	mu sync.Mutex
	kv kv.Stats

	counting sync.Mutex // held while steps is changed or read
	steps    Steps
}

// Steps says where the time of steps went. Wall is the time from one step's plan to the next one's, where the next
// followed at once; Compute and Sample are the parts of Wall in which the device and the sampler worked. The rest is
// the actors' overhead.
type Steps struct {
	Count, Rows           uint64
	Wall, Compute, Sample time.Duration
	Prefill, Decode       Work // decode: steps in which every sequence has one row
}

// Work is what steps of one kind computed, and for how long.
type Work struct {
	Steps, Rows, Wanted uint64
	Sequences           uint64                         // summed over steps
	Positions           uint64                         // positions in the sequences' caches that steps read, summed
	Seen                uint64                         // positions that rows attended to, summed over rows
	Time                [ir.SegmentKinds]time.Duration // by kind of segment
	Gaps                [trace.Causes]time.Duration    // the device's waits by cause, if it reports segments
}

// ActorsShare is the part of the wall time that was neither computing nor sampling, from 0 to 1. For a device that
// says when segments ran, it is the part in which the device waited for the host.
func (s Steps) ActorsShare() float64 {
	var computed, waited, forActors time.Duration
	for _, w := range []*Work{&s.Prefill, &s.Decode} {
		for _, t := range w.Time {
			computed += t
		}
		for c, t := range w.Gaps {
			switch trace.Cause(c) {
			case trace.NoWork, trace.Loading, trace.Credit:
				continue
			case trace.Host, trace.Scheduler, trace.KV, trace.Unknown:
				forActors += t
			}
			waited += t
		}
	}
	if waited > 0 {
		return float64(forActors) / float64(computed+waited)
	}
	if s.Wall == 0 {
		return 0
	}
	return float64(s.Wall-s.Compute-s.Sample) / float64(s.Wall)
}

// Sub returns what happened since earlier.
func (s Steps) Sub(earlier Steps) Steps {
	return Steps{s.Count - earlier.Count, s.Rows - earlier.Rows,
		s.Wall - earlier.Wall, s.Compute - earlier.Compute, s.Sample - earlier.Sample,
		s.Prefill.sub(&earlier.Prefill), s.Decode.sub(&earlier.Decode)}
}

func (w Work) sub(earlier *Work) Work {
	w.Steps -= earlier.Steps
	w.Rows -= earlier.Rows
	w.Wanted -= earlier.Wanted
	w.Sequences -= earlier.Sequences
	w.Positions -= earlier.Positions
	w.Seen -= earlier.Seen
	for kind := range w.Time {
		w.Time[kind] -= earlier.Time[kind]
	}
	for cause := range w.Gaps {
		w.Gaps[cause] -= earlier.Gaps[cause]
	}
	return w
}

// of returns the account that counts a step: decode or prefill.
func (s *Steps) of(m *step) *Work {
	if m.decodes() {
		return &s.Decode
	}
	return &s.Prefill
}

func (w *Work) add(m *step) {
	w.Steps++
	w.Rows += uint64(len(m.compute.Tokens))
	w.Wanted += uint64(len(m.compute.Wanted))
	w.Sequences += uint64(len(m.compute.Spans))
	w.Seen += uint64(m.shape.Seen)
	for i := range m.compute.Spans {
		p := &m.compute.Spans[i]
		w.Positions += uint64(p.Pos + p.Rows)
	}
	for kind, took := range m.times.segments {
		w.Time[kind] += took
	}
	for cause, took := range m.times.gaps {
		w.Gaps[cause] += max(took, 0)
	}
}

// stepPlanned notes that a step leaves the scheduler. If the step before it has just come back, the wall time of that
// one is complete.
func (s *stats) stepPlanned(m *step) {
	if s.last.chained {
		s.counting.Lock()
		s.steps.Wall += m.times.planned.Sub(s.last.planned)
		s.steps.Compute += s.last.work
		s.steps.Sample += s.last.sample
		s.counting.Unlock()
	}
	s.last.number++
	m.number = s.last.number
	s.last.planned, s.last.chained = m.times.planned, false
}

func (s *stats) stepDone(m *step) {
	s.last.work = m.times.computed.Sub(m.times.started)
	s.last.sample = m.times.sampled.Sub(m.times.sampling)
	s.last.chained = true
	s.counting.Lock()
	defer s.counting.Unlock()
	s.steps.Count++
	s.steps.Rows += uint64(len(m.compute.Tokens))
	s.steps.of(m).add(m)
}

// idle notes that there is no step to plan: the time until the next one is not the actors' overhead.
func (s *stats) idle() { s.last.chained = false }

func (s *stats) stepFailed() {
	s.last.chained = false
	s.failedSteps.Add(1)
}

func (s *stats) setKV(k kv.Stats) {
	s.mu.Lock()
	s.kv = k
	s.mu.Unlock()
}

// Snapshot is the engine's state in numbers.
// Wide: each is a counter.
type Snapshot struct {
	Running, Waiting        int64 // sequences
	Open                    int64 // requests
	Requests, FailedSteps   uint64
	PromptTokens, Generated uint64
	Proposed, Accepted      uint64 // tokens: those that were guessed, and those of them that were drawn
	Drafted, DraftedRight   uint64 // those that a draft model guessed, and those of them that were drawn
	Steps                   Steps
	KV                      kv.Stats
	Streamed                tiers.Moved
	FirstToken              Histogram // from a request to its answer's first token
	BetweenTokens           Histogram
	Queue                   Histogram // from a request to its first rows in a step
	DeadLetters, Unexpected uint64
	Actors                  []run.Status
}

func (s *stats) snapshot() Steps {
	s.counting.Lock()
	defer s.counting.Unlock()
	return s.steps
}

// segmentKinds is the kind of a segment's span, by kind of segment.
var segmentKinds = [ir.SegmentKinds]trace.Kind{
	ir.SegEmbed: trace.Embed, ir.SegMix: trace.Mix, ir.SegFFN: trace.FFN, ir.SegRoute: trace.Route,
	ir.SegExperts: trace.Experts, ir.SegHead: trace.Head, ir.SegPool: trace.Pool,
}
