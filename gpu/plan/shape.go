package plan

// Shape is all that a stream of launches depends on. Everything else of a step is in memory.
// Wide: each is one thing that launches depend on.
type Shape struct {
	From, To     int  // segments, from the first to the last
	Rows, Wanted int  // as RowClass rounds them; 0 wanted: none
	Spans        int  // spans, rounded likewise, where the program keeps states; else 0
	Prompt       bool // rows are of prompts, of a program that Table.Apart says yes to
	Alone        bool // no two rows are of one sequence
	Adapted      bool // some row has adapters
	Deep         bool // a row's position is beyond Deepest
	Logits       bool // the host reads them
	Draws        bool // tokens are drawn on the device
	Samples      bool // some tokens are sampled, not the likeliest ones

	// For a segment whose groups move, else zero.
	Portion     Portion
	Group, Slot int // the group whose matrices it reads, and the slot where they lie
	Part        int // number of a part of experts
}

// Portion says which launches of its segments a stream has.
type Portion uint8

// Portions of a segment that is computed group by group.
const (
	Whole  Portion = iota
	Before         // before the first group
	Among          // with one group, or one part
	After
)

// Deepest is the last position at which kernel.MostSplits is at its least.
const Deepest = 2046

func (s *Shape) depth() int {
	if s.Deep {
		return 1 << 30
	}
	return Deepest
}

// RowClass rounds a number of rows up to a power of two, beyond 128 to a multiple of 64: padding rows cost as much as
// others.
func RowClass(n int) int {
	const tile = 64
	if n > 2*tile {
		return (n + tile - 1) / tile * tile
	}
	c := 1
	for c < n {
		c *= 2
	}
	return c
}
