//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memberChaos in the environment is how long TestMemberChaos takes.
const memberChaos = "SLUICE_MEMBER_CHAOS"

const (
	chaosClients = 40
	chaosEvery   = 5 * time.Second // at most; a shorter run has more of them
	// chaosOut is for how long a member is cut off or frozen: longer than others wait for it.
	chaosOut = 2500 * time.Millisecond
)

// chaos is a cluster whose members are disturbed, under clients.
type chaos struct {
	*machines
	join                              []string
	want                              []*streamed
	events, streams, anew, goneOn, by atomic.Int64
	done                              map[string]int

	mu      sync.Mutex
	longest time.Duration // between two events of a stream whose client's server is well
	during  string        // what had been done last
	doing   string
}

// chaotic is a request of a client, whose prompt is its own.
func chaotic(client int) *streamed {
	all := routed()
	s := all[client%len(all)]
	s.id = fmt.Sprintf("chaos-%d", client)
	s.body = strings.ReplaceAll(s.body, "sea", fmt.Sprintf("sea number %d", client))
	return s
}

// read has one client read one stream to its end, from a member that takes it. Only who was asked may be lost, by a
// kill: then another one is asked anew. Any other fault is one that a client sees.
func (c *chaos) read(client, round int) (s *streamed, err error) {
	for turn := client + round; ; turn++ {
		x := c.all[turn%len(c.all)]
		deaths, unwell := x.deaths.Load(), x.unwell.Load()
		s = chaotic(client)
		last, frozen := time.Now(), x.frozen.Load()
		err = s.read(x.url, "k", func() {
			c.events.Add(1)
			if now := x.frozen.Load(); now != frozen {
				last, frozen = time.Now(), now
			}
			c.paused(time.Since(last))
			last = time.Now()
		})
		refused := err != nil && len(s.events) == 0 && (unwell || x.unwell.Load())
		switch {
		case err == nil:
			if s.by != "" {
				c.by.Add(1)
			}
			return s, nil
		case refused:
			time.Sleep(20 * time.Millisecond) // as a balancer does, until somebody takes it
		case x.deaths.Load() != deaths:
			c.anew.Add(1)
		default:
			return s, fmt.Errorf("%s by %s, event %d: %w", s.path, x.url, len(s.events), err)
		}
	}
}

// paused notes how long a stream had no event.
func (c *chaos) paused(long time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if long > c.longest {
		c.longest, c.during = long, c.doing
	}
}

// disturb does something to a member, and has all be well again.
func (c *chaos) disturb(t *testing.T, random *rand.Rand, nth int) {
	x := c.all[random.IntN(len(c.all))]
	what := []string{"kill", "cut", "restart", "freeze", "kill", "cut"}[nth%6]
	c.done[what]++
	c.mu.Lock()
	c.doing = what
	c.mu.Unlock()
	switch what {
	case "kill":
		x.unwell.Store(true)
		x.deaths.Add(1)
		kill(x.c, syscall.SIGKILL)
		c.gone(x)
		x.start(t, c.join...)
		x.unwell.Store(false)
	case "cut":
		x.cable.cut.Store(true)
		time.Sleep(chaosOut)
		x.cable.cut.Store(false)
	case "freeze":
		x.frozen.Add(1)
		require.NoError(t, x.c.Process.Signal(syscall.SIGSTOP))
		time.Sleep(chaosOut)
		require.NoError(t, x.c.Process.Signal(syscall.SIGCONT))
	case "restart":
		x.unwell.Store(true)
		require.NoError(t, x.c.Process.Signal(syscall.SIGTERM))
		require.NoError(t, x.c.Wait(), "%s", x.stderr)
		c.gone(x)
		x.start(t, c.join...)
		x.unwell.Store(false)
	}
	c.meet(t)
}

// gone counts what a member that ends has said of streams that it went on with.
func (c *chaos) gone(x *machine) {
	said := x.stderr.String()
	c.goneOn.Add(int64(strings.Count(said, "goes on with an answer") + strings.Count(said, "an answer goes on here")))
}

// Forty clients read streams from three machines while members are killed, cut off, frozen, restarted and join again:
// each stream is that of a cluster that nobody disturbs, whoever computed it, and no client sees a fault but the end of
// the very server that it asked. Ten seconds long, or SLUICE_MEMBER_CHAOS.
func TestMemberChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("members are killed and cut off every few seconds")
	}
	total, err := time.ParseDuration(cmp.Or(os.Getenv(memberChaos), "10s"))
	require.NoError(t, err)
	c := &chaos{machines: newMachines(t), done: map[string]int{}}
	for _, x := range c.all {
		c.join = append(c.join, x.at)
	}
	for _, x := range c.all {
		x.start(t, c.join...)
	}
	c.meet(t)
	c.want = make([]*streamed, chaosClients)
	var clients sync.WaitGroup
	for client := range c.want {
		clients.Go(func() {
			var err error
			c.want[client], err = c.read(client, 0)
			assert.NoError(t, err)
		})
	}
	clients.Wait()
	require.False(t, t.Failed())
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	end := time.Now().Add(total)
	for client := range c.want {
		clients.Go(func() {
			for round := 1; time.Now().Before(end) && !t.Failed(); round++ {
				s, err := c.read(client, round)
				if assert.NoError(t, err, "client %d, round %d", client, round) {
					assert.Equal(t, ordered(c.want[client]), ordered(s), "client %d, round %d: %s", client, round, s.path)
				}
				c.streams.Add(1)
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 0))
	for nth := 0; time.Now().Before(end) && !t.Failed(); nth++ {
		time.Sleep(min(chaosEvery, total/20))
		c.disturb(t, random, nth)
	}
	clients.Wait()
	for _, x := range c.all {
		c.gone(x)
	}
	t.Logf("%v: %v; %d streams, %d of them by another member, %d events, are those of a cluster that was left alone; %d "+
		"went on elsewhere, %d were asked for anew as their server was killed; the longest pause was %v, in a %s", total, c.done,
		c.streams.Load(), c.by.Load(), c.events.Load(), c.goneOn.Load(), c.anew.Load(), c.longest, c.during)
	require.Positive(t, c.goneOn.Load())
	if !t.Failed() {
		c.stop(t)
	}
}
