package vision

import (
	"fmt"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Layout is how the patches of one picture lie in the rows of a step.
type Layout struct {
	Grid    ir.Grid    // of patches
	Text    ir.Grid    // of rows of text, without what stands between their lines
	Order   []int      // by row: its patch, line by line; −1: the class
	Windows []int      // rows of one window after another
	Places  []ir.Place // by row: line and column of its patch
}

// Layout finds how a picture of so many pixels is computed.
func (t *Tower) Layout(height, width int) (*Layout, error) {
	unit := t.Patch * t.Merge
	switch {
	case t.Tiles && (height < t.Image || height%t.Image != 0 || width != t.Image):
		return nil, fmt.Errorf("a picture of %d × %d pixels, want squares of %d, one below another", width, height, t.Image)
	case !t.Tiles && t.Image > 0 && (height != t.Image || width != t.Image):
		return nil, fmt.Errorf("a picture of %d × %d pixels, want %d × %d", width, height, t.Image, t.Image)
	case height < unit || width < unit || height%unit != 0 || width%unit != 0:
		return nil, fmt.Errorf("a picture of %d × %d pixels, want multiples of %d", width, height, unit)
	}
	l := &Layout{Grid: ir.Grid{Height: height / t.Patch, Width: width / t.Patch},
		Text: ir.Grid{Height: height / unit, Width: width / unit}}
	switch {
	case t.learned == byAxis && max(l.Grid.Height, l.Grid.Width) > t.grid:
		return nil, fmt.Errorf("a picture of %d × %d patches, and a side has positions for %d", l.Grid.Width, l.Grid.Height,
			t.grid)
	case t.Image > 0: // positions are by number: patches lie line by line
		t.lines(l, width/t.Patch)
	case t.window == 0:
		t.square(l, 0, 0, l.Text.Height, l.Text.Width)
	default:
		for top := 0; top < l.Text.Height; top += t.window {
			for left := 0; left < l.Text.Width; left += t.window {
				t.square(l, top, left, min(top+t.window, l.Text.Height), min(left+t.window, l.Text.Width))
			}
		}
	}
	return l, nil
}

// lines adds one square after another, line by line, each with its class, as windows.
func (t *Tower) lines(l *Layout, side int) {
	for from := 0; from < l.Grid.Height*l.Grid.Width; from += side * side {
		before := len(l.Order)
		if t.class && !t.behind {
			l.add(-1, 0)
		}
		for p := range side * side {
			l.add(from+p, t.first)
		}
		if t.class && t.behind {
			l.add(-1, 0)
		}
		l.Windows = append(l.Windows, len(l.Order)-before)
	}
}

// square adds the patches of a rectangle of rows of text as one window.
func (t *Tower) square(l *Layout, top, left, bottom, right int) {
	before := len(l.Order)
	for down := top; down < bottom; down++ {
		for across := left; across < right; across++ {
			for i := range t.Merge * t.Merge {
				l.add((down*t.Merge+i/t.Merge)*l.Grid.Width+across*t.Merge+i%t.Merge, t.first)
			}
		}
	}
	l.Windows = append(l.Windows, len(l.Order)-before)
}

// add adds a row. Lines and columns are counted from first on.
func (l *Layout) add(patch, first int) {
	l.Order = append(l.Order, patch)
	at := ir.Place{}
	if patch >= 0 {
		at = ir.Place{0, int32(first + patch/l.Grid.Width), int32(first + patch%l.Grid.Width)}
	}
	l.Places = append(l.Places, at)
}

// Cut takes the values of a picture's patches, in the order of rows: those of a patch lie colour by colour.
func (t *Tower) Cut(l *Layout, p *Picture) []float32 {
	side := t.Patch
	rows := make([]float32, 0, len(l.Order)*3*side*side)
	for _, patch := range l.Order {
		if patch < 0 {
			rows = append(rows, make([]float32, 3*side*side)...)
			continue
		}
		top, left := patch/l.Grid.Width*side, patch%l.Grid.Width*side
		for colour := range 3 {
			for y := range side {
				rows = append(rows, p.Values[(colour*p.Height+top+y)*p.Width+left:][:side]...)
			}
		}
	}
	if t.centered {
		for i, x := range rows {
			rows[i] = 2*x - 1
		}
	}
	return rows
}

// First is the input of that name: it has the learned class added to the row of the class alone.
func (t *Tower) First(l *Layout) []float32 {
	if !t.class {
		return nil
	}
	width := t.Patches.Widths[t.input(First)]
	rows := make([]float32, len(l.Order)*width)
	for r, patch := range l.Order {
		if patch >= 0 {
			continue
		}
		for i := range width {
			rows[r*width+i] = 1
		}
	}
	return rows
}

func (t *Tower) input(name string) ir.Value {
	v, _ := t.Patches.Input(name)
	return v
}

// Learned is the input Positions, made of the table of learned ones; nil: there is none.
func (t *Tower) Learned(l *Layout, table []float32) []float32 {
	if t.learned == byNumber {
		return nil
	}
	width := t.Patches.Widths[t.input(Positions)]
	rows := make([]float32, len(l.Order)*width)
	for r, patch := range l.Order {
		t.learn(rows[r*width:][:width], table, l.Grid, patch/l.Grid.Width, patch%l.Grid.Width)
	}
	return rows
}

// learn adds the learned positions of a patch, each as much as it counts.
func (t *Tower) learn(row, table []float32, grid ir.Grid, line, column int) {
	add := func(at int, factor float32) {
		for i := range row {
			row[i] += factor * table[at*len(row)+i]
		}
	}
	switch t.learned {
	case byAxis:
		add(column, 1)
		add(t.grid+line, 1)
	case byPart:
		add(line*t.grid/grid.Height*t.grid+column*t.grid/grid.Width, 1)
	case linear:
		y0, y1, y := between(line, grid.Height, t.grid)
		x0, x1, x := between(column, grid.Width, t.grid)
		add(y0*t.grid+x0, (1-y)*(1-x))
		add(y0*t.grid+x1, (1-y)*x)
		add(y1*t.grid+x0, y*(1-x))
		add(y1*t.grid+x1, y*x)
	case cubic:
		y0, y := around(line, grid.Height, t.grid)
		x0, x := around(column, grid.Width, t.grid)
		for i := range y {
			for j := range x {
				add(min(max(y0+i, 0), t.grid-1)*t.grid+min(max(x0+j, 0), t.grid-1), y[i]*x[j])
			}
		}
	}
}

// around finds the four learned positions around point i of n that lie as far apart, from their first one on, and how
// much each counts: by the cubic curves that PyTorch has, whose steepness is −0.75.
func around(i, n, learned int) (first int, by [4]float32) {
	const a = -0.75
	at := (float64(i)+0.5)*float64(learned)/float64(n) - 0.5
	low := math.Floor(at)
	for j := range by {
		d := math.Abs(at - low + 1 - float64(j))
		if d <= 1 {
			by[j] = float32(((a+2)*d-(a+3))*d*d + 1)
		} else {
			by[j] = float32(((a*d-5*a)*d+8*a)*d - 4*a)
		}
	}
	return int(low) - 1, by
}

// between finds where point i of n lies among so many learned ones, from the first to the last.
func between(i, n, learned int) (low, high int, part float32) {
	at := float32(0)
	if n > 1 {
		at = float32(i) * float32(learned-1) / float32(n-1)
	}
	low = int(at)
	return low, min(low+1, learned-1), at - float32(low)
}

// Join puts the patches that become one row of text side by side, and these rows line by line.
func (t *Tower) Join(l *Layout, rows []float32, width int) []float32 {
	at := make([]int, l.Grid.Height*l.Grid.Width) // by patch
	for r, patch := range l.Order {
		if patch >= 0 {
			at[patch] = r
		}
	}
	n := t.Merge * t.Merge
	joined := make([]float32, 0, len(at)*width)
	for down := range l.Text.Height {
		for across := range l.Text.Width {
			from := len(joined)
			for i := range n {
				r := at[(down*t.Merge+i/t.Merge)*l.Grid.Width+across*t.Merge+i%t.Merge]
				joined = append(joined, rows[r*width:][:width]...)
			}
			if t.inner {
				exchange(joined[from:], n)
			}
		}
	}
	return joined
}

// exchange has the values of n vectors that lie one after another lie feature by feature.
func exchange(x []float32, n int) {
	was := slices.Clone(x)
	width := len(x) / n
	for i, v := range was {
		x[i%width*n+i/width] = v
	}
}

// Between puts what stands between lines of a picture's rows where it belongs, and says how the rows lie then.
func (t *Tower) Between(grid ir.Grid, rows, between []float32) (ir.Grid, []float32) {
	if len(between) == 0 {
		return grid, rows
	}
	line := grid.Width * len(between)
	out := make([]float32, 0, len(rows)+(grid.Height-1)*len(between))
	for i := range grid.Height {
		if i > 0 {
			out = append(out, between...)
		}
		out = append(out, rows[i*line:][:line]...)
	}
	return ir.Grid{Height: 1, Width: len(out) / len(between)}, out
}

// Placed is how a picture's rows lie in a text.
func (t *Tower) Placed(l *Layout) ir.Grid {
	switch {
	case t.Asks > 0:
		return ir.Grid{Height: 1, Width: t.Asks}
	case t.Break == "":
		return l.Text
	}
	return ir.Grid{Height: 1, Width: l.Text.Height*(l.Text.Width+1) - 1}
}

// Unfold makes a picture of its patches' values as Qwen's processors lay them out: a row a patch, those of one row of
// text one after another; each row has the patch's lines colour by colour, each colour's as often as there are frames.
func Unfold(rows []float32, grid ir.Grid, patch, merge, frames int) (*Picture, error) {
	p := &Picture{Height: grid.Height * patch, Width: grid.Width * patch}
	if merge < 1 || grid.Height%merge != 0 || grid.Width%merge != 0 || len(rows) != 3*frames*p.Height*p.Width {
		return nil, fmt.Errorf("%d values of %d × %d patches in blocks of %d × %d: want %d",
			len(rows), grid.Width, grid.Height, merge, merge, 3*frames*p.Height*p.Width)
	}
	p.Values = make([]float32, 3*p.Height*p.Width)
	for top := 0; top < grid.Height; top += merge {
		for left := 0; left < grid.Width; left += merge {
			for i := range merge * merge {
				for colour := range 3 {
					for y := range patch {
						at := (colour*p.Height+(top+i/merge)*patch+y)*p.Width + (left+i%merge)*patch
						copy(p.Values[at:at+patch], rows[y*patch:])
					}
					rows = rows[frames*patch*patch:]
				}
			}
		}
	}
	return p, nil
}
