package backend

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Rows is how many rows the spans have.
func (s *Step) Rows() int {
	if len(s.Spans) == 0 {
		return 0
	}
	last := &s.Spans[len(s.Spans)-1]
	return last.Row + last.Rows
}

// Height is the number of rows that a value has in the step.
func (s *Step) Height(p *ir.Program, v ir.Value) int {
	if p.Axis(v) == ir.WantedRows {
		return len(s.Wanted)
	}
	return s.Rows()
}

// Place is the position of the span's row i on each axis.
func (p *Span) Place(i int) ir.Place { return ir.PlaceOf(p.Places, p.Pos, i) }

// Last is the last position that the span's row i sees where rows do not see all of their text.
func (p *Span) Last(i int) int { return ir.LastOf(p.Sees, p.Pos, i) }

// Frame lists the spans as the loops of ops see them.
func (s *Step) Frame() []ir.Span {
	spans := make([]ir.Span, len(s.Spans))
	for i := range s.Spans {
		p := &s.Spans[i]
		spans[i] = ir.Span{Row: p.Row, Rows: p.Rows, Pos: p.Pos, Grid: p.Grid, Places: p.Places, Sees: p.Sees,
			Heard: p.Heard, Adapters: p.Adapters}
	}
	return spans
}

// Due tracks which segment of a step is to be run next.
type Due struct{ next int }

// Follows returns an error if work is out of order in its step: a model runs its segments in the order of the program,
// each once, whole or part by part, and leaves none out. A device calls it first, and calls Restart when the step is
// finished.
func (d *Due) Follows(c *Layout, w *Work) error {
	if w.Segment < d.next {
		return fmt.Errorf("segment %d is run when segment %d is due", w.Segment, d.next)
	}
	for i := d.next; i < w.Segment; i++ {
		if c.Computes(i) {
			return fmt.Errorf("segment %d is run before segment %d", w.Segment, i)
		}
	}
	if d.next = w.Segment; w.Ends() {
		d.next++
	}
	return nil
}

// Restart has the step begin with the first segment again.
func (d *Due) Restart() { d.next = 0 }

// Check says what is wrong with a step for a model of p with such limits, or nil; drawn is how many draws the step
// before had. It allocates nothing when there is nothing to say.
func (s *Step) Check(p *ir.Program, c *Limits, drawn int) error {
	rows := s.Rows()
	if p.TakesTokens() {
		rows = len(s.Tokens)
	} else if len(s.Tokens) > 0 {
		return fmt.Errorf("%d tokens, and the program takes none", len(s.Tokens))
	}
	if rows == 0 || rows > c.MaxRows {
		return fmt.Errorf("step of %d rows, want 1 to %d", rows, c.MaxRows)
	}
	for i, t := range s.Tokens {
		if int(t) < -drawn || int(t) >= p.Vocab {
			return fmt.Errorf("row %d: token %d, want %d to %d", i, t, -drawn, p.Vocab-1)
		}
	}
	if len(s.Spans) > c.Spans() {
		return fmt.Errorf("step of %d spans, want at most %d", len(s.Spans), c.Spans())
	}
	row := 0
	for i := range s.Spans {
		span := &s.Spans[i]
		if span.Row != row || span.Rows <= 0 || span.Pos < 0 {
			return fmt.Errorf("span %d: %d rows from row %d at position %d, want rows from %d on",
				i, span.Rows, span.Row, span.Pos, row)
		}
		if span.Proposed < 0 || span.Proposed >= span.Rows {
			return fmt.Errorf("span %d: %d of %d rows are proposed, want less than all", i, span.Proposed, span.Rows)
		}
		row += span.Rows
		if end := span.Pos + span.Rows; p.Positions > 0 && end > p.Positions {
			return fmt.Errorf("span %d: %d positions, the model has learned %d", i, end, p.Positions)
		}
		if p.Whole && span.Pos != 0 {
			return fmt.Errorf("span %d: begins at position %d of a text that must be computed as a whole", i, span.Pos)
		}
		if err := span.checkPlaces(p); err != nil {
			return fmt.Errorf("span %d: %w", i, err)
		}
		if len(span.Adapters) > ir.MostApplied {
			return fmt.Errorf("span %d: %d adapters, want at most %d", i, len(span.Adapters), ir.MostApplied)
		}
		for _, a := range span.Adapters {
			if len(a.Updates) != len(p.Sites) {
				return fmt.Errorf("span %d: an adapter of %d matrices, the program has %d", i, len(a.Updates), len(p.Sites))
			}
		}
		if err := span.checkTables(p.Classes, c.Blocks); err != nil {
			return fmt.Errorf("span %d: %w", i, err)
		}
	}
	if row != rows {
		return fmt.Errorf("spans cover %d rows of %d", row, rows)
	}
	return s.checkWanted(p.OutputWidth(), rows, c)
}

