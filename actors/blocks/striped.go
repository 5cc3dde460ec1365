package blocks

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
)

// Stripes says how a picture is computed by Striped.
type Stripes struct {
	Grid  ir.Grid
	Bytes int64                 // of a stripe's values, at most, if one of a single line has room; 0: no bound
	Done  func(part, parts int) // is told after each part; nil: nobody asks
}

// Striped computes a picture run by run: each of them for all of the picture, by stripes of as many lines as memory is
// given for. A stripe has more lines at both sides, as many as the run's windows reach beyond it, whose results are
// dropped. So results have the bits of a step that has the whole picture. A run with an op that sees all of a picture
// is computed whole. Between runs the host holds the values that later ones read. A canceled context ends it after a
// stripe.
func (p *Network) Striped(ctx context.Context, d backend.Device, o Stripes, inputs map[string][]float32) (
	map[string][]float32, error) {
	there := p.given(inputs)
	for v, rows := range there {
		if want := o.Grid.Height * o.Grid.Width * p.Widths[v]; len(rows) != want {
			return nil, fmt.Errorf("an input of %d numbers, want %d", len(rows), want)
		}
	}
	parts, done := 0, 0
	plans := make([]stripes, len(p.Runs))
	for i, run := range p.Runs {
		plans[i] = p.stripes(run, &o)
		parts += plans[i].count(o.Grid.Height)
	}
	for i, run := range p.Runs {
		err := p.all(ctx, d, run, plans[i], o.Grid, there, func() {
			if done++; o.Done != nil {
				o.Done(done, parts)
			}
		})
		if err != nil {
			return nil, err
		}
		for v := range there {
			if !p.leaves(v, run) {
				delete(there, v)
			}
		}
	}
	return p.left(there), nil
}

// Needs is how much memory the values of the largest stripe take, at most.
func (p *Network) Needs(o Stripes) (bytes int64) {
	for _, run := range p.Runs {
		s := p.stripes(run, &o)
		bytes = max(bytes, s.line*int64(min(o.Grid.Height, s.lines+2*s.reach)))
	}
	return bytes
}

// stripes is how a run is divided: lines of a stripe, and those beside it that its results depend on, and the bytes of
// all values of a line.
type stripes struct {
	lines, reach int
	line         int64
}

func (s stripes) count(height int) int { return (height + s.lines - 1) / s.lines }

// stripes divides a run.
func (p *Network) stripes(run []int, o *Stripes) stripes {
	reach, line, whole := 0, int64(0), false
	for _, segment := range run {
		for i := range p.Segments[segment].Nodes {
			n := &p.Segments[segment].Nodes[i]
			line += 4 * int64(p.Widths[n.Out]) * int64(o.Grid.Width)
			switch {
			case n.Op == ir.Conv2D:
				reach += n.Conv2D.Reach()
			case !n.Op.ByRow():
				whole = true
			}
		}
	}
	if fits := o.Bytes / max(line, 1); o.Bytes > 0 && !whole && fits < int64(o.Grid.Height) {
		return stripes{int(max(1, fits-2*int64(reach))), reach, line}
	}
	return stripes{o.Grid.Height, 0, line}
}

// all computes a run for all stripes, and puts what others read beside the values that are there.
func (p *Network) all(ctx context.Context, d backend.Device, run []int, s stripes, grid ir.Grid,
	there map[ir.Value][]float32, done func()) (err error) {
	rows := min(grid.Height, s.lines+2*s.reach) * grid.Width
	m, err := p.model(d, run, rows, backend.BlocksFor(rows), false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	for line := 0; line < grid.Height; line += s.lines {
		if err := ctx.Err(); err != nil {
			return err
		}
		from, to := max(0, line-s.reach), min(grid.Height, line+s.lines+s.reach)
		piece := map[ir.Value][]float32{}
		for _, v := range p.Only(run).Taken() {
			piece[v] = there[v][from*grid.Width*p.Widths[v] : to*grid.Width*p.Widths[v]]
		}
		if err := p.pass(m, run, []ir.Grid{{Height: to - from, Width: grid.Width}}, nil, piece); err != nil {
			return err
		}
		p.keep(run, piece, there, grid, from, line, min(grid.Height, line+s.lines))
		done()
	}
	return nil
}

// keep copies lines [line, end) of what a stripe that begins with line from has left.
func (p *Network) keep(run []int, piece, there map[ir.Value][]float32, grid ir.Grid, from, line, end int) {
	for _, segment := range run {
		for _, v := range p.Handed(segment) {
			rows, ok := piece[v]
			if !ok {
				continue
			}
			each := grid.Width * p.Widths[v]
			if there[v] == nil {
				there[v] = make([]float32, grid.Height*each)
			}
			copy(there[v][line*each:end*each], rows[(line-from)*each:])
		}
	}
}
