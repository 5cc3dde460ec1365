package backendtest

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/judge"
	"github.com/sluice-ai/sluice/internal/quant"
)

// few is a juggler of a mixture with a head in pieces: all matrices but the route's share three slots; vectors have
// their own.
func few(t *testing.T, d backend.Device) *juggler {
	t.Helper()
	p, err := mixtureLike(small{layers: 1, width: 32, ffn: 32, vocab: 200, heads: 2, kvHeads: 1, head: 16, used: 2})
	require.NoError(t, err)
	m, err := made(judge.Random(p, 36, judge.All(quant.F32)))
	require.NoError(t, err)
	m.Piece = 1
	j := juggle(t, d, m, backend.Config{Limits: backend.Limits{KV: backend.KVF32, Blocks: Blocks(p, 1), MaxRows: 4,
		MaxWanted: 4}}, 37)
	var slots [][]int
	var streamed []int
	for g := range j.groups {
		if x := &j.groups[g]; x.Use == ir.Matrix && p.Segments[x.Segment].Kind != ir.SegRoute {
			streamed = append(streamed, g)
		} else {
			slots = append(slots, []int{g})
		}
	}
	c := j.config
	c.Slots = append(slots, streamed, streamed, streamed)
	return newJuggler(t, d, m, c, j.rng)
}

// of returns the first group of matrices in a segment of a kind.
func (j *juggler) of(kind ir.SegmentKind) int {
	for g := range j.groups {
		if j.groups[g].Use == ir.Matrix && j.m.Segments[j.groups[g].Segment].Kind == kind {
			return g
		}
	}
	panic("backendtest: there is none")
}

// badSlots checks that a group that cannot be placed is refused, and groups placed before stay.
func badSlots(t *testing.T, d backend.Device) {
	j := few(t, d)
	mix, route := j.of(ir.SegMix), j.of(ir.SegRoute)
	require.Nil(t, j.Slot(-1))
	require.Nil(t, j.Slot(len(j.holds)))
	require.Nil(t, j.Slot(0), "of one group alone")
	require.Error(t, j.Place(route, j.slots[route][0], nil), "it has its own slot")
	last := len(j.holds) - 1
	want := j.step(t, rows{[]int32{1, 2, 3}, 0, []int32{0}})
	j.place(mix, last)
	memory := j.Slot(last)
	if memory == nil {
		t.Skip("groups are uploaded")
	}
	good, other := j.lay(mix, memory), make([]byte, 1<<20)
	short, few, far := j.lay(mix, memory), good[1:], j.lay(mix, other)
	short[0] = short[0][:len(short[0])-1]
	for name, err := range map[string]error{
		"no such group":          j.Place(len(j.groups), last, good),
		"negative group":         j.Place(-1, last, good),
		"no such slot":           j.Place(mix, last+1, good),
		"negative slot":          j.Place(mix, -1, good),
		"the slot of one group":  j.Place(mix, j.slots[route][0], good),
		"a group of its own":     j.Place(route, last, good),
		"too few bytes":          j.Place(mix, last, short),
		"too few weights":        j.Place(mix, last, few),
		"nothing":                j.Place(mix, last, nil),
		"data of somebody else":  j.Place(mix, last, far),
		"data of another slot":   j.Place(mix, last-1, good),
		"upload to a shared one": j.Upload(j.groups[mix].Weights[0], 0, j.rowsOf(mix, j.groups[mix].Weights[0])),
	} {
		require.Error(t, err, name)
		t.Log(err)
	}
	require.NoError(t, j.Place(mix, last, j.lay(mix, memory)))
	sameBits(t, "after all that", j.m.Vocab, j.step(t, rows{[]int32{1, 2, 3}, 0, []int32{0}}), want)
}

