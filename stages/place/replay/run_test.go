package replay

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/stages/place"
	"github.com/sluice-ai/sluice/stages/place/expertcache"
)

const ours = expertcache.Ours

// all are the policies, the one that knows the future first.
var all = []expertcache.Kind{expertcache.Belady, expertcache.LRU, expertcache.LFU, expertcache.SLRU, ours}

// small has two layers of 8 experts of 1 MB, of which steps use 2, and dense weights of 2 MB.
func small(steps int) *Trace {
	eight := place.Experts{Experts: 8, Used: 2, Bytes: 1e6}
	t := &Trace{Sizes: place.Sizes{Vectors: 1000, Dense: []int64{1e6, 1e6}, Layers: []place.Experts{eight, eight}}}
	r := rand.New(rand.NewPCG(1, 1))
	for range steps {
		s := Step{Rows: 1}
		for range t.Sizes.Layers {
			a := int32(r.IntN(7))
			s.Chosen = append(s.Chosen, []int32{a, a + 1 + int32(r.IntN(int(7-a)))})
		}
		t.Steps = append(t.Steps, s)
	}
	t.Rows = steps
	return t
}

// TestTime: two experts of each layer are read, one after the other, then all four and the dense weights were computed
// from; the second time nothing is read.
func TestTime(t *testing.T) {
	tr := small(0)
	step := Step{Rows: 1, Chosen: [][]int32{{1, 2}, {3, 4}}}
	tr.Steps, tr.Rows = []Step{step, step}, 2
	r, err := Run(tr, Setting{Policy: expertcache.LRU, Prefetch: None, Slots: 4, Disk: 1e9, Memory: 10e9})
	require.NoError(t, err)
	require.Equal(t, 4, r.Misses)
	require.Equal(t, 4, r.Hits)
	require.EqualValues(t, 4e6, r.Bytes)
	require.InDelta(t, 4e-3, r.Waited, 1e-9)
	require.InDelta(t, 4e-3+2*(6e6/10e9), r.Seconds, 1e-9)
	require.InDelta(t, 2/r.Seconds, r.Tokens, 1e-6)

	oracle, err := Run(tr, Setting{Policy: expertcache.LRU, Prefetch: Oracle, Slots: 4, Disk: 1e9, Memory: 10e9})
	require.NoError(t, err)
	require.Less(t, oracle.Waited, r.Waited, "the second layer's are read while the first one computes")
	require.EqualValues(t, 4e6, oracle.Bytes)
}

// TestBudget: a budget divides as a plan does; what is dense and streamed is read for each step.
func TestBudget(t *testing.T) {
	tr := small(50)
	all, err := Run(tr, Setting{Policy: ours, Prefetch: None, Disk: 1e9, Memory: 10e9})
	require.NoError(t, err)
	require.LessOrEqual(t, all.Misses, 16, "each expert once")
	half, err := Run(tr, Setting{Policy: ours, Prefetch: None, Weights: 11e6, Disk: 1e9, Memory: 10e9})
	require.NoError(t, err)
	require.Greater(t, half.Misses, all.Misses)
	require.Less(t, half.Tokens, all.Tokens)
	_, err = Run(tr, Setting{Policy: ours, Prefetch: None, Weights: 1e6, Disk: 1e9, Memory: 10e9})
	require.ErrorContains(t, err, "ask for at least")

	dense := &Trace{Sizes: place.Sizes{Dense: []int64{40e6, 40e6, 40e6, 40e6}}, Steps: make([]Step, 10), Rows: 10}
	r, err := Run(dense, Setting{Policy: ours, Prefetch: None, Weights: 130e6, Disk: 1e9, Memory: 10e9})
	require.NoError(t, err)
	require.EqualValues(t, 10*120e6, r.Bytes, "three go through two slots, one stays")
	require.InDelta(t, 1e9/120e6, r.Tokens, 2)
}

