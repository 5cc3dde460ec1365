package backend

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func good() *Step {
	return &Step{
		Tokens: []int32{1, 2, 3, 4},
		Spans:  []Span{{Rows: 1, Pos: 64, Table: []int32{0, 2}}, {Row: 1, Rows: 3, Table: []int32{1}}},
		Wanted: []int32{0, 3},
		Logits: make([]float32, 20),
	}
}

func TestStepCheck(t *testing.T) {
	c := Config{KV: KVF32, Blocks: 3, MaxRows: 4, MaxWanted: 2}
	s := good()
	require.NoError(t, s.Check(10, 10, c))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = s.Check(10, 10, c) }))
	for _, bad := range []struct {
		edit func(s *Step)
		want string
	}{
		{func(s *Step) { s.Tokens = nil }, "step of 0 rows, want 1 to 4"},
		{func(s *Step) { s.Tokens = make([]int32, 5) }, "step of 5 rows, want 1 to 4"},
		{func(s *Step) { s.Tokens[2] = 10 }, "row 2: token 10, want 0 to 9"},
		{func(s *Step) { s.Spans[1].Row = 2 }, "span 1: 3 rows from row 2 at position 0, want rows from 1 on"},
		{func(s *Step) { s.Spans[1].Rows = 2 }, "spans cover 3 rows of 4"},
		{func(s *Step) { s.Spans[0].Table = s.Spans[0].Table[:1] }, "span 0: 1 KV blocks do not hold 65 positions"},
		{func(s *Step) { s.Spans[0].Table[1] = 3 }, "span 0: KV block 3, want 0 to 2"},
		{func(s *Step) { s.Wanted = []int32{0, 1, 2} }, "logits of 3 rows wanted, want at most 2"},
		{func(s *Step) { s.Wanted = []int32{3, 0} }, "logits of row 0 wanted after row 3 of 4"},
		{func(s *Step) { s.Logits = s.Logits[:19] }, "memory for 19 logits, want 20"},
	} {
		s := good()
		bad.edit(s)
		require.EqualError(t, s.Check(10, 10, c), bad.want)
	}
}
