package actors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/trace"
)

// TestDelays: what held a step up splits the device's wait for it without a gap, whatever happened before the wait.
func TestDelays(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(1000, int64(n)) }
	lacks := func(l ...lack) (d delays) {
		for _, x := range l {
			d.add(x.cause, x.since)
		}
		return d
	}
	for name, test := range map[string]struct {
		delays  delays
		sampled int
		planned int
		want    [trace.Causes]time.Duration // of a wait from 100 to 200
	}{
		"sampler, then scheduler": {delays{}, 150, 180, [trace.Causes]time.Duration{trace.Sampler: 50, trace.Scheduler: 50}},
		"nothing known":           {delays{}, 0, 180, [trace.Causes]time.Duration{trace.Scheduler: 100}},
		"planned before":          {delays{}, 80, 90, [trace.Causes]time.Duration{trace.Scheduler: 100}},
		"kv": {lacks(lack{trace.KV, at(120)}), 110, 190,
			[trace.Causes]time.Duration{trace.Sampler: 10, trace.Scheduler: 20, trace.KV: 70}},
		"no work, kv": {lacks(lack{trace.NoWork, at(30)}, lack{trace.KV, at(170)}), 20, 190,
			[trace.Causes]time.Duration{trace.NoWork: 70, trace.KV: 20, trace.Scheduler: 10}},
		"credit": {lacks(lack{trace.Credit, at(105)}), 101, 199,
			[trace.Causes]time.Duration{trace.Sampler: 1, trace.Scheduler: 5, trace.Credit: 94}},
	} {
		t.Run(name, func(t *testing.T) {
			w := trace.New(16, at(0)).Track("device").Waits()
			w.Begin(at(100), trace.Unknown, trace.Nothing())
			if test.sampled > 0 {
				test.delays.sampled = at(test.sampled)
			}
			test.delays.explain(w, at(test.planned), at(200))
			w.End(at(200))
			got, since, _ := w.Total()
			require.Negative(t, since)
			require.Equal(t, test.want, got)
		})
	}
}

// TestDelaysMove: a step has what delayed it, and nothing of what delayed the one before it in the ring; the next one
// has none of it.
func TestDelaysMove(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(1000, int64(n)) }
	var next, step delays
	for n := range 3 {
		step.add(trace.KV, at(n))
	}
	next.begin(at(4))
	next.add(trace.Mask, at(5))
	next.move(&step)
	require.Equal(t, at(4), step.sampled)
	require.Equal(t, []lack{{trace.Mask, at(5)}}, step.lacks[:step.count])
	require.Equal(t, trace.Unknown, next.last())
	require.Zero(t, next.sampled)
	next.begin(at(6))
	next.move(&step)
	require.Equal(t, at(6), step.sampled)
	require.Equal(t, trace.Unknown, step.last())
}

// TestManyLacks: when there are too many to tell apart, none is lost but their names.
func TestManyLacks(t *testing.T) {
	var d delays
	for n := range 20 {
		d.add(trace.Cause(n%2)+trace.NoWork, time.Unix(0, int64(n)))
	}
	require.Equal(t, len(d.lacks), d.count)
	require.Equal(t, d.lacks[7].cause, d.last())
}

// TestIdle: all that the device did since it had its weights is computing or waiting, and every wait has a cause. Where
// it says itself when segments ran, it waits between these, too.
func TestIdle(t *testing.T) {
	e := startFixture(t, fixture, nil)
	tap := e.house.system.Spans().Tap()
	noWork := func() bool { return trace.Cause(e.stats.lacking.Load()) == trace.NoWork } // it knows that it may begin
	require.Eventually(t, noWork, patient, time.Millisecond)
	collect(t, begin(t, e, plain([]int32{5, 6, 7}, 30)))
	require.NoError(t, e.house.system.Stop(e.at("scheduler")))
	var at time.Duration
	seen := map[trace.Cause]int{}
	steps, timed := 0, e.house.device.Traits().Clock
	for _, s := range tap.Drain(nil) {
		if s.Track != "house/device/compute" {
			continue
		}
		step := s.Kind == trace.Prefill || s.Kind == trace.Decode
		switch {
		case step:
			steps++
		case s.Kind == trace.Idle:
			seen[s.Cause]++
		}
		if s.Kind == trace.Idle || step != timed {
			require.True(t, at == 0 || at == s.At, "%+v follows at once, at %v", s, at)
			at = s.End()
		}
	}
	require.Equal(t, 30, steps)
	require.Zero(t, seen[trace.Unknown])
	require.NotZero(t, seen[trace.NoWork])
	if timed {
		require.GreaterOrEqual(t, seen[trace.Launch], 30)
	} else {
		require.Equal(t, 29, seen[trace.Sampler])
		require.NotZero(t, seen[trace.KV])
	}
	idle := e.house.DeviceTime().Idle
	require.Positive(t, idle[trace.Loading])
	require.Zero(t, idle[trace.Unknown])
	require.GreaterOrEqual(t, e.house.DeviceTime().Idle[trace.NoWork], idle[trace.NoWork])
}
