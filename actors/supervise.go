package actors

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

const (
	maxRestarts   = 8           // failures within restartWindow before supervision gives up
	restartWindow = time.Minute // a quieter actor starts afresh
	firstBackoff  = 10 * time.Millisecond
	maxBackoff    = 2 * time.Second
)

// supervisor restarts a failed child: at once the first time, then after a doubling pause with jitter. A child
// that keeps failing is given up. It implements actor.SupervisorStrategy.
type supervisor struct {
	tree   *tree
	gaveUp func(child *actor.PID, reason any)

	mu       sync.Mutex
	failures map[string][]time.Time
}

func (t *tree) supervisor(gaveUp func(child *actor.PID, reason any)) *supervisor {
	return &supervisor{tree: t, gaveUp: gaveUp, failures: make(map[string][]time.Time)}
}

// HandleFailure implements actor.SupervisorStrategy.
func (s *supervisor) HandleFailure(_ *actor.ActorSystem, parent actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, reason, message any) {
	n := s.note(child.Id)
	log := s.tree.log.Error().Str("actor", child.Id).Str("message", fmt.Sprintf("%T", message)).
		Str("reason", fmt.Sprint(reason)).Int("failures", n)
	if n > maxRestarts {
		log.Msg("actor keeps failing, given up")
		parent.StopChildren(child)
		s.gaveUp(child, reason)
		return
	}
	log.Msg("actor failed, restarting")
	if load := s.tree.load(child.Id); load != nil {
		load.restarts.Add(1)
	}
	if n == 1 {
		parent.RestartChildren(child)
		return
	}
	time.AfterFunc(backoff(n), func() { parent.RestartChildren(child) })
}

// note records a failure and returns how many there were within the window.
func (s *supervisor) note(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := now()
	kept := s.failures[id][:0]
	for _, f := range s.failures[id] {
		if at.Sub(f) < restartWindow {
			kept = append(kept, f)
		}
	}
	s.failures[id] = append(kept, at)
	return len(s.failures[id])
}

// forget drops the record of a child that is gone.
func (s *supervisor) forget(id string) {
	s.mu.Lock()
	delete(s.failures, id)
	s.mu.Unlock()
}

// backoff before restart n (from 2): doubling, capped, with up to a quarter of jitter.
func backoff(n int) time.Duration {
	d := min(firstBackoff<<(n-2), maxBackoff)
	return d + rand.N(d/4)
}
