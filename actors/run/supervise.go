package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

const (
	// MaxRestarts is how many failures within restartWindow supervision forgives before it gives up.
	MaxRestarts   = 8
	maxPoisoned   = 8 * MaxRestarts // the same, of failures on a Poisonous message
	restartWindow = time.Minute     // older failures are forgotten
	firstBackoff  = 10 * time.Millisecond
	maxBackoff    = 2 * time.Second
)

// Poisonous marks messages that bring work of others, such as requests. An actor that panics on one most likely does
// so because of that work, not because of a fault of its own; somebody finds out whose work it was and ends it. So
// these failures are counted apart, and many more are forgiven.
type Poisonous interface{ Poisonous() }

// Supervisor restarts a failed child: at once the first time, then after a doubling pause with jitter. A child that
// keeps failing is given up. It implements actor.SupervisorStrategy.
type Supervisor struct {
	system *System
	gaveUp func(child *actor.PID, reason any)

	mu       sync.Mutex
	failures map[string]*failures // by child
}

// failures are the times of a child's recent failures: on Poisonous messages, and all others (own).
type failures struct{ own, poisoned []time.Time }

// Supervisor returns a strategy that calls gaveUp for a child that keeps failing, after stopping it.
func (s *System) Supervisor(gaveUp func(child *actor.PID, reason any)) *Supervisor {
	return &Supervisor{system: s, gaveUp: gaveUp, failures: make(map[string]*failures)}
}

// HandleFailure implements actor.SupervisorStrategy.
func (s *Supervisor) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	_, poisoned := message.(Poisonous)
	own, onWork := s.note(child.Id, poisoned)
	log := s.system.log.Error().Str("actor", child.Id).Str("message", fmt.Sprintf("%T", message)).
		Str("reason", fmt.Sprint(reason)).Int("failures", own).Int("on_work", onWork)
	load := s.system.load(child.Id)
	if load != nil {
		if stack := load.stack.Swap(nil); stack != nil {
			log = log.Bytes("stack", *stack)
		}
	}
	if own > MaxRestarts || onWork > maxPoisoned {
		log.Msg("actor keeps failing, given up")
		parent.StopChildren(child)
		s.gaveUp(child, reason)
		return
	}
	log.Msg("actor failed, restarting")
	if load != nil {
		load.restarts.Add(1)
	}
	if own <= 1 || poisoned {
		parent.RestartChildren(child)
		return
	}
	time.AfterFunc(backoff(own), func() { parent.RestartChildren(child) })
}

// note records a failure and returns how many of both kinds there were within the window.
func (s *Supervisor) note(id string, poisoned bool) (own, onWork int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.failures[id]
	if f == nil {
		f = new(failures)
		s.failures[id] = f
	}
	at := now()
	old := func(t time.Time) bool { return at.Sub(t) >= restartWindow }
	f.own, f.poisoned = slices.DeleteFunc(f.own, old), slices.DeleteFunc(f.poisoned, old)
	if poisoned {
		f.poisoned = append(f.poisoned, at)
	} else {
		f.own = append(f.own, at)
	}
	return len(f.own), len(f.poisoned)
}

// Forget drops the record of a child that is gone.
func (s *Supervisor) Forget(id string) {
	s.mu.Lock()
	delete(s.failures, id)
	s.mu.Unlock()
}

// backoff before restart n (from 2): doubling, capped, with up to a quarter of jitter.
func backoff(n int) time.Duration {
	d := min(firstBackoff<<(n-2), maxBackoff)
	return d + rand.N(d/4)
}
