package main

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server"
)

// looks are two looks at a server, two seconds apart.
func looks() *topView {
	look := func(n uint64) *server.Inside {
		x := float64(n)
		return &server.Inside{
			UptimeSeconds: 60 + x,
			Models: []server.ModelInside{{
				Name: "small", Running: 3, Waiting: 1, GeneratedTokens: 100 * n, PromptTokens: 7 * n, Steps: 50 * n,
				Rows: 150 * n, FirstTokens: 2 * n, FirstToken: 0.5 * x, Gaps: 98 * n, Between: 0.98 * x,
				BlocksUsed: 5, BlocksCached: 6, BlocksFree: 7,
				Actors: []server.ActorInside{
					{ID: "house/model/small", Messages: n},
					{ID: "house/model/small/scheduler", Messages: 60 * n, Busy: 0.1 * x, Wait: 0.06 * x, Mailbox: 2},
					{ID: "house/model/small/sessions/8", Messages: 30 * n, Busy: 0.02 * x, Mailbox: 1},
					{ID: "house/model/small/sessions/9", Messages: 40 * n, Busy: 0.03 * x, Mailbox: 4},
				},
				Credits: []server.CreditsInside{{From: "facade", To: "model", Carries: "open", Held: 4, Limit: 256}},
			}},
			Device: server.DeviceInside{ID: "house/device", Uptime: x, Computing: 0.75 * x,
				Idle: map[string]float64{"sampler": 0.15 * x, "no_work": 0.1 * x, "kv": 0}},
			Actors:  []server.ActorInside{{ID: "house/device", Messages: 50 * n, Busy: 0.9 * x, Restarts: 1}},
			Credits: []server.CreditsInside{{From: "scheduler", To: "device", Carries: "step", Held: 1, Limit: 1}},
		}
	}
	return &topView{addr: "127.0.0.1:8080", before: look(2), now: look(4)}
}

// TestTopViewStreams: of a model whose weights come and go, how many bytes come, and how many experts are found.
func TestTopViewStreams(t *testing.T) {
	v := looks()
	for n, look := range map[uint64]*server.Inside{2: v.before, 4: v.now} {
		m := &look.Models[0]
		m.StreamedBytes, m.ExpertsFound, m.ExpertsMissed = 50e6*n, 70*n, 30*n
	}
	require.Contains(t, strings.Join(v.lines(200, 40), "\n"), "50.0 MB/s streamed · experts 70.0 % found")
}

func TestTopView(t *testing.T) {
	require.Equal(t, `sluice top  127.0.0.1:8080  up 1m4s
small
  sequences 3 running, 1 waiting · 100.0 tokens/s · prompts 7.0 tokens/s
  50.0 steps/s · 3.0 rows a step · first token 250.0 ms · between tokens 10.0 ms
  KV blocks 5 used, 6 cached, 7 free

house/device
  computing     75.0 %  █████████████████████████████████████████
  sampler       15.0 %  ████████
  no work       10.0 %  █████

actor                          mailbox   busy     wait   msgs/s        credits
house/device                         0   90 %        -     50.0       step 1/1
house/model/small                    0    0 %        -      1.0     open 4/256
house/model/small/scheduler          2   10 %   1.0 ms     60.0
house/model/small/sessions/*         5    5 %        -     70.0      2 of them`,
		strings.Join(looks().lines(80, 40), "\n"))
	for _, columns := range []int{20, 40, 80, 119, 120, 200} {
		view := looks()
		view.silent = errors.New(strings.Repeat("x", 300))
		for _, line := range view.lines(columns, 10) {
			require.LessOrEqual(t, utf8.RuneCountInString(line), columns, line)
		}
		require.Len(t, view.lines(columns, 10), 10)
	}
	named := looks()
	named.now.Models[0].Actors[1].ID = "house/model/Sluice%20Mini%1b/scheduler"
	require.Contains(t, strings.Join(named.lines(200, 40), "\n"), `house/model/Sluice Mini\x1b/scheduler `)
	wide := strings.Join(looks().lines(200, 40), "\n")
	require.Contains(t, wide, "restarts")
	require.NotContains(t, wide, "…")
}

// TestTopRestarted: a server that counts from 0 again is no rate below 0.
func TestTopRestarted(t *testing.T) {
	view, again := looks(), looks()
	again.before.UptimeSeconds = 3
	view.took(again.before, nil)
	require.Contains(t, strings.Join(view.lines(80, 40), "\n"), " 0.0 tokens/s")
	view.took(nil, errors.New("connection refused"))
	require.Contains(t, view.lines(80, 40)[1], "no answer, what follows is old: connection refused")
}

// TestTopLoadedAgain: a model that left and came back between two looks has counted from 0 since.
func TestTopLoadedAgain(t *testing.T) {
	v := looks()
	for up, look := range map[float64]*server.Inside{100: v.before, 1: v.now} {
		m := &look.Models[0]
		m.Device = server.DeviceInside{ID: "house/device", Uptime: up, Computing: up / 2}
		m.ExpertsFound, m.ExpertsMissed = uint64(7*up), uint64(3*up)
	}
	v.now.Models[0].Rows, v.now.Models[0].Steps = 8, 4
	require.Contains(t, strings.Join(v.lines(200, 40), "\n"), "2.0 rows a step")
	require.Contains(t, strings.Join(v.lines(200, 40), "\n"), "experts 70.0 % found")
}

// TestTopOnce: without a terminal it prints one interval, and no escape sequence.
func TestTopOnce(t *testing.T) {
	s := serve(t)
	o := sluice("", "top", "--addr", s.url[len("http://"):])
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "house/device")
	require.Contains(t, o.stdout, "no work      1")
	require.NotContains(t, o.stdout, "\x1b")
	o = sluice("", "top", "--addr", "127.0.0.1:1")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "start one with sluice serve")
	require.Equal(t, exitUsage, sluice("", "top", "--every", "0").code)
}

// TestTopScreen: on a terminal it has a screen of its own, is drawn anew when that changes its size, and leaves the
// terminal as it was.
func TestTopScreen(t *testing.T) {
	s := serve(t)
	for _, plain := range []string{"", "1"} {
		e := testEnv("", "top", "--addr", s.url[len("http://"):])
		screen, keys := &waitedBuffer{}, &keyboard{}
		var width atomic.Int64
		width.Store(80)
		e.stdout, e.interruptible = screen, keys.interruptible
		e.isTerminal = func(any) bool { return true }
		e.columns = func(any) int { return int(width.Load()) }
		e.lookup = func(name string) (string, bool) {
			return map[string]string{"TERM": "xterm", "NO_COLOR": plain}[name], true
		}
		code := make(chan int, 1)
		go func() { code <- run(e) }()
		draws := func(n int) {
			require.Eventually(t, func() bool { return strings.Count(screen.String(), home) >= n },
				10*time.Second, time.Millisecond)
		}
		draws(1)
		width.Store(130)
		draws(2)
		keys.ctrlC()
		require.Zero(t, <-code, "%s", e.stderr)
		text := screen.String()
		require.True(t, strings.HasPrefix(text, enterScreen+home))
		require.True(t, strings.HasSuffix(text, leaveScreen))
		require.Equal(t, plain == "", strings.Contains(text, dim))
		require.Contains(t, text, "restarts", "at 130 columns")
	}
}
