package predict

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
)

// world is a layer whose choice follows from the token, which a share of the steps does not.
type world struct {
	draw   *rand.Rand
	always map[int32][]int32
	strays float64
}

func (w *world) choice(token int32) []int32 {
	two := func() []int32 {
		a := int32(w.draw.IntN(15))
		return []int32{a, a + 1 + int32(w.draw.IntN(int(15-a)))}
	}
	if w.always[token] == nil {
		w.always[token] = two()
	}
	if w.draw.Float64() < w.strays {
		return two()
	}
	return w.always[token]
}

var nobody = make([]bool, 16)

// TestTokens: what a token chose it is likely to choose, as far as that proves true.
func TestTokens(t *testing.T) {
	for strays, want := range map[float64][2]float64{0.05: {0.75, 0.97}, 0.5: {0.35, 0.75}} {
		w := &world{draw: rand.New(rand.NewPCG(1, 1)), always: map[int32][]int32{}, strays: strays}
		p := New([]Layer{{16, 2}, {16, 2}})
		for range 3000 {
			token := int32(w.draw.IntN(30))
			p.Begin([]int32{token})
			p.Learn(1, w.choice(token), nobody)
		}
		sum, others := 0.0, 0.0
		for token := range int32(30) {
			p.Learn(1, w.always[token], nobody) // of the step before: it has no say in this
			p.Begin([]int32{token})
			p.Learn(1, w.always[token], nobody)
			p.Begin([]int32{token})
			for e, c := range p.chances(1) {
				if slices.Contains(w.always[token], int32(e)) {
					sum += float64(c) / 60
				} else {
					others += float64(c) / (30 * 14)
				}
			}
		}
		require.Greater(t, sum, want[0], "strays %v", strays)
		require.Less(t, sum, want[1], "strays %v", strays)
		require.InDelta(t, strays/8, others, 0.04, "strays %v", strays)
	}
}

// TestScores: the source that tells most counts, and rows add up.
func TestScores(t *testing.T) {
	p := New([]Layer{{4, 1}})
	_, _, ok := p.Next(none)
	require.False(t, ok, "no step has begun")
	p.Begin([]int32{5})
	base := slices.Clone(p.chances(0))
	p.Scores(0, false, []int8{40, 0, 0, backend.MarginFloor})
	early := slices.Clone(p.chances(0))
	require.Greater(t, early[0], base[0])
	require.Less(t, early[3], early[1])
	p.Scores(0, true, []int8{backend.MarginFloor, 40, 0, 0})
	late := slices.Clone(p.chances(0))
	require.Greater(t, late[1], float32(0.9))
	require.Less(t, late[0], float32(0.1))

	p.Begin([]int32{5, 6})
	require.Equal(t, p.layers[0].best(), byTokens, "a step's scores are its own")
	p.Scores(0, true, []int8{backend.MarginFloor, 40, 0, 0, 40, backend.MarginFloor, 0, 0})
	both := p.chances(0)
	require.Greater(t, both[0], float32(0.9))
	require.Greater(t, both[1], float32(0.9))
	p.Scores(0, true, []int8{0}) // not of these rows
	require.Greater(t, p.chances(0)[0], float32(0.9))
	p.Begin(make([]int32, MaxRows+1))
	_, _, ok = p.Next(none)
	require.False(t, ok, "many rows need nearly all")
}

func none(int, int) bool { return false }

