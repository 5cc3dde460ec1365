//go:build cgo && linux

package vulkan

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/gpu/exec"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
)

// clocks runs a test with a device that tells its time, if it can, one that does not, and one without timestamps.
func clocks(t *testing.T, test func(t *testing.T, d *exec.Device, stamps, calibrates bool)) {
	for name, lacks := range map[string][]string{"calibrated": nil, "uncalibrated": {"calibratedTimestamps"},
		"none": {"timestamps"}} {
		t.Run(name, func(t *testing.T) {
			g := open(t, lacks...)
			bits, _ := g.d.StampBits()
			test(t, g.device(), bits > 0, g.d.Facts.Has.Calibrates && bits > 0)
		})
	}
}

// TestTimes: each segment of each step is told once, in order, within what the host saw of the step; two steps in
// flight follow one another.
func TestTimes(t *testing.T) {
	clocks(t, func(t *testing.T, d *exec.Device, stamps, calibrates bool) {
		m := mini(t)
		var all []backend.Ran
		x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
			Blocks: backendtest.Blocks(m.Program, 3), MaxRows: 1, MaxWanted: 1, Flight: 2},
			Observer: backend.Observer{Ran: func(r backend.Ran) { all = append(all, r) }}})
		require.NoError(t, err)
		for r := range m.Weights {
			require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
		}
		const steps = 6
		var asked, ended [steps]time.Time
		done := make(chan int, steps)
		for i := range steps {
			if i >= 2 {
				<-done
			}
			s := x.Steps()[i%2]
			s.Tokens, s.Wanted = []int32{7}, []int32{0}
			s.Spans = []backend.Span{{Rows: 1, Pos: i, Tables: backendtest.Tables(m.Program, []int32{0})}}
			asked[i] = time.Now()
			for seg := range m.Segments {
				require.NoError(t, backend.Enqueue(x, seg, s))
			}
			x.Finish(s, func(err error) {
				ended[i] = time.Now()
				if err != nil {
					t.Error(err)
				}
				done <- i
			})
		}
		require.NoError(t, x.Close())
		require.Equal(t, stamps, d.Traits().Clock)
		if !stamps {
			require.Empty(t, all)
			return
		}
		require.Len(t, all, steps*len(m.Segments))
		last, took := time.Time{}, make([][]time.Duration, len(m.Segments))
		for i, r := range all {
			step := i / len(m.Segments)
			require.Equal(t, i%len(m.Segments), r.Segment)
			require.Same(t, x.Steps()[step%2], r.Step)
			require.Equal(t, -1, r.Group)
			require.False(t, r.Asked.Before(asked[step]) || r.Began.Before(r.Asked) || r.Began.Before(last) ||
				r.Ended.Before(r.Began) || r.Ended.After(ended[step]), "%d: %+v", i, r)
			if r.Segment > 0 {
				require.Equal(t, last, r.Began, "a segment begins where the one before ends")
			}
			last = r.Ended
			took[r.Segment] = append(took[r.Segment], r.Ended.Sub(r.Began))
		}
		for seg, steps := range took {
			switch m.Segments[seg].Kind {
			case ir.SegMix, ir.SegFFN: // by when the host saw ends, some segments are told to have taken no time
				require.False(t, calibrates && slices.Min(steps) <= 0, "segment %d: %v", seg, steps)
			}
		}
	})
}

// TestDetail: of steps of few rows one of each sixteen has a timestamp behind each segment, and those that ask for it
// and those of many rows have; others have two. All segments of each are told, one after the other.
func TestDetail(t *testing.T) {
	m := small(t)
	var all []backend.Ran
	const fewRows, detailEvery = 16, 16
	asked := false
	d, seen := open(t).watched()
	x, err := d.Compile(m.Bound, backend.Config{Limits: backend.Limits{KV: backend.KVF16,
		Blocks: backendtest.Blocks(m.Program, 3), MaxRows: fewRows, MaxWanted: 1},
		Observer: backend.Observer{Ran: func(r backend.Ran) { all = append(all, r) }, Detail: func() bool { return asked }}})
	require.NoError(t, err)
	defer func() { require.NoError(t, x.Close()) }()
	for r := range m.Weights {
		require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
	}
	segments, last := len(m.Segments), time.Time{}
	step := func(pos, rows int, detail bool) (stamps int) {
		s := x.Steps()[0]
		s.Tokens, s.Wanted, asked = make([]int32, rows), []int32{0}, detail
		s.Spans = []backend.Span{{Rows: rows, Pos: pos, Tables: backendtest.Tables(m.Program, []int32{0, 1})}}
		all = all[:0]
		for seg := range m.Segments {
			require.NoError(t, backend.Enqueue(x, seg, s))
		}
		done := make(chan error, 1)
		x.Finish(s, func(err error) { done <- err })
		require.NoError(t, <-done)
		require.Len(t, all, segments)
		for i, r := range all {
			require.Equal(t, i, r.Segment)
			require.False(t, r.Began.Before(last) || r.Ended.Before(r.Began) || i > 0 && !r.Began.Equal(last), "%d: %+v", i, r)
			last = r.Ended
		}
		return seen.marks
	}
	for pos := range 35 {
		want := 2
		if pos%detailEvery == 0 || pos == 5 {
			want = segments + 1
		}
		require.Equal(t, want, step(pos, 1, pos == 5), "step %d", pos)
	}
	for range 3 {
		require.Equal(t, segments+1, step(40, fewRows, false), "many rows")
	}
}

