package backend

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

func good() *Step {
	return &Step{
		Tokens: []int32{1, 2, 3, 4},
		Spans: []Span{
			{Rows: 1, Pos: 130, Tables: []Table{{Blocks: []int32{0, 2, 4}}, {1, []int32{2, 0}}}},
			{Row: 1, Rows: 3, Tables: []Table{{Blocks: []int32{1}}, {Blocks: []int32{1}}}},
		},
		Wanted: []int32{0, 3},
		Logits: make([]float32, 20),
	}
}

func TestStepCheck(t *testing.T) {
	p, c := toTens(), &Limits{KV: KVF32, Blocks: []int{5, 3}, MaxRows: 4, MaxWanted: 2}
	s := good()
	require.NoError(t, s.Check(p, c, 0))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = s.Check(p, c, 0) }))
	for _, bad := range []struct {
		edit func(s *Step)
		want string
	}{
		{func(s *Step) { s.Tokens = nil }, "step of 0 rows, want 1 to 4"},
		{func(s *Step) { s.Tokens = make([]int32, 5) }, "step of 5 rows, want 1 to 4"},
		{func(s *Step) { s.Tokens[2] = 10 }, "row 2: token 10, want 0 to 9"},
		{func(s *Step) { s.Tokens[2] = DrawOf(0) }, "row 2: token -1, want 0 to 9"},
		{func(s *Step) { s.Spans[1].Row = 2 }, "span 1: 3 rows from row 2 at position 0, want rows from 1 on"},
		{func(s *Step) { s.Spans[1].Proposed = 3 }, "span 1: 3 of 3 rows are proposed, want less than all"},
		{func(s *Step) { s.Spans[1].Proposed = -1 }, "span 1: -1 of 3 rows are proposed, want less than all"},
		{func(s *Step) { s.Spans[1].Rows = 2 }, "spans cover 3 rows of 4"},
		{func(s *Step) { s.Spans[0].Tables = s.Spans[0].Tables[:1] }, "span 0: KV tables of 1 cache classes, want 2"},
		{func(s *Step) { s.Spans[0].Tables[0].Blocks = []int32{0, 2} },
			"span 0: 2 KV blocks from 0 on do not hold 131 positions"},
		{func(s *Step) { s.Spans[0].Tables[1].Blocks = []int32{2} },
			"span 0: 1 KV blocks from 1 on do not hold 131 positions"},
		{func(s *Step) { s.Spans[0].Tables[0].Blocks[1] = 5 }, "span 0: KV block 5, want 0 to 4"},
		{func(s *Step) { s.Spans[0].Tables[1].Blocks[1] = 3 }, "span 0: KV block 3, want 0 to 2"},
		{func(s *Step) { s.Spans[0].Tables[0].Blocks = make([]int32, 6) }, "span 0: 6 KV blocks of a sequence, there are 5"},
		{func(s *Step) { s.Spans[0].Tables[0] = Table{1, []int32{0, 2}} },
			"span 0: KV blocks before 1 are not there, the row at position 130 sees them from 0 on"},
		{func(s *Step) { s.Spans[0].Pos = 129 },
			"span 0: KV blocks before 1 are not there, the row at position 129 sees them from 0 on"},
		{func(s *Step) { s.Spans[1].Tables[1].First = -1 }, "span 1: 1 KV blocks from -1 on do not hold 3 positions"},
		{func(s *Step) { s.Wanted = []int32{0, 1, 2} }, "logits of 3 rows wanted, want at most 2"},
		{func(s *Step) { s.Wanted = []int32{3, 0} }, "logits of row 0 wanted after row 3 of 4"},
		{func(s *Step) { s.Logits = s.Logits[:19] }, "memory for 19 logits, want 20"},
	} {
		s := good()
		bad.edit(s)
		require.EqualError(t, s.Check(p, c, 0), bad.want)
	}
	few := *c
	few.MaxSpans = 1
	require.EqualError(t, good().Check(p, &few, 0), "step of 2 spans, want at most 1")
	require.Equal(t, []int{1, 4}, []int{few.Spans(), c.Spans()})
}

// toTens has ten tokens, a class that sees all, and one of which the row at 130 sees no position before 64.
func toTens() *ir.Program {
	return &ir.Program{Vocab: 10, Widths: []int{10}, Classes: []ir.Class{{}, {Window: 67}},
		Segments: []ir.Segment{{Kind: ir.SegHead}}, Inputs: []ir.Input{{Name: "tokens", Value: ir.NoValue}},
		Outputs: []ir.Output{{Name: "logits"}}}
}

func TestStepCheckDraws(t *testing.T) {
	p, c := toTens(), &Limits{KV: KVF32, Blocks: []int{5, 3}, MaxRows: 4, MaxWanted: 2}
	s := good()
	s.Tokens[0] = DrawOf(1)
	require.NoError(t, s.Check(p, c, 2))
	require.EqualError(t, s.Check(p, c, 1), "row 0: token -2, want -1 to 9")
}

// threeGroups has a weight in each of three segments, and two cache classes.
func threeGroups() *ir.Bound {
	p := &ir.Bound{Program: &ir.Program{Segments: make([]ir.Segment, 3), Weights: make([]ir.Weight, 3),
		Classes: make([]ir.Class, 2)}, Types: []quant.Type{quant.F32, quant.F32, quant.F32}}
	for s := range p.Segments {
		p.Segments[s].Nodes = []ir.Node{{Op: ir.Linear, W: ir.Ref(s), B: ir.NoRef}}
	}
	return p
}

