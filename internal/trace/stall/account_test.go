package stall

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/trace"
)

const device = "house/device/compute"

func span(kind trace.Kind, step uint64, layer int, from, to time.Duration) trace.Span {
	return trace.Span{Track: device, Kind: kind, At: from, Work: to - from,
		Of: trace.Of{Step: step, Segment: -1, Layer: layer, Group: -1}}
}

func wait(cause trace.Cause, layer int, from, to time.Duration) trace.Span {
	s := span(trace.Idle, 0, layer, from, to)
	s.Cause = cause
	return s
}

func causes(pairs ...any) (t [trace.Causes]time.Duration) {
	for i := 0; i < len(pairs); i += 2 {
		t[pairs[i].(trace.Cause)] = time.Duration(pairs[i+1].(int))
	}
	return t
}

// TestAccount: a prompt and two tokens, of which one waits for an expert within its second layer.
func TestAccount(t *testing.T) {
	spans := []trace.Span{
		{Track: "house/kv", Kind: trace.Blocks, At: 0, Work: 500}, // no device
		wait(trace.NoWork, -1, 100, 150), wait(trace.KV, -1, 150, 160),
		span(trace.Embed, 1, -1, 160, 165), span(trace.Mix, 1, 0, 165, 180), span(trace.FFN, 1, 0, 180, 198),
		span(trace.Prefill, 1, -1, 160, 200),
		wait(trace.Sampler, -1, 200, 207), wait(trace.Scheduler, -1, 207, 210),
		span(trace.Mix, 2, 0, 210, 215), wait(trace.Expert, 1, 215, 225), span(trace.Experts, 2, 1, 212, 230),
		span(trace.Decode, 2, -1, 210, 230),
		span(trace.Decode, 3, -1, 231, 235), // nobody says why it waited
		wait(trace.Credit, -1, 235, 240),
	}
	rand.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
	require.Equal(t, []string{device}, Devices(spans))
	a := Of(device, spans)
	require.EqualValues(t, 100, a.From)
	require.EqualValues(t, 240, a.To)
	require.Equal(t, Time{40 + 10 + 4, causes(trace.NoWork, 50, trace.KV, 10, trace.Sampler, 7, trace.Scheduler, 3,
		trace.Expert, 10, trace.Unknown, 1, trace.Credit, 5)}, a.Time)
	require.Equal(t, []Layer{
		{-1, Time{5 + 2 + 4, causes(trace.NoWork, 50, trace.KV, 10, trace.Sampler, 7, trace.Scheduler, 3,
			trace.Unknown, 1, trace.Credit, 5)}},
		{0, Time{15 + 18 + 5, [trace.Causes]time.Duration{}}},
		{1, Time{5, causes(trace.Expert, 10)}},
	}, a.Layers)
	require.Equal(t, [Kinds]OfKind{
		Prefill: {1, Time{40, causes(trace.NoWork, 50, trace.KV, 10)}},
		Decode:  {2, Time{14, causes(trace.Sampler, 7, trace.Scheduler, 3, trace.Expert, 10, trace.Unknown, 1)}},
		None:    {0, Time{0, causes(trace.Credit, 5)}},
	}, a.Kinds)
	require.Equal(t, []uint64{2, 1, 3}, numbers(a.Worst))
	require.Equal(t, []Piece{
		{200, 207, trace.Sampler, trace.Idle, -1}, {207, 210, trace.Scheduler, trace.Idle, -1},
		{210, 215, 0, trace.Mix, 0},
		{215, 225, trace.Expert, trace.Idle, 1}, {225, 230, 0, trace.Experts, 1},
	}, a.Worst[0].Pieces)
	require.InDelta(t, 1-1./86, a.Explained(), 1e-12)
	require.Equal(t, []trace.Cause{trace.NoWork, trace.Expert, trace.KV, trace.Sampler, trace.Credit,
		trace.Scheduler, trace.Unknown}, a.Causes())
	first, any := a.First()
	require.True(t, any)
	require.Equal(t, trace.Expert, first)
}

func numbers(steps []Step) (n []uint64) {
	for i := range steps {
		n = append(n, steps[i].Number)
	}
	return n
}

func TestNothing(t *testing.T) {
	for _, spans := range [][]trace.Span{nil, {{Track: "house/kv", Kind: trace.Step, Work: 3}}} {
		require.Empty(t, Devices(spans))
		a := Of("x", spans)
		require.Equal(t, Account{Track: "x"}, a)
		require.EqualValues(t, 1, a.Explained())
		_, any := a.First()
		require.False(t, any)
	}
}

// TestSums: whatever spans there are, each nanosecond is booked once in every division, under what a look at it alone
// says.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = 60
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trace.Span {
			from := rapid.IntRange(0, most).Draw(t, "from")
			s := span(trace.Kind(rapid.IntRange(int(trace.Prefill), int(trace.Idle)).Draw(t, "kind")),
				rapid.Uint64Range(1, 4).Draw(t, "step"), rapid.IntRange(-1, 3).Draw(t, "layer"),
				time.Duration(from), time.Duration(rapid.IntRange(from, most).Draw(t, "to")))
			if s.Kind == trace.Idle {
				s.Cause = trace.Cause(rapid.IntRange(0, int(trace.Causes)-1).Draw(t, "cause"))
			}
			return s
		}), 1, 20).Draw(t, "spans")
		a := Of(device, spans)
		var layers, kinds Time
		sum := func(to *Time, x Time) {
			to.Computing += x.Computing
			for c, d := range x.Idle {
				to.Idle[c] += d
			}
		}
		for _, l := range a.Layers {
			sum(&layers, l.Time)
		}
		for _, k := range a.Kinds {
			sum(&kinds, k.Time)
		}
		require.Equal(t, a.To-a.From, a.Wall())
		require.Equal(t, a.Time, layers)
		require.Equal(t, a.Time, kinds)
		require.Equal(t, naive(spans, a.From, a.To), a.Time)
		for _, s := range a.Worst {
			require.Equal(t, s.To-s.From, s.Wall())
		}
	})
}

// naive looks at each nanosecond alone. Of several waits the one holds that began first.
func naive(spans []trace.Span, from, to time.Duration) (t Time) {
	for at := from; at < to; at++ {
		var waits *trace.Span
		busy := false
		for i := range spans {
			s := &spans[i]
			switch {
			case s.At > at || s.End() <= at:
			case s.Kind != trace.Idle:
				busy = true
			case waits == nil || s.At < waits.At || s.At == waits.At && s.Work < waits.Work:
				waits = s
			}
		}
		switch {
		case waits != nil:
			t.Idle[waits.Cause]++
		case busy:
			t.Computing++
		default:
			t.Idle[trace.Unknown]++
		}
	}
	return t
}