// TestRan: copies of kept groups, and what is computed with them, are told of in order, none before it was asked for.
// Nothing is computed with a group before its copy has ended, by the clock of a device that tells its time. Of others
// it is known when the host saw the ends, and that may be milliseconds late.
func TestRan(t *testing.T) {
	clocks(t, func(t *testing.T, d *exec.Device, stamps, calibrates bool) {
		m := small(t)
		groups := m.On(m.All())
		c := backend.Config{Limits: backend.Limits{KV: backend.KVF16, Blocks: backendtest.Blocks(m.Program, 3),
			MaxRows: 1, MaxWanted: 1}, Weights: backend.Uploaded{Tables: m.Weights}}
		var moving []int
		for g := range groups {
			if groups[g].Use == ir.Matrix {
				moving = append(moving, g)
			} else {
				c.Slots = append(c.Slots, []int{g})
			}
		}
		slot := len(c.Slots)
		c.Slots, c.Kept = append(c.Slots, moving, moving), moving
		all := make(chan backend.Ran, 16*len(moving))
		c.Ran = func(r backend.Ran) { all <- r }
		x, err := d.Compile(m.Bound, c)
		require.NoError(t, err)
		for r := range m.Weights {
			require.NoError(t, x.Upload(ir.Ref(r), 0, m.Weights[r]))
		}
		const steps = 3 // the same copies again
		began := time.Now()
		for n := range steps {
			s := x.Steps()[0]
			s.Tokens, s.Wanted = []int32{7}, []int32{0}
			s.Spans = []backend.Span{{Rows: 1, Pos: n, Tables: backendtest.Tables(m.Program, []int32{0})}}
			for i := range m.Segments {
				of := slices.DeleteFunc(slices.Clone(moving), func(g int) bool { return groups[g].Segment != i })
				if len(of) == 0 {
					require.NoError(t, backend.Enqueue(x, i, s))
				}
				for k, g := range of { // each is placed while the one before is computed with
					require.NoError(t, x.Place(g, slot+g%2, nil))
					done := make(chan struct{})
					require.NoError(t, x.Run(backend.Work{Segment: i, Groups: []int{g}, Last: k == len(of)-1,
						Done: func() { close(done) }}, s))
					<-done
				}
			}
			done := make(chan error, 1)
			x.Finish(s, func(err error) { done <- err })
			require.NoError(t, <-done)
		}
		require.NoError(t, x.Close())
		close(all)
		landed, computed := map[int][]time.Time{}, map[int]int{}
		var told []backend.Ran
		for r := range all {
			require.False(t, r.Asked.Before(began) || r.Began.Before(r.Asked) || r.Ended.Before(r.Began), "%+v", r)
			if r.Copied {
				landed[r.Group] = append(landed[r.Group], r.Ended)
			} else {
				told = append(told, r)
			}
		}
		for _, r := range told {
			if r.Group < 0 {
				continue
			}
			if stamps {
				if r.Landed.IsZero() {
					continue // a part of the segment that needs no group
				}
				end := landed[r.Group][computed[r.Group]]
				require.False(t, calibrates && r.Began.Before(end.Add(-100*time.Microsecond)), "%+v, landed %v", r, end)
			}
			computed[r.Group]++
		}
		require.Len(t, landed, len(moving))
		require.Len(t, computed, len(moving))
		for g := range computed {
			require.Equal(t, steps, computed[g])
		}
	})
}
