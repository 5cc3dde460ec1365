package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/trace"
)

// TestSpans: what an answer took is in the ring, and belongs to its steps: what scheduler, device and sampler did, the
// segments within the device's work, and the tokens. A device that works beside the program hears of a step's end, too.
// Loading left its reads.
func TestSpans(t *testing.T) {
	e := startFixture(t, fixture, nil)
	collect(t, begin(t, e, plain([]int32{5, 6, 7}, 3)))
	require.NoError(t, e.house.system.Stop(e.at("scheduler"))) // it has handled the last step
	segments := map[uint64][]trace.Kind{}
	within, device, handled := map[uint64]trace.Span{}, map[uint64]trace.Span{}, map[uint64]map[string]int{}
	tokens, disk, computed := 0, 0, []trace.Span(nil)
	for _, s := range e.house.Spans() {
		switch {
		case s.Kind == trace.Idle:
		case s.Kind == trace.Prefill, s.Kind == trace.Decode:
			computed = append(computed, s)
		case s.Track == "house/device/compute":
			require.NotZero(t, s.Step)
			at := &e.spec.bound.Segments[s.Segment]
			require.Equal(t, segmentKinds[at.Kind], s.Kind)
			require.Equal(t, at.Layer, s.Layer)
			segments[s.Step] = append(segments[s.Step], s.Kind)
			if _, ok := within[s.Step]; !ok {
				within[s.Step] = s
			}
		case s.Kind == trace.Step:
			if handled[s.Step] == nil {
				handled[s.Step] = map[string]int{}
			}
			handled[s.Step][s.Track]++
			if s.Track == "house/device" {
				if first, ok := device[s.Step]; ok {
					s.At, s.Work = first.At, s.End()-first.At
				}
				device[s.Step] = s
			}
		case s.Kind == trace.Token:
			tokens++
			require.EqualValues(t, tokens, s.Step)
		case s.Kind == trace.Disk:
			disk++
			require.Equal(t, "house/reader/disk", s.Track)
		}
	}
	require.Positive(t, disk)
	require.Equal(t, 3, tokens)
	require.Len(t, segments, 3)
	require.Len(t, computed, 3)
	for n, s := range computed {
		require.Equal(t, trace.OfStep(uint64(n+1)), s.Of)
		require.Equal(t, []trace.Kind{trace.Prefill, trace.Decode, trace.Decode}[n], s.Kind)
	}
	turns := 1
	if e.house.device.Traits().Memory == backend.OwnMemory {
		turns = 2
	}
	for n := uint64(1); n <= 3; n++ {
		var want []trace.Kind
		for i := range e.spec.bound.Segments {
			want = append(want, segmentKinds[e.spec.bound.Segments[i].Kind])
		}
		require.Equal(t, want, segments[n], "step %d", n)
		require.Equal(t, map[string]int{e.at("scheduler").Id: 1, "house/device": turns, e.at("sampler").Id: 1}, handled[n],
			"step %d", n)
		require.LessOrEqual(t, device[n].At, within[n].At)
		require.Less(t, within[n].At+within[n].Work, device[n].At+device[n].Work)
	}
}
