// Package supply brings weights of networks that are no text from their files while they are computed, as a plan says,
// by the actors of actors/tiers.
//
// A Supply is a tree of these actors, and a Haul one network's weights on their way. Networks are computed by one
// goroutine at a time, which is no actor: it owns what the house's device owns, the residency of each network, and
// hears of what has come from the dock, which stands in for that device among the actors.
package supply

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/sluice-ai/sluice/actors/run"
	"github.com/sluice-ai/sluice/actors/tiers"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/storage/uring"
)

// How long a segment waits for weights while the drive gives nothing, and how often a wait looks whether it is over.
const (
	late  = 30 * time.Second
	often = 50 * time.Millisecond
)

// ErrFailed is what a network's error has in it once an actor was given up: a Supply that is opened anew may do.
var ErrFailed = errors.New("weights cannot be brought any more")

// Supply is the actors that bring weights. What is opened is closed by Close.
// Wide: it is all that a tree of actors shares.
type Supply struct {
	system  *run.System
	log     zerolog.Logger
	disk    tiers.OpenDisk
	graph   *run.Graph
	wiring  *tiers.Wiring
	home    run.Place
	at      run.Place // the dock's
	slabs   tiers.Slabs
	sums    *uring.Sums
	counts  atomic.Uint64 // generations of uploaders
	docks   atomic.Int64  // that were started
	news    chan news     // from the dock to whoever computes
	begun   chan struct{} // closed when all have started
	gone    chan struct{} // closed by Close
	failed  chan struct{} // closed when an actor was given up
	failing sync.Once
	err     error // read once failed is closed

	hauls   map[*tiers.Cargo]*Haul // these belong to whoever computes
	traffic tiers.Traffic
	track   *trace.Track // of segments that are computed
	idle    *trace.Wait
}

// news is what the dock hears. Neither: all that was on its way is lost.
type news struct {
	landed   *tiers.Landed
	returned *tiers.Returned
}

// Open starts the actors. disk is nil outside tests.
func Open(log zerolog.Logger, disk tiers.OpenDisk) (*Supply, error) {
	s := &Supply{system: run.NewSystem(log), log: log, disk: disk, sums: uring.NewSums(), news: make(chan news, 1),
		begun: make(chan struct{}), gone: make(chan struct{}), failed: make(chan struct{}), hauls: map[*tiers.Cargo]*Haul{}}
	if s.disk == nil {
		s.disk = tiers.OpenRing
	}
	s.graph = run.NewGraph(s.system)
	s.home = run.Place{Kind: "supply", Address: s.system.Address("supply")}
	s.at = run.Place{Kind: "dock", Address: s.system.Address("supply/dock")}
	s.wiring = tiers.Wire(s.system, s.graph, s.home, s.at)
	s.track = s.system.Spans().Track("supply/compute")
	s.idle = s.track.Waits()
	err := s.system.Start(run.Spec{Name: "supply", Room: s.graph.Room(s.home), Children: s.system.Supervisor(s.gaveUp),
		Produce: func(int) actor.Actor { return &root{s} }})
	if err != nil {
		return nil, errors.Join(err, s.sums.Close())
	}
	select {
	case <-s.begun: // what is asked for sooner would be lost
		return s, nil
	case <-s.failed:
		return nil, errors.Join(s.err, s.Close())
	}
}

// Close stops the actors. All hauls were closed before.
func (s *Supply) Close() error {
	close(s.gone)
	err := s.system.Stop(s.home.Address)
	s.system.Shutdown()
	return errors.Join(err, s.slabs.Close(), s.sums.Close())
}

// Err is why no weights come any more, if an actor kept failing.
func (s *Supply) Err() error {
	select {
	case <-s.failed:
		return s.err
	default:
		return nil
	}
}

// Spans are the latest spans: segments, waits for weights, and what actors did.
func (s *Supply) Spans() []trace.Span { return s.system.Spans().Snapshot(nil) }

// Waited is the time that segments waited for weights so far, by cause.
func (s *Supply) Waited() [trace.Causes]time.Duration {
	totals, _, _ := s.idle.Total()
	return totals
}

// Waiting is since how long after its beginning a segment waits for weights now; 0: none does.
func (s *Supply) Waiting() time.Duration {
	_, since, _ := s.idle.Total()
	return max(since, 0)
}

// Computed is the time in which segments were computed whose weights stream, or lie beside such.
func (s *Supply) Computed() time.Duration { return s.track.Work(trace.Block) }

// Moved counts what was brought.
func (s *Supply) Moved() tiers.Moved { return s.traffic.Load() }

// Status says what the actors have done.
func (s *Supply) Status() []run.Status { return s.system.Status() }

// Crash makes an actor panic, for tests of supervision: dock, reader, pool, or a child of dock, such as dock/uploader.
func (s *Supply) Crash(name string) { s.system.Crash(s.system.Address("supply/" + name)) }

func (s *Supply) gaveUp(child *actor.PID, reason any) {
	s.fail(fmt.Errorf("actor %s keeps failing: %v", child.Id, reason))
}

func (s *Supply) fail(err error) {
	s.failing.Do(func() {
		s.err = fmt.Errorf("%w: %w", ErrFailed, err)
		close(s.failed)
	})
}

// root starts the others.
type root struct{ *Supply }

func (r *root) Receive(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); !ok {
		r.system.Lifecycle(c)
		return
	}
	all := append(r.wiring.Shared(r.system, r.log, &r.slabs, r.disk, r.sums), run.Child{At: r.at,
		Children: r.system.Supervisor(r.gaveUp), Produce: func(int) actor.Actor { return &dock{r.Supply} }})
	if err := r.graph.Spawn(c, all...); err != nil {
		r.fail(err)
	}
}

// dock is where weights arrive: what the uploader and the prefetcher take for a device. It passes on what it hears to
// whoever computes. When it starts anew, with its children, what was on its way is lost.
type dock struct{ *Supply }

func (d *dock) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		n := int(d.docks.Add(1)) - 1
		if err := d.graph.Spawn(c, d.wiring.Loaders(d.system, d.log, &d.slabs, &d.counts, n, nil)...); err != nil {
			d.fail(err)
		} else if n == 0 {
			close(d.begun)
		} else {
			d.tell(news{})
		}
	case *tiers.Landed:
		d.tell(news{landed: m})
	case *tiers.Returned:
		d.tell(news{returned: m})
	default:
		d.system.Lifecycle(c)
	}
}

// tell waits until whoever computes listens: before each segment and while it waits for weights.
func (d *dock) tell(n news) {
	select {
	case d.news <- n:
	case <-d.gone:
	}
}