// unready checks that a segment that lacks a group, and parts that make no whole, are errors of their step and of no
// other.
func unready(t *testing.T, d backend.Device) {
	j := few(t, d)
	want := j.step(t, rows{[]int32{1, 2, 3}, 0, []int32{0}})
	for _, c := range []struct {
		name string
		at   ir.SegmentKind
		use  func(i int, s *backend.Step) error
	}{
		{"enqueued without its group", ir.SegMix, j.enqueue},
		{"enqueued without experts", ir.SegExperts, j.enqueue},
		{"enqueued without a piece", ir.SegHead, j.enqueue},
		{"a part without its group", ir.SegMix, func(i int, s *backend.Step) error {
			return j.Run(backend.Work{Segment: i, Groups: []int{j.of(ir.SegMix)}, Last: true}, s)
		}},
		{"a part of nothing", ir.SegMix, func(i int, s *backend.Step) error {
			return j.Run(backend.Work{Segment: i, Last: true}, s)
		}},
		{"a last part that is not", ir.SegMix, j.all(false, nil)},
		{"twice in a part", ir.SegHead, func(i int, s *backend.Step) error {
			return j.one(ir.SegHead, 2, i, s)
		}},
		{"twice in two parts", ir.SegHead, func(i int, s *backend.Step) error {
			if err := j.one(ir.SegHead, 1, i, s); err != nil {
				return nil // that is none
			}
			return j.one(ir.SegHead, 1, i, s)
		}},
		{"a group of others", ir.SegHead, func(i int, s *backend.Step) error { return j.one(ir.SegRoute, 1, i, s) }},
		{"vectors", ir.SegHead, j.all(true, func(groups []int) []int { return append(groups, 0) })},
		{"no such group", ir.SegHead, j.all(true, func(groups []int) []int { return append(groups, len(j.groups)) })},
		{"a negative group", ir.SegHead, j.all(true, func(groups []int) []int { return append(groups, -1) })},
		{"no such segment", ir.SegMix, func(_ int, s *backend.Step) error {
			return j.Run(backend.Work{Segment: len(j.m.Segments), Last: true}, s)
		}},
		{"a negative segment", ir.SegMix, func(_ int, s *backend.Step) error {
			return j.Run(backend.Work{Segment: -1, Last: true}, s)
		}},
		{"an expert too few", ir.SegExperts, j.all(true, func(groups []int) []int { return groups[1:] })},
		{"a piece too few", ir.SegHead, j.all(true, func(groups []int) []int { return groups[1:] })},
		{"enqueued in the middle", ir.SegExperts, func(i int, s *backend.Step) error {
			if err := j.Run(backend.Work{Segment: i, Groups: nil}, s); err != nil {
				return nil
			}
			return backend.Enqueue(j, i+1, s)
		}},
		{"another segment in the middle", ir.SegExperts, func(i int, s *backend.Step) error {
			if err := j.Run(backend.Work{Segment: i, Groups: nil}, s); err != nil {
				return nil
			}
			return j.Run(backend.Work{Segment: 0, Last: true}, s)
		}},
		{"not a route", ir.SegEmbed, j.choose},
		{"no route at all", ir.SegHead, func(_ int, s *backend.Step) error { return j.choose(-1, s) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := j.until(c.at, c.use)
			require.Error(t, err)
			t.Log(err)
			sameBits(t, "after it", j.m.Vocab, j.step(t, rows{[]int32{1, 2, 3}, 0, []int32{0}}), want)
		})
	}
}

// enqueue runs a segment whole.
func (j *juggler) enqueue(i int, s *backend.Step) error { return backend.Enqueue(j, i, s) }

// choose runs a segment whole, with a Chosen callback.
func (j *juggler) choose(i int, s *backend.Step) error {
	return j.Run(backend.Work{Segment: i, Whole: true, Chosen: func([]int32) {}}, s)
}

// until runs the segments before one of a kind, then use instead of that one. It fails if use fails, or the step.
func (j *juggler) until(kind ir.SegmentKind, use func(int, *backend.Step) error) error {
	s := j.Steps()[0]
	s.Tokens, s.Wanted = []int32{1, 2, 3}, []int32{2}
	s.Spans = []backend.Span{{Rows: 3, Tables: Tables(j.m.Program, []int32{0})}}
	for i := range j.m.Segments {
		if j.m.Segments[i].Kind == kind {
			j.empty()
			err := use(i, s)
			return errors.Join(err, finish(j.Model, s))
		}
		require.NoError(j.t, j.segment(i, s))
		if j.m.Segments[i].Kind == ir.SegRoute {
			j.hear(i, s)
		}
	}
	panic("backendtest: there is none")
}

// empty places in each shared slot a group that no test here needs, so that all others are absent.
func (j *juggler) empty() {
	for slot, fit := range j.config.Slots {
		if len(fit) > 1 {
			j.place(fit[len(fit)-1-slot%3], slot)
		}
	}
}

// one runs a part that names the first group of a kind of segment so many times.
func (j *juggler) one(kind ir.SegmentKind, times, i int, s *backend.Step) error {
	g := j.of(kind)
	if !j.own[g] {
		j.place(g, j.slots[g][0])
	}
	return j.Run(backend.Work{Segment: i, Groups: slices.Repeat([]int{g}, times)}, s)
}

// all returns a function that computes a segment in parts, each with one of the groups that edit leaves of those
// needed.
func (j *juggler) all(last bool, edit func([]int) []int) func(int, *backend.Step) error {
	return func(i int, s *backend.Step) error {
		var need []int
		for g := range j.groups {
			x := &j.groups[g]
			if x.Segment == i && x.Use == ir.Matrix && (x.Expert == ir.Dense || j.goes(x.Expert)) {
				need = append(need, g)
			}
		}
		if edit != nil {
			need = edit(need)
		}
		for k, g := range need {
			if g >= 0 && g < len(j.groups) && !j.own[g] {
				j.place(g, j.slots[g][k%len(j.slots[g])])
			}
			if err := j.part(backend.Work{Segment: i, Groups: need[k : k+1], Last: last && k == len(need)-1}, s); err != nil {
				return err
			}
		}
		return nil
	}
}

// goes says whether rows chose an expert.
func (j *juggler) goes(expert int) bool { return slices.Contains(j.chosen, int32(expert)) }
