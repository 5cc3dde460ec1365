//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// killsTime is the variable that says how long TestKilledEveryFewSeconds goes on, such as 10m.
const killsTime = "SLUICE_KILLS"

const (
	killedClients = 40
	killedEvery   = 2 * time.Second
	// killedPatience is how long a client may have no event: where a machine is busy, a server that has two seconds
	// answers few of them, and not the same number of times each.
	killedPatience = 10 * patient
)

// killedAnswer is a request of a client, one of every dialect that streams, with a prompt of its own.
func killedAnswer(client, round int) *streamed {
	all := streamedAnswers()
	s := all[client%len(all)]
	s.id = fmt.Sprintf("kills-%d-%d", client, round)
	s.body = strings.ReplaceAll(s.body, "sea", fmt.Sprintf("sea number %d", client))
	return s
}

// unnamed is what a client has of its stream, with a name of the request that is the same for all.
func unnamed(s *streamed) string { return strings.ReplaceAll(timeless(s.events), s.id, "ID") }

// Forty clients read one stream after the other from a server that is killed every two seconds, and come back to the
// next one with the id of the last event that they have: each stream is, by bytes, that of a server which nobody
// disturbed. Seven seconds long, or SLUICE_KILLS.
func TestKilledEveryFewSeconds(t *testing.T) {
	if testing.Short() {
		t.Skip("a server is killed every two seconds")
	}
	long := 7 * time.Second
	if text := os.Getenv(killsTime); text != "" {
		var err error
		long, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	var events, streams, kills atomic.Int64
	var now atomic.Pointer[string]
	start := func(state string) *exec.Cmd {
		url, server := startKept(t, "--state", state)
		now.Store(&url)
		return server
	}
	server, want := start(t.TempDir()), make([]*streamed, killedClients)
	for client := range want {
		want[client] = killedAnswer(client, 0)
	}
	here := func() string { return *now.Load() }
	readAll(t, want, &events, here)
	kill(server, syscall.SIGKILL)

	state, end := t.TempDir(), time.Now().Add(long)
	server = start(state)
	var clients sync.WaitGroup
	for client := range want {
		clients.Go(func() {
			for round := 0; time.Now().Before(end) && !t.Failed(); round++ {
				s := killedAnswer(client, round)
				err := readPatiently(s, &events, here)
				if assert.True(t, s.whole && len(s.events) > 0, "client %d, round %d: %s: %v", client, round, s.path, err) {
					assert.Equal(t, unnamed(want[client]), unnamed(s), "client %d, round %d: %s", client, round, s.path)
				}
				streams.Add(1)
			}
		})
	}
	ended := make(chan struct{})
	go func() { clients.Wait(); close(ended) }()
	for more := true; more; {
		select {
		case <-ended:
			more = false
		case <-time.After(killedEvery):
			kill(server, syscall.SIGKILL)
			kills.Add(1)
			server = start(state)
		}
	}
	kill(server, syscall.SIGKILL)
	require.Positive(t, kills.Load())
	t.Logf("%d servers were killed; %d streams, %d events, are those of a server that was not", kills.Load(), streams.Load(),
		events.Load())
}

// readPatiently reads an answer to its end over as many connections as it takes, unless nothing comes for long: on a
// busy machine servers take seconds to start. The error is why the last connection ended.
func readPatiently(s *streamed, events *atomic.Int64, here func() string) (err error) {
	for last := time.Now(); !s.whole && time.Since(last) < killedPatience; {
		err = s.read(here(), "k", func() {
			last = time.Now()
			events.Add(1)
		})
		if err != nil && strings.Contains(err.Error(), ": 4") {
			return err
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	return err
}
