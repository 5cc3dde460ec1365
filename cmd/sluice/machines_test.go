//go:build linux

package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// machine is a member of a cluster on a machine of its own, with a cable for members and one for clients.
type machine struct {
	name   string
	at     string // for members
	url    string
	cable  *cable
	c      *exec.Cmd
	stderr *waitedBuffer
	unwell atomic.Bool  // it is to be stopped, or is down: clients may be refused
	deaths atomic.Int64 // by a kill
	frozen atomic.Int64 // how often
	flags  []string
}

// machines are three of them, and this one, which has clients and registries.
type machines struct {
	all  []*machine
	here string // address for members
}

// newMachines makes namespaces and cables, and starts nobody. Each run has networks of its own, of those that are meant
// for measurements (RFC 2544).
func newMachines(t *testing.T) *machines {
	t.Helper()
	folder := passes(t, "a", "b", "c")
	members, clients := &cables{}, &cables{}
	at := func(network, host int) string { return fmt.Sprintf("198.%d.%d.%d", network, os.Getpid()%250, host) }
	m := &machines{here: at(18, 254)}
	for i, name := range []string{"a", "b", "c"} {
		x := &machine{name: fmt.Sprintf("sluice-%d-%s", os.Getpid(), name), at: at(18, i+1) + ":7777",
			url: "http://" + at(19, i+1) + ":8080"}
		newMachine(t, x.name)
		x.cable = members.plug(t, x.name, at(18, i+1)+"/24")
		clients.plug(t, x.name, at(19, i+1)+"/24")
		x.flags = []string{"--addr", at(19, i+1) + ":8080", "--cluster", "home", "--pass", filepath.Join(folder, name+".pem"),
			"--member-addr", x.at, "--name", "m", "--log", "info"}
		m.all = append(m.all, x)
	}
	members.plug(t, "", at(18, 254)+"/24")
	clients.plug(t, "", at(19, 254)+"/24")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return m
}

// start starts a member, who finds the others by what join says.
func (m *machine) start(t *testing.T, join ...string) {
	t.Helper()
	flags := m.flags
	for _, word := range join {
		flags = append(flags[:len(flags):len(flags)], "--join", word)
	}
	_, m.c, m.stderr = startOn(t, m.name, flags...)
}

// meet waits until each member hears both others.
func (m *machines) meet(t *testing.T) {
	t.Helper()
	for i, want := range []string{"bc", "ac", "ab"} {
		require.Eventually(t, func() bool { return members(t, m.all[i].url) == want }, time.Minute, 20*time.Millisecond, want)
	}
}

func (m *machines) stop(t *testing.T) {
	t.Helper()
	for _, x := range m.all {
		require.NoError(t, x.c.Process.Signal(syscall.SIGTERM))
	}
	for _, x := range m.all {
		require.NoError(t, x.c.Wait(), "%s", x.stderr)
	}
}

// routed are requests of every dialect that streams. They name the model, so that the member that is asked looks who is
// to answer it.
func routed() []*streamed {
	all := streamedAnswers()
	for _, s := range all {
		s.body = strings.Replace(s.body, `"Sluice-Mini-Dense"`, `"m"`, 1)
		if !strings.Contains(s.body, `"model"`) {
			s.body = strings.Replace(s.body, "{", `{"model":"m",`, 1)
		}
		s.id = "routed-" + s.id
	}
	return all
}

// ordered is what a client has of a stream, choice by choice: how events of several take turns is not said.
func ordered(s *streamed) string {
	events := slices.Clone(s.events)
	if slices.ContainsFunc(events, func(e string) bool { return index.FindString(e) == `"index":1` }) {
		slices.SortStableFunc(events, func(a, b string) int {
			return strings.Compare(index.FindString(a), index.FindString(b))
		})
	}
	return unnamed(&streamed{id: s.id, events: events})
}

// Three machines with a millisecond and a gigabit a second between them, played by cables of the test: members find
// each other by a list and by a real etcd, and a request of any dialect has one answer, whoever is asked.
func TestMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("nine servers, and etcd")
	}
	m := newMachines(t)
	want := routed()
	var events atomic.Int64
	passed := 0
	for way, join := range map[string]string{"list": m.all[0].at, "etcd": "etcd://" + m.here + ":2379"} {
		if way == "etcd" {
			startEtcd(t, m.here)
		}
		for _, x := range m.all {
			x.start(t, join)
		}
		began := time.Now()
		c, err := net.Dial("tcp", m.all[0].at)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), 2*cableDelay, "there and back")
		require.NoError(t, c.Close())
		m.meet(t)
		for _, x := range m.all {
			got := routed()
			readAll(t, got, &events, func() string { return x.url })
			for i := range got {
				if len(want[i].events) == 0 {
					want[i] = got[i]
				}
				if got[i].by != "" {
					passed++
				}
				require.Equal(t, ordered(want[i]), ordered(got[i]), "%s: %s at %s", way, got[i].path, x.url)
			}
		}
		m.stop(t)
	}
	require.Positive(t, passed)
	t.Logf("%d events of %d answers, %d of them by another member", events.Load(), 6*len(want), passed)
}

// startEtcd starts a server of etcd on an address of this machine.
func startEtcd(t *testing.T, host string) {
	t.Helper()
	at := "http://" + host + ":2379"
	c := exec.Command(testref.Tool(t, "etcd-server", "etcd"), "--data-dir", t.TempDir(), "--listen-client-urls", at,
		"--advertise-client-urls", at, "--listen-peer-urls", "http://"+host+":0", "--log-level", "error")
	require.NoError(t, c.Start())
	t.Cleanup(func() { kill(c, syscall.SIGKILL) })
}
