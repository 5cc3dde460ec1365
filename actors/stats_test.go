package actors

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
)

// TestWork: what an answer of 4 tokens to 3 costs is accounted for, prefill and decode apart, by kind of segment.
func TestWork(t *testing.T) {
	both := []ir.SegmentKind{ir.SegEmbed, ir.SegMix, ir.SegHead}
	for name, kinds := range map[string][]ir.SegmentKind{
		fixture:    append(both[:3:3], ir.SegFFN),
		"qwen2moe": append(both[:3:3], ir.SegRoute, ir.SegExperts),
	} {
		t.Run(name, func(t *testing.T) { testWork(t, startFixture(t, name, nil), kinds) })
	}
}

func testWork(t *testing.T, e *Engine, kinds []ir.SegmentKind) {
	before := e.Steps()
	collect(t, begin(t, e, plain([]int32{5, 6, 7}, 4)))
	s := e.Steps().Sub(before)
	want := Work{Steps: 1, Rows: 3, Wanted: 1, Sequences: 1, Positions: 3, Seen: 1 + 2 + 3, Time: s.Prefill.Time,
		Gaps: s.Prefill.Gaps}
	require.Equal(t, want, s.Prefill)
	want = Work{Steps: 3, Rows: 3, Wanted: 3, Sequences: 3, Positions: 4 + 5 + 6, Seen: 4 + 5 + 6, Time: s.Decode.Time,
		Gaps: s.Decode.Gaps}
	require.Equal(t, want, s.Decode)
	require.NotEqual(t, s.Prefill.Time, s.Decode.Time)
	for _, times := range [][ir.SegmentKinds]time.Duration{s.Prefill.Time, s.Decode.Time} {
		for kind, took := range times {
			require.Equal(t, slices.Contains(kinds, ir.SegmentKind(kind)), took > 0, "%s: %s", ir.SegmentKind(kind), took)
		}
	}
}
