package batch

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// pictured are terms with two pictures: 2 × 3 rows at 4, and 3 × 2 rows at 12.
func pictured(both bool) *Terms {
	return &Terms{Axes: true, MaxLen: 100, Pictures: []Picture{
		{At: 4, Grid: ir.Grid{Height: 2, Width: 3}, Both: both, Hash: [32]byte{1}},
		{At: 12, Grid: ir.Grid{Height: 3, Width: 2}, Both: both, Hash: [32]byte{2}},
	}}
}

// TestPlaces: time stands still in a picture, and what follows comes after its longer side.
func TestPlaces(t *testing.T) {
	q := pictured(false)
	var got []ir.Place
	for pos := range 20 {
		got = append(got, q.Place(pos))
	}
	require.Equal(t, []ir.Place{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {3, 3, 3},
		{4, 4, 4}, {4, 4, 5}, {4, 4, 6}, {4, 5, 4}, {4, 5, 5}, {4, 5, 6},
		{7, 7, 7}, {8, 8, 8},
		{9, 9, 9}, {9, 9, 10}, {9, 10, 9}, {9, 10, 10}, {9, 11, 9}, {9, 11, 10},
		{12, 12, 12}, {13, 13, 13}}, got)
}

// TestWholePictures: no step ends within a picture whose rows see each other, if there is room for all of it.
func TestWholePictures(t *testing.T) {
	for _, c := range []struct{ from, n, most, want int }{
		{0, 4, 20, 4}, {0, 3, 20, 3}, {0, 5, 20, 4}, {0, 9, 20, 4}, {0, 10, 20, 10}, {0, 13, 20, 12},
		{4, 1, 20, 6}, {4, 1, 6, 6}, {4, 1, 5, 0}, {6, 2, 20, 4}, {12, 8, 20, 8}, {18, 2, 20, 2},
	} {
		require.Equal(t, c.want, pictured(true).whole(c.from, c.n, c.most), "%+v", c)
		require.Equal(t, c.n, pictured(false).whole(c.from, c.n, c.most), "%+v", c)
	}
}

// TestRowsOfPictures: what the prefix tree knows rows by tells pictures and rows apart, and no token is like them.
func TestRowsOfPictures(t *testing.T) {
	q, other := pictured(false), pictured(false)
	other.Pictures[0].Hash[5]++
	text, same, moved := make([]int32, 20), make([]int32, 20), make([]int32, 20)
	q.keys(text)
	pictured(true).keys(same)
	other.keys(moved)
	require.Equal(t, text, same)
	require.Equal(t, text[10:], moved[10:])
	for i := range 6 {
		require.NotEqual(t, text[4+i], moved[4+i])
		require.Less(t, text[4+i], answered(1<<24))
	}
	once := slices.Clone(text[4:10])
	slices.Sort(once)
	require.Len(t, slices.Compact(once), 6)
}

// TestSpansOfPictures: a step says where rows of a sequence with pictures are, and what they see; a span of another
// sequence in its place says nothing of it.
func TestSpansOfPictures(t *testing.T) {
	s := New(Limits{Seqs: 2, Rows: 12, Wanted: 4, Beside: 12})
	p := planner{s: s, step: &backend.Step{}, rows: 12, wanted: 4}
	q := &Seq{Terms: pictured(true), Tokens: make([]int32, 20), planned: 3}
	p.span(q, 0, 8, 0)
	span := &p.step.Spans[0]
	require.Equal(t, []int32{3, 9, 9, 9, 9, 9, 9, 10}, span.Sees)
	require.Equal(t, q.Place(5), span.Places[2])
	p.step.Spans = p.step.Spans[:0]
	p.span(&Seq{Terms: &Terms{}, Tokens: make([]int32, 20)}, 0, 8, 0)
	require.Nil(t, span.Sees)
	require.Nil(t, span.Places)
	q.planned = 10
	p.step.Spans = p.step.Spans[:0]
	p.span(q, 0, 2, 0)
	require.Nil(t, span.Sees, "no picture is there")
	require.Equal(t, ir.Place{7, 7, 7}, span.Places[0])
}
