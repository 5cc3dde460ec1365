//go:build cgo && linux

package vulkan

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/vulkan/vk"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// TestBouts: however many submits a step is, the bits are the same; how many there are follows from how fast the device
// was seen to be.
func TestBouts(t *testing.T) {
	d := open(t).device()
	m := small(t)
	x := run(t, d, m, 2)
	tokens, segments := []int32{1, 97}, len(m.Segments)
	want := x.logits(tokens, 2)
	submits := func(chunks ...int) uint64 {
		before := d.queue.last
		require.Equal(t, want, x.logits(tokens, chunks...))
		return d.queue.last - before
	}
	require.Equal(t, uint64(1), submits(2), "a device without a bound")
	require.Zero(t, d.speed.few.Load())

	d.bout = longestBout
	require.Equal(t, uint64(segments), submits(2), "one that nobody has seen at work")
	few := math.Float64frombits(d.speed.few.Load())
	require.Positive(t, few)
	require.Zero(t, d.speed.many.Load(), "steps of many rows are others")

	s := x.Model.(*model).slots[0]
	s.step.Tokens, s.step.Wanted = tokens, s.step.Wanted[:2]
	s.step.Spans = []backend.Span{{Rows: 2, Pos: 10}}
	s.countSeen()
	require.Equal(t, 11+12.0, s.sees, "each row sees itself, and what is before")
	s.step.Spans = []backend.Span{{Rows: 2}}
	s.countSeen()
	_, all := x.Model.(*model).bouts(s, 0, segments-1)
	for _, c := range []struct {
		takes       time.Duration
		least, most uint64 // a large segment may be as much as two bouts
	}{
		{longestBout / 100, 1, 1}, {longestBout, 1, 1}, {3 * longestBout / 2, 2, 2}, {3 * longestBout, 3, 4},
		{time.Hour, uint64(segments), uint64(segments)},
	} {
		d.speed.few.Store(math.Float64bits(all / c.takes.Seconds()))
		n := submits(2)
		require.True(t, c.least <= n && n <= c.most, "%d submits for %s", n, c.takes)
		require.NotEqual(t, all/c.takes.Seconds(), math.Float64frombits(d.speed.few.Load()), "what was seen last counts")
	}
	require.Equal(t, &d.speed.few, d.speed.of(fewRows-1))
	require.Equal(t, &d.speed.many, d.speed.of(fewRows))
}

// TestWorks: a dense program's products are its weights; attention costs what rows see.
func TestWorks(t *testing.T) {
	m := small(t)
	row, seen := 0.0, 0.0
	for _, w := range worksOf(m.Program) {
		row, seen = row+w.row, seen+w.seen
	}
	want := 0.0
	for i := range m.Program.Weights {
		if w := &m.Program.Weights[i]; w.Use&ir.Matrix != 0 {
			want += float64(w.Rows * w.Cols)
		}
	}
	require.Equal(t, want, row)
	require.Positive(t, seen)
}

// TestBoutOf: a processor that plays a card is not reset by anybody.
func TestBoutOf(t *testing.T) {
	require.Zero(t, boutOf(&vk.Facts{Kind: vk.CPU}))
	for _, k := range []vk.Kind{vk.Discrete, vk.Integrated, vk.Virtual, vk.Other} {
		require.Equal(t, longestBout, boutOf(&vk.Facts{Kind: k}))
	}
}