// TestSlots: never more experts are there than slots, even if a step chooses more, and no policy misses less than
// Belády.
func TestSlots(t *testing.T) {
	tr := small(200)
	tr.Steps[7].Chosen = [][]int32{{0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6}}
	least := 0
	for _, k := range all {
		r, err := Run(tr, Setting{Policy: k, Prefetch: None, Slots: 3, Disk: 1e9, Memory: 10e9})
		require.NoError(t, err)
		require.Equal(t, 200*4+6+5, r.Hits+r.Misses)
		require.EqualValues(t, r.Misses*1e6, r.Bytes)
		least = max(least, 1)
		if k == expertcache.Belady {
			least = r.Misses
		}
		require.GreaterOrEqual(t, r.Misses, least, "%v", k)
	}
	for i := range tr.Steps {
		chosen := tr.Steps[i].Chosen
		tr.Steps[i].Foreseen = &Foreseen{Tokens: chosen[0][:1], ByRow: chosen, Margins: [2][][]int8{{nil, nil}, {nil, nil}}}
	}
	tr.Steps[7].Foreseen = nil
	for p := None; p <= Oracle; p++ {
		s := Setting{Policy: ours, Prefetch: p, Slots: 3, Disk: 1e9, Memory: 10e9}
		first, err := Run(tr, s)
		require.NoError(t, err)
		again, err := Run(tr, s)
		require.NoError(t, err)
		require.Equal(t, first, again, "the same every time")
	}
}

// TestGuess: what the router makes of the stream before it is its turn comes while the drive is idle. A guess that
// proves wrong is given up, and does not keep what is needed waiting for more than a piece.
func TestGuess(t *testing.T) {
	right, wrong := make([]int8, 8), make([]int8, 8)
	for e := range right {
		right[e], wrong[e] = tokentrace.MarginFloor, tokentrace.MarginFloor
	}
	right[3], right[4], wrong[6], wrong[7] = 60, 60, 60, 60
	run := func(p Prefetch, early, late []int8) *Result {
		tr := small(0)
		step := Step{Rows: 1, Chosen: [][]int32{{1, 2}, {3, 4}}}
		step.Foreseen = &Foreseen{Tokens: []int32{-1}, ByRow: step.Chosen,
			Margins: [2][][]int8{{nil, early}, {nil, late}}}
		tr.Steps, tr.Rows = []Step{step}, 1
		r, err := Run(tr, Setting{Policy: ours, Prefetch: p, Slots: 4, Disk: 3e9, Memory: 1e9})
		require.NoError(t, err)
		return r
	}
	none, oracle := run(None, nil, nil), run(Oracle, nil, nil)
	require.InDelta(t, 4./3000, none.Waited, 1e-9)
	require.Zero(t, oracle.Waited, "the first layer's come while its dense weights are computed from")
	require.InDelta(t, 2./3000, run(Predicted, right, nil).Waited, 1e-9, "the second layer's are hidden")
	require.InDelta(t, 2./3000, run(Predicted, nil, right).Waited, 1e-9, "its dense weights take long enough")
	require.InDelta(t, 4./3000, run(Predicted, nil, nil).Waited, 1e-9)
	fooled := run(Predicted, wrong, nil)
	require.InDelta(t, 4./3000, fooled.Waited, 1./9000)
	require.EqualValues(t, 6e6, fooled.Bytes)
	require.InDelta(t, 2./3000, run(Predicted, wrong, right).Waited, 1e-9, "late tells more")
}

