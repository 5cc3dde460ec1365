package report

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

// stalled is a prompt and two tokens, the second of which waits for an expert of layer 1.
func stalled() *stall.Account {
	const ms = time.Millisecond
	span := func(kind trace.Kind, step uint64, layer int, from, to time.Duration) trace.Span {
		return trace.Span{Track: "house/device/compute", Kind: kind, At: from, Work: to - from,
			Of: trace.Of{Step: step, Segment: -1, Layer: layer, Group: -1}}
	}
	idle := func(cause trace.Cause, layer int, from, to time.Duration) trace.Span {
		s := span(trace.Idle, 0, layer, from, to)
		s.Cause = cause
		return s
	}
	a := stall.Of("house/device/compute", []trace.Span{
		idle(trace.NoWork, -1, 0, 2000*ms),
		span(trace.Mix, 1, 0, 2000*ms, 2300*ms), span(trace.Experts, 1, 1, 2300*ms, 2500*ms),
		span(trace.Prefill, 1, -1, 2000*ms, 2500*ms),
		idle(trace.Sampler, -1, 2500*ms, 2501*ms),
		span(trace.Mix, 2, 0, 2501*ms, 2510*ms), span(trace.Experts, 2, 1, 2510*ms, 2520*ms),
		span(trace.Decode, 2, -1, 2501*ms, 2520*ms),
		idle(trace.Sampler, -1, 2520*ms, 2524*ms), idle(trace.Scheduler, -1, 2524*ms, 2525*ms),
		span(trace.Mix, 3, 0, 2525*ms, 2535*ms), idle(trace.Expert, 1, 2535*ms, 2555*ms),
		span(trace.Experts, 3, 1, 2555*ms, 2560*ms), span(trace.Decode, 3, -1, 2525*ms, 2560*ms),
	})
	return &a
}

// TestStallText compares with a text that was read.
func TestStallText(t *testing.T) {
	require.Equal(t, `house/device/compute: 2.560 s, 3 steps, idle time explained to 100.00 %

  computing       534.00 ms  20.86 %  █████
  no work           2.000 s  78.12 %  ███████████████████
  expert           20.00 ms   0.78 %
  sampler           5.00 ms   0.20 %
  scheduler         1.00 ms   0.04 %

  kind         steps   computing        idle  waited for, before and in them
  prefill          1   500.00 ms     2.000 s  no work 2.000 s
  decode           2    34.00 ms    26.00 ms  expert 20.00 ms, sampler 5.00 ms, scheduler 1.00 ms

  layer                computing        idle  waited for
  1                    215.00 ms    20.00 ms  expert 20.00 ms

  step 3, decode, at 2.520 s: 40.00 ms, held up for 25.00 ms
  ssssssc██████████████xxxxxxxxxxxxxxxxxxxxxxxxxxxx███████
  █ computing  x expert  s sampler  c scheduler
  waited for expert 20.00 ms in layer 1, sampler 4.00 ms, scheduler 1.00 ms

  step 2, decode, at 2.500 s: 20.00 ms, held up for 1.00 ms
  sss█████████████████████████████████████████████████████
  █ computing  s sampler
  waited for sampler 1.00 ms
`, StallText(stalled(), 60))
	for _, columns := range []int{10, 80, 200} {
		for line := range strings.Lines(StallText(stalled(), columns)) {
			if strings.ContainsRune(line, '█') && !strings.Contains(line, "computing") {
				require.LessOrEqual(t, utf8.RuneCountInString(line), max(columns, 15), line)
			}
		}
	}
}

// TestLetters: every cause has a letter of its own.
func TestLetters(t *testing.T) {
	require.Len(t, letters, int(trace.Causes))
	seen := map[rune]bool{}
	for _, r := range letters {
		require.False(t, seen[r], "%c", r)
		seen[r] = true
	}
}

// TestStallsOf: names and numbers as data, none lost on the way.
func TestStallsOf(t *testing.T) {
	text, err := json.Marshal(StallsOf(stalled()))
	require.NoError(t, err)
	var got struct {
		Device    string
		Explained float64
		Computing float64            `json:"computing_seconds"`
		Idle      map[string]float64 `json:"idle_seconds"`
		Kinds     []struct {
			Kind  string
			Steps int
		}
		Worst []struct {
			Step   int
			Pieces []struct {
				What, Cause string
				Layer       int
			}
		}
	}
	require.NoError(t, json.Unmarshal(text, &got))
	require.Equal(t, "house/device/compute", got.Device)
	require.Equal(t, map[string]float64{"no_work": 2, "expert": 0.02, "sampler": 0.005, "scheduler": 0.001}, got.Idle)
	require.InDelta(t, 0.534, got.Computing, 1e-9)
	require.Equal(t, 2, got.Kinds[1].Steps)
	require.Equal(t, 3, got.Worst[0].Step)
	require.Equal(t, "expert", got.Worst[0].Pieces[3].Cause)
	require.Equal(t, "experts", got.Worst[0].Pieces[4].What)
	require.Equal(t, 1, got.Worst[0].Pieces[4].Layer)
}
