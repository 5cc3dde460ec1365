package exec

import (
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/plan"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// fill writes what kernels read of a step. A shape has as many rows as RowClass says; kernels read how many are in use,
// and store nothing of the others.
func (m *model) fill(x *entry) {
	p, e, step := m.layout.plan, &m.layout.plan.Entry, x.step
	x.shape = plan.Shape{Rows: plan.RowClass(step.Rows()), Prompt: m.layout.apart && step.Prompt, Alone: true}
	if len(m.layout.program.States) > 0 {
		x.shape.Spans = plan.RowClass(len(step.Spans))
	}
	if n := len(step.Wanted); n > 0 {
		x.shape.Wanted = plan.RowClass(n)
	}
	rows, wanted := x.shape.Rows, x.shape.Wanted
	copy(words[int32](x.block, e.IDs, rows), step.Tokens)
	clear(words[int32](x.block, e.IDs, rows)[len(step.Tokens):])
	if wanted > 0 {
		copy(words[int32](x.block, e.Wanted, wanted), step.Wanted)
		clear(words[int32](x.block, e.Wanted, wanted)[len(step.Wanted):])
	}
	for i, there := range [...]int{step.Rows(), len(step.Wanted)} {
		left := words[uint32](x.block, e.Left[i], p.Capacity(i == 1)/kernel.MaxColumns+1)
		for c := range left {
			left[c] = uint32(max(0, there-c*kernel.MaxColumns))
		}
	}
	m.fillRows(x, e)
	m.fillAngles(x, e)
	fillPositions(x, e)
	fillDraws(x, e)
	fillTexts(x, e)
	words[uint32](x.result, plan.ResultStatus, 1)[0] = 0
}

// fillTexts writes which rows are whose, and the grid of a picture, if launches read that.
func fillTexts(x *entry, e *plan.Entry) {
	if !e.HasTexts {
		return
	}
	all := words[kernel.Text](x.block, e.Texts, len(x.step.Spans)+1)
	for i := range x.step.Spans {
		span := &x.step.Spans[i]
		all[i] = kernel.Text{Row: uint32(span.Row), Rows: uint32(span.Rows), Position: uint32(span.Pos),
			Height: uint32(span.Grid.Height), Width: uint32(span.Grid.Width)}
	}
	all[len(x.step.Spans)] = kernel.Text{}
}

// fillDraws writes how the tokens of wanted rows are drawn.
func fillDraws(x *entry, e *plan.Entry) {
	x.shape.Logits = len(x.step.Draws) == 0
	all := words[byte](x.block, e.Draws, kernel.DrawBytes*x.shape.Wanted)
	for i := range x.shape.Wanted {
		var d *backend.Draw
		if i < len(x.step.Draws) {
			d = &x.step.Draws[i]
			x.shape.Logits = x.shape.Logits || d.Host
			x.shape.Draws = x.shape.Draws || !d.Host
			if d.Host || d.Temp <= 0 {
				d = nil // the host draws, or the likeliest token is taken, which ArgMax finds for all rows
			} else {
				x.shape.Samples = true
			}
		}
		kernel.PutDraw(all[kernel.DrawBytes*i:], d)
	}
}

// fillRows writes, for each row, or each span where states are kept, its position and where its sequence's blocks are
// listed.
func (m *model) fillRows(x *entry, e *plan.Entry) {
	tables, at := words[int32](x.tables, 0, int(x.tables.Size)/4), 0
	for c, class := range m.layout.program.Classes {
		for i := range x.step.Spans {
			span := &x.step.Spans[i]
			t := &span.Tables[c]
			if table := uint32(at - t.First); class.State {
				words[kernel.Span](x.block, e.Spans[c]+kernel.SpanBytes*i, 1)[0] = kernel.Span{Row: uint32(span.Row),
					Rows: uint32(span.Rows), Position: uint32(span.Pos), Table: table, Kept: uint32(span.Kept())}
			} else {
				fillSpan(x, e, c, span, table)
			}
			at += copy(tables[at:], t.Blocks)
		}
		if class.State {
			clear(words[kernel.Span](x.block, e.Spans[c], x.shape.Spans)[len(x.step.Spans):])
		} else {
			clear(words[kernel.Row](x.block, e.Rows[c], x.shape.Rows)[x.step.Rows():])
		}
	}
	for i := range x.step.Spans {
		span := &x.step.Spans[i]
		x.shape.Alone = x.shape.Alone && span.Rows == 1
		x.shape.Deep = x.shape.Deep || span.Pos+span.Rows > plan.Deepest
	}
}

// fillSpan is fillRows for the rows of a span, in one class.
func fillSpan(x *entry, e *plan.Entry, class int, span *backend.Span, table uint32) {
	rows := words[kernel.Row](x.block, e.Rows[class]+8*span.Row, span.Rows)
	for j := range rows {
		rows[j] = kernel.Row{Position: uint32(span.Pos + j), Table: table}
	}
	if e.LooksAhead {
		ends := words[kernel.Row](x.block, e.Ends[class]+8*span.Row, span.Rows)
		for j := range ends {
			ends[j] = kernel.Row{Position: uint32(span.Pos + span.Rows - 1), Table: table}
		}
	}
}

// fillPositions writes what else depends on a row's position: factors of Temper and numbers of table rows.
func fillPositions(x *entry, e *plan.Entry) {
	for i := range x.step.Spans {
		span := &x.step.Spans[i]
		for t := range e.Factors {
			factors := words[float32](x.block, e.Tempers[t]+4*span.Row, span.Rows)
			for j := range factors {
				factors[j] = e.Factors[t].Of(span.Pos + j)
			}
		}
		for n := range e.Numberings {
			numbers := words[uint32](x.block, e.Numbers[n]+4*span.Row, span.Rows)
			e.Numberings[n].Fill(numbers, x.step.Tokens[span.Row:], span.Pos)
		}
	}
}

func (m *model) fillAngles(x *entry, e *plan.Entry) {
	for i, r := range e.Rotations {
		var divisors []float32
		if r.Divisor != ir.NoRef {
			divisors = m.weights.all[r.Divisor].host
		}
		all := words[float32](x.block, e.Angles[i], x.shape.Rows*r.Args.Dims)
		for j := range x.step.Spans {
			span := &x.step.Spans[j]
			for k := range span.Rows {
				at := (span.Row + k) * r.Args.Dims
				kernel.Angles(all[at:at:at+r.Args.Dims], r.Args, divisors, span.Place(k))
			}
		}
	}
}
