package actors

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/batch"
)

func TestPace(t *testing.T) {
	const limit = 512
	for name, c := range map[string]struct {
		row, segment time.Duration // of a row
		want         batch.Budget
	}{
		"a small model fills its steps":        {time.Microsecond, time.Microsecond / 10, batch.Budget{Rows: 512, Alone: 512, Fixed: minRows}},
		"several keep to the target":           {2 * time.Millisecond, 50 * time.Microsecond, batch.Budget{Rows: 60, Alone: 500, Fixed: minRows}},
		"one takes a second":                   {5 * time.Millisecond, 100 * time.Microsecond, batch.Budget{Rows: 24, Alone: 200, Fixed: minRows}},
		"or longer, lest it be inefficient":    {30 * time.Millisecond, 600 * time.Microsecond, batch.Budget{Rows: 16, Alone: 128, Fixed: minRows}},
		"unless it could not be given up soon": {100 * time.Millisecond, 3 * time.Millisecond, batch.Budget{Rows: 16, Alone: 40, Fixed: minRows}},
		"but never fewer rows than several":    {time.Second, 20 * time.Millisecond, batch.Budget{Rows: 16, Alone: 16, Fixed: minRows}},
	} {
		t.Run(name, func(t *testing.T) {
			var p pace
			require.Equal(t, batch.Budget{Rows: 64, Alone: 64, Fixed: minRows}, p.budget(limit, false), "nothing is known yet")
			p.observe(minRows-1, time.Hour, time.Hour, 0)
			require.Equal(t, batch.Budget{Rows: 64, Alone: 64, Fixed: minRows}, p.budget(limit, false), "a decode says nothing")
			p.observe(32, 32*c.row, 32*c.segment, 0)
			require.Equal(t, c.want, p.budget(limit, false))
			for range 50 {
				p.observe(64, 64*3*c.row, 64*c.segment, 0)
			}
			require.InDelta(t, float64(3*c.row), float64(p.row), 0.01*float64(3*c.row)+4, "it follows")
			p.observe(64, 64*c.row, 64*c.segment, 0)
			require.Equal(t, c.want, p.budget(limit, false), "at once where it was far too slow")
		})
	}
}

// A step that waits for weights may compute for as long: what was read serves more rows.
func TestPaceOfStreaming(t *testing.T) {
	var p pace
	for range 50 {
		p.observe(64, 64*2*time.Millisecond, time.Millisecond, time.Second)
	}
	require.InDelta(t, 500, p.budget(512, false).Rows, 5, "not 60")
	for range 50 {
		p.observe(64, 64*2*time.Millisecond, time.Millisecond, 0)
	}
	require.Equal(t, 60, p.budget(512, false).Rows)
}

// TestPaceOfAnswers: what a step costs beside its rows is told by steps of few rows and of many, however they follow
// each other, and by none as long as all have the same.
func TestPaceOfAnswers(t *testing.T) {
	var p pace
	step := func(rows int) {
		p.answered(rows, 5*time.Millisecond+time.Duration(rows)*time.Millisecond, false, false)
	}
	for range 100 {
		step(31)
	}
	require.Equal(t, minRows, p.budget(512, false).Fixed, "a guess")
	for range 4 {
		step(3)
	}
	require.Equal(t, 5, p.budget(512, false).Fixed)
	for range 1000 {
		step(3)
	}
	require.Equal(t, 5, p.budget(512, false).Fixed, "it is remembered")
	for range 2 * aFewSteps {
		p.answered(2, 9*time.Millisecond, false, false)
		p.answered(20, 9*time.Millisecond, false, false)
	}
	require.Equal(t, 512, p.budget(512, false).Fixed, "as many rows as there may be cost nothing")
}

// TestPaceBesidePrompts: a lone answer, whose steps are all alike, and prompts beside it tell what rows cost; where
// rows of prompts are dearer than those of answers, what is fixed counts in theirs.
func TestPaceBesidePrompts(t *testing.T) {
	var p pace
	p.answered(17, 19*time.Millisecond, true, false)
	require.Equal(t, minRows, p.budget(512, false).Fixed, "a guess")
	for range 4 {
		p.answered(1, 3*time.Millisecond, false, false) // 2 ms, and 1 ms a row
		p.answered(17, 19*time.Millisecond, true, false)
	}
	require.Equal(t, 2, p.budget(512, false).Fixed)
	for range 4 * aFewSteps {
		p.answered(1, 9*time.Millisecond, false, false) // 8 ms
		p.answered(9, 17*time.Millisecond, false, false)
		p.answered(20, 48*time.Millisecond, true, false) // 2 ms each
	}
	require.Less(t, p.budget(512, false).Fixed, 5)
}

// TestPaceOfAnswersAlone: what a step would take without its prompts is known by steps that had none, also of more rows
// than were seen.
func TestPaceOfAnswersAlone(t *testing.T) {
	var p pace
	require.Zero(t, p.unprompted(3), "nothing is known yet")
	p.answered(20, time.Second, true, false)
	require.Zero(t, p.unprompted(3), "a step with prompts does not tell")
	for range 5 {
		p.answered(2, 4*time.Millisecond, false, false)
	}
	require.InDelta(t, 4*time.Millisecond, p.unprompted(3), 1e3, "the mean of those that are alike")
	for range aFewSteps {
		p.answered(2, 4*time.Millisecond, false, false)
		p.answered(6, 8*time.Millisecond, false, false)
	}
	require.InDelta(t, 5*time.Millisecond, p.unprompted(3), 1e3)
	require.InDelta(t, 12*time.Millisecond, p.unprompted(10), 1e3)
}

func TestSlowestSegment(t *testing.T) {
	var s step
	s.times.segments[ir.SegMix], s.times.segments[ir.SegFFN] = 90*time.Millisecond, 80*time.Millisecond
	segments := []ir.Segment{{Kind: ir.SegMix}, {Kind: ir.SegMix}, {Kind: ir.SegMix}, {Kind: ir.SegFFN}, {Kind: ir.SegFFN}}
	require.Equal(t, 40*time.Millisecond, s.slowest(segments))
	// What a device beside the program takes for one, nobody saw.
	for flight, want := range map[int]time.Duration{1: 40 * time.Millisecond, 2: 0} {
		of := &spec{layout: backend.Config{Limits: backend.Limits{Flight: flight}},
			bound: &ir.Bound{Program: &ir.Program{Segments: segments}}}
		at := scheduler{spec: of}
		require.Equal(t, want, at.slowest(&s))
	}
}