func TestConfigCheck(t *testing.T) {
	p := threeGroups()
	host, own := Traits{Flight: 1, Memory: HostMemory}, Traits{Flight: 3, Shares: true, Memory: OwnMemory}
	config := func(edit func(*Config)) *Config {
		c := &Config{Limits: Limits{KV: KVF32, Blocks: []int{1, 1}, MaxRows: 1}}
		edit(c)
		return c
	}
	require.NoError(t, config(func(*Config) {}).Check(p, host))
	require.NoError(t, config(func(c *Config) { c.Slots = [][]int{{0}, {1, 2}, {1, 2}} }).Check(p, own))
	require.NoError(t, config(func(c *Config) { c.Segments, c.Slots = []int{0, 2}, [][]int{{0}, {1}} }).Check(p, host))
	for _, bad := range []struct {
		edit   func(*Config)
		traits Traits
		want   string
	}{
		{func(c *Config) { c.KV = KV{} }, host, `cache format "" has no form for K or V: want f32, f16, q8, q5, q4, tq4 or tq3`},
		{func(c *Config) { c.Blocks[1] = 0 }, host,
			"[1 0] KV blocks, 1 rows, 0 wanted: want at least one block and one row"},
		{func(c *Config) { c.Blocks = []int{3} }, host, "KV blocks of 1 cache classes: the program has 2"},
		{func(c *Config) { c.Flight = 2 }, host, "2 steps in flight: the device has room for 1"},
		{func(c *Config) { c.Weights = InPlace{} }, own, "weights in place: the device cannot read the program's memory"},
		{func(c *Config) { c.Segments = []int{1, 0} }, host, "segments [1 0]: want ascending numbers below 3"},
		{func(c *Config) { c.Segments = []int{3} }, host, "segments [3]: want ascending numbers below 3"},
		{func(c *Config) { c.Slots = [][]int{{0, 1}, {2}} }, host,
			"slot 0 is for 2 groups: on this device each group keeps its own"},
		{func(c *Config) { c.Slots = [][]int{{0}, {3}} }, own, "slot 1 is for group 3 of 3"},
		{func(c *Config) { c.Slots = [][]int{{0}, {2}} }, own, "no slot is for group 1"},
	} {
		require.EqualError(t, config(bad.edit).Check(p, bad.traits), bad.want)
	}
}

// TestStepCheckPictures: rows of pictures are those of their lines, and no tokens.
func TestStepCheckPictures(t *testing.T) {
	p := &ir.Program{Grid: true, Whole: true, Inputs: []ir.Input{{Name: "picture"}}, Segments: []ir.Segment{{Kind: ir.SegBlock}}}
	c := &Limits{MaxRows: 12}
	good := func() *Step {
		return &Step{Spans: []Span{{Rows: 6, Grid: ir.Grid{Height: 2, Width: 3}},
			{Row: 6, Rows: 4, Grid: ir.Grid{Height: 1, Width: 4}, Places: make([]ir.Place, 4)}}}
	}
	require.NoError(t, good().Check(p, c, 0))
	require.Equal(t, ir.Place{3, 3, 3}, good().Spans[0].Place(3))
	require.Equal(t, ir.Place{}, good().Spans[1].Place(3))
	for _, bad := range []struct {
		edit func(s *Step)
		want string
	}{
		{func(s *Step) { s.Spans = nil }, "step of 0 rows, want 1 to 12"},
		{func(s *Step) { s.Spans[1].Rows, s.Spans[1].Grid.Width = 7, 7 }, "step of 13 rows, want 1 to 12"},
		{func(s *Step) { s.Tokens = []int32{0} }, "1 tokens, and the program takes none"},
		{func(s *Step) { s.Spans[0].Grid.Width = 2 }, "span 0: a picture of 2 lines of 2 in 6 rows, want all of its rows"},
		{func(s *Step) { s.Spans[0].Grid = ir.Grid{} }, "span 0: a picture of 0 lines of 0 in 6 rows, want all of its rows"},
		{func(s *Step) { s.Spans[1].Places = s.Spans[1].Places[:3] }, "span 1: places of 3 rows, want 4"},
		{func(s *Step) { s.Spans[1].Sees = []int32{3} }, "span 1: what 1 rows see, want 4"},
		{func(s *Step) { s.Spans[1].Sees = []int32{2, 1, 2, 3} }, "span 1: row 1 sees up to position 1: want its own up to " +
			"the span's last, and no row less than one before"},
		{func(s *Step) { s.Spans[1].Sees = []int32{0, 0, 2, 3} }, "span 1: row 1 sees up to position 0: want its own up to " +
			"the span's last, and no row less than one before"},
		{func(s *Step) { s.Spans[1].Sees = []int32{0, 1, 2, 4} }, "span 1: row 3 sees up to position 4: want its own up to " +
			"the span's last, and no row less than one before"},
		{func(s *Step) { s.Spans[1].Pos = 1 }, "span 1: begins at position 1 of a text that must be computed as a whole"},
	} {
		s := good()
		bad.edit(s)
		require.EqualError(t, s.Check(p, c, 0), bad.want)
	}
}
