package actors

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/internal/trace/chrome"
	"github.com/sluice-ai/sluice/internal/trace/stall"
)

// TestTrace: the trace of a run holds loading, every step and the wait at its end, and explains what the device did.
func TestTrace(t *testing.T) {
	defer goleak.VerifyNone(t)
	var out bytes.Buffer
	e := startFixture(t, fixture, func(c *Config) { c.Trace = &out })
	collect(t, begin(t, e, plain([]int32{5, 6, 7}, 20)))
	shut(t, e)
	spans, err := chrome.Read(&out)
	require.NoError(t, err)
	devices := stall.Devices(spans)
	require.Equal(t, []string{"house/device/compute"}, devices)
	a := stall.Of(devices[0], spans)
	require.Equal(t, 1, a.Kinds[stall.Prefill].Steps)
	require.Equal(t, 19, a.Kinds[stall.Decode].Steps)
	require.GreaterOrEqual(t, a.Explained(), 0.99)
	require.Positive(t, a.Idle[trace.Loading])
	require.Positive(t, a.Idle[trace.NoWork])
	last := spans[len(spans)-1]
	require.Equal(t, trace.Idle, last.Kind, "open until the end")
}

// TestRecorderMissesNothing: what ends after startRecorder has returned is in the trace, whenever the recorder's own
// goroutine is let run.
func TestRecorderMissesNothing(t *testing.T) {
	defer goleak.VerifyNone(t)
	ring := trace.New(8, now())
	w := &watch{spans: ring, idle: ring.Track("idle").Waits()}
	var out bytes.Buffer
	r := startRecorder(w, &out)
	at := now()
	ring.Track("device").Record(trace.Prefill, trace.OfStep(1), at, at, at.Add(time.Millisecond))
	require.NoError(t, r.end())
	spans, err := chrome.Read(&out)
	require.NoError(t, err)
	require.Len(t, spans, 1)
	require.Equal(t, trace.Prefill, spans[0].Kind)
}

// TestNothingBefore: a wait that was over when the trace began, and is told of late, is not in it: a viewer would open
// the trace on an empty stretch.
func TestNothingBefore(t *testing.T) {
	ring := trace.New(8, now().Add(-time.Minute))
	w := &watch{spans: ring, idle: ring.Track("idle").Waits()}
	r := w.record()
	at := now().Add(-4 * time.Second)
	ring.Track("sampler").Record(trace.Idle, trace.Nothing(), at, at, at.Add(time.Second))
	ring.Track("device").Record(trace.Idle, trace.Nothing(), at, at, now().Add(time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	require.NoError(t, r.write(ctx, &out, 1<<20))
	spans, err := chrome.Read(&out)
	require.NoError(t, err)
	require.Len(t, spans, 1)
	require.Equal(t, "device", spans[0].Track)
	require.GreaterOrEqual(t, spans[0].At, r.from.Truncate(time.Microsecond))
}

// TestRecordFrom: a wait that began long ago is recorded from the begin of the trace, and one without any work is.
func TestRecordFrom(t *testing.T) {
	e := startFixture(t, fixture, nil)
	origin := e.house.system.Spans().Origin()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	record := func() []trace.Span {
		from := now().Sub(origin)
		var out bytes.Buffer
		require.NoError(t, e.house.Record(ctx, &out, 1<<20))
		spans, err := chrome.Read(&out)
		require.NoError(t, err)
		for _, s := range spans {
			if s.Kind == trace.Idle {
				require.GreaterOrEqual(t, s.At, from)
			}
		}
		return spans
	}
	// At first actors may still be telling one another that the model is there, and the wait of loading may just have
	// ended: these spans are whole.
	alone := func(spans []trace.Span) bool {
		return len(spans) == 1 && spans[0].Kind == trace.Idle && spans[0].Cause == trace.NoWork
	}
	for until := time.Now().Add(patient); !alone(record()); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(until))
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestTraceFull: what keeps a trace from being written keeps nothing else, and is told at the end.
func TestTraceFull(t *testing.T) {
	defer goleak.VerifyNone(t)
	e := startFixture(t, fixture, func(c *Config) { c.Trace = fullDisk{} })
	require.Len(t, collect(t, begin(t, e, plain([]int32{5, 6, 7}, 20))).tokens, 20)
	require.ErrorContains(t, e.Close(context.Background()), "no space left")
}