// checkPlaces wants a picture where the program takes pictures, and places of all rows or of none.
func (p *Span) checkPlaces(of *ir.Program) error {
	if h, w := p.Grid.Height, p.Grid.Width; of.Grid && (h <= 0 || w <= 0 || p.Rows%w != 0 || p.Rows/w != h) {
		return fmt.Errorf("a picture of %d lines of %d in %d rows, want all of its rows", h, w, p.Rows)
	}
	if p.Places != nil && len(p.Places) != p.Rows {
		return fmt.Errorf("places of %d rows, want %d", len(p.Places), p.Rows)
	}
	if p.Sees != nil && len(p.Sees) != p.Rows {
		return fmt.Errorf("what %d rows see, want %d", len(p.Sees), p.Rows)
	}
	if p.Heard < 0 || p.Heard > 0 && !of.Hears {
		return fmt.Errorf("an encoder read %d positions, of a program that hears: %t", p.Heard, of.Hears)
	}
	for i, last := range p.Sees {
		if before := i > 0 && last < p.Sees[i-1]; before || int(last) < p.Pos+i || int(last) >= p.Pos+p.Rows {
			return fmt.Errorf("row %d sees up to position %d: want its own up to the span's last, and no row less than one before",
				i, last)
		}
	}
	return nil
}

// checkTables checks that the tables reach over all that the span's rows see and write, and name blocks that exist.
func (p *Span) checkTables(classes []ir.Class, blocks []int) error {
	if len(p.Tables) != len(classes) {
		return fmt.Errorf("KV tables of %d cache classes, want %d", len(p.Tables), len(classes))
	}
	for i, class := range classes {
		t, end := &p.Tables[i], p.Pos+p.Rows
		if t.Room() < end {
			return fmt.Errorf("%d KV blocks from %d on do not hold %d positions", len(t.Blocks), t.First, end)
		}
		if seen := class.First(p.Pos) / BlockSize; t.First < 0 || t.First > seen {
			return fmt.Errorf("KV blocks before %d are not there, the row at position %d sees them from %d on",
				t.First, p.Pos, seen)
		}
		if len(t.Blocks) > blocks[i] {
			return fmt.Errorf("%d KV blocks of a sequence, there are %d", len(t.Blocks), blocks[i])
		}
		for _, b := range t.Blocks {
			if b < 0 || int(b) >= blocks[i] {
				return fmt.Errorf("KV block %d, want 0 to %d", b, blocks[i]-1)
			}
		}
	}
	return nil
}

func (s *Step) checkWanted(outputs, rows int, c *Limits) error {
	if len(s.Wanted) > c.MaxWanted {
		return fmt.Errorf("logits of %d rows wanted, want at most %d", len(s.Wanted), c.MaxWanted)
	}
	last := int32(-1)
	for _, r := range s.Wanted {
		if r <= last || int(r) >= rows {
			return fmt.Errorf("logits of row %d wanted after row %d of %d", r, last, rows)
		}
		last = r
	}
	if len(s.Logits) < len(s.Wanted)*outputs {
		return fmt.Errorf("memory for %d logits, want %d", len(s.Logits), len(s.Wanted)*outputs)
	}
	return nil
}