// TestLoad: experts of all rows of a step, each once; steps without all of them, and a cut off end, are left out.
func TestLoad(t *testing.T) {
	margins := make([]int8, 27)
	var b bytes.Buffer
	w, err := tokentrace.NewWriter(&b, &tokentrace.Model{Dense: []int64{5},
		Layers: []tokentrace.Layer{{Experts: 9, Used: 2, Bytes: 3}}})
	require.NoError(t, err)
	for _, e := range []tokentrace.Event{
		&tokentrace.Step{Spans: []tokentrace.Span{{Sequence: 1, Rows: 2}, {Sequence: 2, Rows: 1}}, Tokens: []int32{5, -1, 7}},
		&tokentrace.Foreseen{Late: true, Margins: margins},
		&tokentrace.Chosen{Experts: []int32{4, 8, 2, 4, 7, -1}},
		&tokentrace.Drawn{Sequence: 1, Token: 3},
		&tokentrace.Step{Spans: []tokentrace.Span{{Sequence: 1, Rows: 1}}},
		&tokentrace.End{},
	} {
		require.NoError(t, w.Write(e))
	}
	for _, data := range [][]byte{b.Bytes(), b.Bytes()[:b.Len()-1]} {
		r, err := tokentrace.NewReader(bytes.NewReader(data))
		require.NoError(t, err)
		loaded, err := Load(r)
		require.NoError(t, err)
		foreseen := &Foreseen{Tokens: []int32{5, -1, 7}, ByRow: [][]int32{{4, 8, 2, 4, 7, -1}},
			Margins: [2][][]int8{{nil}, {margins}}}
		require.Equal(t, []Step{{Rows: 3, Chosen: [][]int32{{2, 4, 7, 8}}, Foreseen: foreseen}}, slices.Clone(loaded.Steps))
		require.Equal(t, 1, loaded.Drawn)
		require.Equal(t, 3, loaded.Rows)
		layer := place.Experts{Experts: 9, Used: 2, Bytes: 3}
		require.Equal(t, place.Sizes{Dense: []int64{5}, Layers: []place.Experts{layer}}, loaded.Sizes)
	}
}

func TestNames(t *testing.T) {
	for p := None; p <= Oracle; p++ {
		parsed, err := ParsePrefetch(p.String())
		require.NoError(t, err)
		require.Equal(t, p, parsed)
	}
	_, err := ParsePrefetch("all")
	require.EqualError(t, err, `prefetch "all": want none, ours or oracle`)
}

// TestThreeTierTime: what waits in memory comes by the bus, beside what the drive reads; the step waits for the later.
func TestThreeTierTime(t *testing.T) {
	tr := small(0)
	step := Step{Rows: 1, Chosen: [][]int32{{1, 6}, {3, 7}}}
	tr.Steps, tr.Rows = []Step{step, step}, 2
	r, err := Run(tr, Setting{Policy: ours, Prefetch: None, Slots: 4, Kept: 5, Disk: 1e9, Bus: 4e9, Memory: 10e9})
	require.NoError(t, err)
	require.EqualValues(t, 2e6, r.Bytes)
	require.EqualValues(t, 2e6, r.Copied)
	require.InDelta(t, 2e-3, r.Waited, 1e-9, "the drive takes longer")
	r, err = Run(tr, Setting{Policy: ours, Prefetch: None, Slots: 4, Kept: 8, Disk: 1e9, Bus: 4e9, Memory: 10e9})
	require.NoError(t, err)
	require.Zero(t, r.Bytes)
	require.InDelta(t, 1e-3, r.Waited, 1e-9)
	_, err = Run(tr, Setting{Policy: ours, Prefetch: Oracle, Slots: 4, Kept: 8, Disk: 1e9, Bus: 4e9, Memory: 10e9})
	require.ErrorContains(t, err, "is not replayed")
}

// TestFill: before the first step, and while the drive has nothing else to do, it fills slots with what is on disk, but
// for as many as a step uses. What was filled counts as read once.
func TestFill(t *testing.T) {
	tr := small(0)
	step := Step{Rows: 1, Chosen: [][]int32{{5, 6}, {5, 7}}}
	tr.Steps, tr.Rows = []Step{step}, 1
	s := Setting{Policy: ours, Prefetch: None, Slots: 4, Kept: 5, Disk: 1e9, Bus: 4e9, Memory: 10e9, Fill: true}
	cold, err := Run(tr, s)
	require.NoError(t, err)
	s.Lead = 1
	warm, err := Run(tr, s)
	require.NoError(t, err)
	require.EqualValues(t, 5e6, warm.Bytes, "5 and 6 of each layer, and the second one's 7")
	require.InDelta(t, 1e-3-1e6/10e9, warm.Waited, 1e-9, "it is read while the other one is computed with")
	require.Less(t, warm.Waited, cold.Waited)
	require.InDelta(t, warm.Waited+6e6/10e9, warm.Seconds, 1e-9, "the lead is not counted")
}