// TestNext: the layer that comes next first, and in it the likeliest that is not there; what is likely keeps its slot.
func TestNext(t *testing.T) {
	p := New([]Layer{{4, 1}, {4, 1}, {4, 1}})
	p.Begin([]int32{5})
	p.Learn(0, []int32{-1}, nobody)
	p.Scores(1, false, []int8{backend.MarginFloor, 30, 40, 0})
	p.Scores(2, false, []int8{60, backend.MarginFloor, backend.MarginFloor, 1})
	there := map[[2]int]bool{}
	has := func(l, e int) bool { return there[[2]int{l, e}] }
	var order [][2]int
	for l, e, ok := p.Next(has); ok; l, e, ok = p.Next(has) {
		order = append(order, [2]int{l, e})
		there[[2]int{l, e}] = true
	}
	require.Equal(t, [][2]int{{1, 2}, {1, 1}, {1, 3}, {2, 0}, {2, 3}}, order)
	require.True(t, p.Keeps(1, 1))
	require.False(t, p.Keeps(1, 0))
	p.Learn(1, []int32{2}, nobody)
	l, e, ok := p.Next(none)
	require.True(t, ok)
	require.Equal(t, [2]int{2, 0}, [2]int{l, e}, "layer 1 has chosen")
	require.False(t, p.Keeps(1, 1), "what it did not choose may leave")
	p.Begin([]int32{5})
	l, e, ok = p.Next(none)
	require.True(t, ok)
	require.Equal(t, [2]int{1, 2}, [2]int{l, e}, "nothing is known of the next step but its token")
}

// TestLearn: scores that prove wrong count less; experts that are there teach nothing.
func TestLearn(t *testing.T) {
	p := New([]Layer{{4, 1}})
	there := []bool{true, false, false, false}
	before := p.layers[0].weights[byLate][score]
	for range 200 {
		p.Begin([]int32{-1})
		p.Scores(0, true, []int8{60, 20, -20, backend.MarginFloor})
		p.Learn(0, []int32{3}, there)
	}
	require.Less(t, p.layers[0].weights[byLate][score], before-1)
	require.Equal(t, usual[byEarly], p.layers[0].weights[byEarly], "there were no such scores")
	require.Empty(t, p.memory.recall(0, 0, 0), "nothing is remembered of a token that is not known")
	weights := p.layers[0].weights
	p.Learn(0, []int32{3}, []bool{true, true, true, true})
	require.Equal(t, weights, p.layers[0].weights)
	p.Learn(0, []int32{3, 2}, there)
	require.Equal(t, weights, p.layers[0].weights, "of other rows")
}

// TestMemory: two times are remembered, and a token that takes another's place begins anew.
func TestMemory(t *testing.T) {
	m := newMemory([]Layer{{9, 2}, {300, 3}})
	m.keep(7, 1, []int32{299, 4, -1})
	m.keep(7, 1, []int32{5, 6, 7})
	require.Equal(t, []uint16{6, 7, 8}, m.recall(7, 1, 0))
	require.Equal(t, []uint16{300, 5}, m.recall(7, 1, 1))
	require.Empty(t, m.recall(7, 0, 0))
	require.Empty(t, m.recall(7+remembered, 1, 0))
	m.keep(7+remembered, 0, []int32{1, 2})
	require.Empty(t, m.recall(7, 1, 0))
	require.Empty(t, m.recall(7+remembered, 1, 0))
	require.Equal(t, []uint16{2, 3}, m.recall(7+remembered, 0, 0))
}

// TestInTheWay: the more guesses are in the way, the fewer are made; there is an end to that.
func TestInTheWay(t *testing.T) {
	p := New([]Layer{{4, 1}})
	p.Begin([]int32{5})
	p.Scores(0, true, []int8{backend.MarginFloor, 0, 60, backend.MarginFloor})
	no := map[int]bool{2: true}
	has := func(_, e int) bool { return no[e] }
	_, e, ok := p.Next(has)
	require.True(t, ok)
	require.Equal(t, 1, e)
	for range 100 {
		p.Wrong()
	}
	_, _, ok = p.Next(has)
	require.False(t, ok)
	_, e, _ = p.Next(none)
	require.Equal(t, 2, e, "what is all but sure is always brought")
	for range 100 {
		p.Right()
	}
	_, _, ok = p.Next(has)
	require.True(t, ok)
}

func TestNoAlloc(t *testing.T) {
	p := New([]Layer{{16, 2}})
	token, chosen, scores := []int32{3}, []int32{1, 2}, make([]int8, 16)
	has := func(int, int) bool { return false }
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.Begin(token)
		p.Scores(0, true, scores)
		p.Next(has)
		p.Learn(0, chosen, nobody)
	}))
}
