package actors

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/trace"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// spanTime is what a span costs whoever records it, with both looks at the clock: the least of some rounds, which
// nothing disturbed.
func spanTime() time.Duration {
	const each = 20000
	track := trace.New(8192, now()).Track("a")
	least := time.Hour
	for range 10 {
		from := now()
		for range each {
			began := now()
			track.Record(trace.Mix, trace.OfSegment(1, 2, 3), began, began, now())
		}
		least = min(least, now().Sub(from)/each)
	}
	return least
}

// startMini runs the embedded model.
func startMini(tb testing.TB) *Engine {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(tb, err)
	e, err := Start(context.Background(), Config{Model: Model{File: f}, Device: devicetest.Processor(tb, ""),
		Log: zerolog.Nop()})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, e.Close(context.Background())) })
	return e
}

// mostSpans bounds what a step of the embedded model records. Each takes about 0.1 µs, and the step 300 µs or more.
const mostSpans = 30

// TestSpansAreCheap counts the spans of a step, and says what share of it they cost: that should be below a hundredth,
// with the smallest model that there is. How busy the machine is decides nothing here.
func TestSpansAreCheap(t *testing.T) {
	if slowed {
		t.Skip("the race detector makes spans slow, and steps less so")
	}
	e := startMini(t)
	tap := e.house.system.Spans().Tap()
	var spans []trace.Span
	s := begin(t, e, plain([]int32{5, 6, 7}, 300))
	defer s.Close()
	var ev Event
	for s.Next(context.Background(), &ev) == nil {
		spans = tap.Drain(spans)
	}
	require.NoError(t, e.house.system.Stop(e.at("scheduler")))
	spans = tap.Drain(spans)
	require.Zero(t, tap.Missed())
	least, steps, n := time.Hour, 0, 0
	for i := range spans {
		if n++; spans[i].Kind == trace.Decode {
			steps++
			least = min(least, spans[i].Work)
		}
	}
	each := spanTime()
	a := float64(n) / float64(steps)
	share := a * float64(each) / float64(least)
	t.Logf("%.1f spans a step of %v or more, %v each: %.2f %%", a, least, each, 100*share)
	require.Less(t, a, float64(mostSpans))
}
