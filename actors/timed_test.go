package actors

import (
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/trace"
)

// TestGaps: what a device waited for before a segment is told apart by when it was asked for, when the copies that it
// needs had come, and what the step waited for until then.
func TestGaps(t *testing.T) {
	at := func(n int) time.Time { return time.Unix(1000, int64(n)) }
	ring := trace.New(64, at(0))
	track := ring.Track("device")
	x := &timed{idle: track.Waits(), held: trace.Aside()}
	g := &guest{stats: &stats{spans: track}, spec: &spec{bound: &ir.Bound{Program: &ir.Program{Segments: []ir.Segment{
		{Kind: ir.SegEmbed, Layer: -1}, {Kind: ir.SegMix, Layer: 0}, {Kind: ir.SegFFN, Layer: 0},
	}}}}}
	x.begin(at(100))
	x.held.Begin(at(150), trace.Reader, trace.Nothing())
	x.held.Until(at(160), trace.Slabs)
	x.held.End(at(170))
	x.held.Begin(at(180), trace.Expert, trace.Nothing()) // while the device computes
	x.held.End(at(300))
	m := &step{number: 7, ran: []backend.Ran{
		{Segment: 0, Group: -1, Asked: at(110), Began: at(115), Ended: at(120)},
		{Segment: 1, Group: -1, Asked: at(110), Began: at(120), Ended: at(140)},
		{Segment: 2, Group: 4, Asked: at(175), Landed: at(180), Began: at(185), Ended: at(290)},
		{Segment: 2, Group: 5, Asked: at(310), Landed: at(305), Began: at(312), Ended: at(320)},
		{Segment: 2, Group: -1, Asked: at(320), Landed: at(350), Began: at(330), Ended: at(340)},
	}}
	from, to, took := x.step(g, m)
	require.Equal(t, at(100), from)
	require.Equal(t, at(340), to)
	require.EqualValues(t, 148, took)
	var gaps []string
	var in [trace.Causes]time.Duration
	end := at(100)
	for _, s := range ring.Snapshot(nil) {
		require.Equal(t, end, at(int(s.At)), "no time is lost, none is told twice")
		end = at(int(s.End()))
		if s.Kind == trace.Idle {
			gaps = append(gaps, s.Cause.String()+" "+s.Work.String())
			in[s.Cause] += s.Work
		}
	}
	require.Equal(t, at(340), end)
	require.Equal(t, []string{"host 10ns", "launch 5ns", "host 10ns", "pool 10ns", "reader 10ns", "host 5ns", "uploader 5ns",
		"launch 5ns", "expert 10ns", "host 10ns", "launch 2ns", "uploader 10ns"}, gaps)
	require.Equal(t, in, m.times.gaps)
	require.Equal(t, [ir.SegmentKinds]time.Duration{ir.SegEmbed: 5, ir.SegMix: 20, ir.SegFFN: 123}, m.times.segments)
	require.Empty(t, x.held.Kept())
	totals, _, _ := x.idle.Total()
	require.Equal(t, in, totals)
}

// TestTimedDevice: a device that says itself when segments ran, with steps in flight or one at a time: its idle time is
// explained, whatever takes long is named first, and no wait lies over what it computed.
func TestTimedDevice(t *testing.T) {
	for _, test := range []struct {
		name          string
		flight        int
		draws         bool
		launch, sight time.Duration
		cause         trace.Cause
	}{
		{"launch", 3, true, time.Millisecond, 0, trace.Launch},
		{"one at a time", 1, false, time.Millisecond, 0, trace.Launch},
		{"seen late", 1, false, 0, 3 * time.Millisecond, trace.Host},
	} {
		t.Run(test.name, func(t *testing.T) {
			launch, sight := test.launch, test.sight
			for range 5 { // what takes long depends on what else the machine has to do
				first := timedAnswer(t, &beside{flight: test.flight, draws: test.draws, times: true,
					pause: 200 * time.Microsecond, launch: launch, sight: sight}, test.cause)
				if first == test.cause {
					return
				}
				t.Logf("with %v and %v it is %v", launch, sight, first)
				launch, sight = 2*launch, 2*sight
			}
			t.Error("it is not named")
		})
	}
}

// detailed is a device that knows whether the time of each segment is wanted.
type detailed struct {
	*beside
	detail func() bool
}

func (d *detailed) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	d.detail = c.Detail
	return d.beside.Compile(p, c)
}

// TestDetail: a device is asked to time each segment as long as somebody records a trace, and not before or after.
func TestDetail(t *testing.T) {
	var asked, steps atomic.Int64
	device := &detailed{}
	device.beside = &beside{flight: 1, times: true, hung: func(*backend.Step) bool {
		steps.Add(1)
		if device.detail() {
			asked.Add(1)
		}
		return false
	}}
	e := startBeside(t, device.beside, func(c *Config) { c.Device = device })
	run := func() (inDetail, all int64) {
		asked.Store(0)
		steps.Store(0)
		collect(t, begin(t, e, plain([]int32{5, 6, 7}, 5)))
		return asked.Load(), steps.Load()
	}
	inDetail, _ := run()
	require.Zero(t, inDetail)
	r := startRecorder(e.house.watch, io.Discard)
	require.Eventually(t, e.house.system.Spans().Tapped, patient, time.Millisecond)
	inDetail, all := run()
	require.Equal(t, all, inDetail)
	require.NoError(t, r.end())
	inDetail, _ = run()
	require.Zero(t, inDetail)
}

// timedAnswer has a device that waits for a cause give an answer, and returns the first cause that is told.
func timedAnswer(t *testing.T, d *beside, cause trace.Cause) (first trace.Cause) {
	e := startBeside(t, d, nil)
	collect(t, begin(t, e, plain([]int32{5, 6, 7}, 1)))
	steps := e.Steps()
	a, live, spans := idle(t, e, func() { collect(t, begin(t, e, plain([]int32{5, 6, 7}, 40))) })
	require.GreaterOrEqual(t, a.Explained(), 0.99, "%v", a.Idle)
	require.Positive(t, live.Idle[cause])
	var segments, waits []trace.Span
	for i := range spans {
		switch s := spans[i]; {
		case s.Track != "house/device/compute":
		case s.Kind == trace.Idle:
			waits = append(waits, s)
		case s.Kind == trace.Mix || s.Kind == trace.FFN:
			segments = append(segments, s)
		}
	}
	require.NotEmpty(t, segments)
	for _, s := range segments {
		for _, w := range waits {
			require.False(t, w.At < s.End() && s.At < w.End(), "%v lies over %v", w, s)
		}
	}
	did := e.Steps().Sub(steps)
	require.Positive(t, did.Decode.Time[ir.SegMix])
	require.Positive(t, did.Decode.Gaps[cause])
	first, _ = a.First()
	return first
}
