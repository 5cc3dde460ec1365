package actors

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/trace"
)

// TestSpans: what an answer took is in the ring, and belongs to its steps: what scheduler, device and sampler did, the
// segments within the device's work, and the tokens. Loading left its reads.
func TestSpans(t *testing.T) {
	e := startFixture(t, fixture, nil)
	collect(t, begin(t, e, plain([]int32{5, 6, 7}, 3)))
	require.NoError(t, e.system.Stop(e.wiring.places.scheduler.Address)) // it has handled the last step
	segments := map[uint64][]trace.Kind{}
	within, device, handled := map[uint64]trace.Span{}, map[uint64]trace.Span{}, map[uint64]map[string]int{}
	tokens, disk := 0, 0
	for _, s := range e.Spans() {
		switch {
		case s.Track == "engine/device/segments":
			require.NotZero(t, s.Step)
			segments[s.Step] = append(segments[s.Step], s.Kind)
			if _, ok := within[s.Step]; !ok {
				within[s.Step] = s
			}
		case s.Kind == trace.Step:
			if handled[s.Step] == nil {
				handled[s.Step] = map[string]int{}
			}
			handled[s.Step][s.Track]++
			if s.Track == "engine/device" {
				device[s.Step] = s
			}
		case s.Kind == trace.Token:
			tokens++
			require.EqualValues(t, tokens, s.Step)
		case s.Kind == trace.Disk:
			disk++
			require.Equal(t, "engine/reader/disk", s.Track)
		}
	}
	require.Positive(t, disk)
	require.Equal(t, 3, tokens)
	require.Len(t, segments, 3)
	for n := uint64(1); n <= 3; n++ {
		var want []trace.Kind
		for i := range e.bound.Segments {
			want = append(want, segmentKinds[e.bound.Segments[i].Kind])
		}
		require.Equal(t, want, segments[n], "step %d", n)
		require.Equal(t, map[string]int{"engine/scheduler": 1, "engine/device": 1, "engine/sampler": 1}, handled[n], "step %d", n)
		require.LessOrEqual(t, device[n].At, within[n].At)
		require.Less(t, within[n].At+within[n].Work, device[n].At+device[n].Work)
	}
}
