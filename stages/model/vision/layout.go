package vision

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Layout is how the patches of one picture lie in the rows of a step.
type Layout struct {
	Grid    ir.Grid    // of patches
	Text    ir.Grid    // of rows of text
	Order   []int      // by row: its patch, line by line; −1: the class
	Windows []int      // rows of one window after another
	Places  []ir.Place // by row: line and column of its patch
}

// Layout finds how a picture of so many pixels is computed.
func (t *Tower) Layout(height, width int) (*Layout, error) {
	unit := t.Patch * t.Merge
	switch {
	case t.Image > 0 && (height != t.Image || width != t.Image):
		return nil, fmt.Errorf("a picture of %d × %d pixels, want %d × %d", width, height, t.Image, t.Image)
	case height < unit || width < unit || height%unit != 0 || width%unit != 0:
		return nil, fmt.Errorf("a picture of %d × %d pixels, want multiples of %d", width, height, unit)
	}
	l := &Layout{Grid: ir.Grid{Height: height / t.Patch, Width: width / t.Patch},
		Text: ir.Grid{Height: height / unit, Width: width / unit}}
	if t.class {
		l.add(-1)
	}
	switch {
	case t.Image > 0: // positions are by number: patches lie line by line
		for p := range l.Grid.Height * l.Grid.Width {
			l.add(p)
		}
	case t.window == 0:
		t.square(l, 0, 0, l.Text.Height, l.Text.Width)
	default:
		for top := 0; top < l.Text.Height; top += t.window {
			for left := 0; left < l.Text.Width; left += t.window {
				t.square(l, top, left, min(top+t.window, l.Text.Height), min(left+t.window, l.Text.Width))
			}
		}
	}
	if len(l.Windows) == 0 {
		l.Windows = []int{len(l.Order)}
	}
	return l, nil
}

// square adds the patches of a rectangle of rows of text as one window.
func (t *Tower) square(l *Layout, top, left, bottom, right int) {
	before := len(l.Order)
	for down := top; down < bottom; down++ {
		for across := left; across < right; across++ {
			for i := range t.Merge * t.Merge {
				l.add((down*t.Merge+i/t.Merge)*l.Grid.Width + across*t.Merge + i%t.Merge)
			}
		}
	}
	l.Windows = append(l.Windows, len(l.Order)-before)
}

func (l *Layout) add(patch int) {
	l.Order = append(l.Order, patch)
	at := ir.Place{}
	if patch >= 0 {
		at = ir.Place{0, int32(patch / l.Grid.Width), int32(patch % l.Grid.Width)}
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
	return rows
}

// First is the input of that name: it has the learned class added to the first row alone.
func (t *Tower) First(l *Layout) []float32 {
	if !t.class {
		return nil
	}
	width := t.Patches.Widths[t.input(First)]
	rows := make([]float32, len(l.Order)*width)
	for i := range width {
		rows[i] = 1
	}
	return rows
}

func (t *Tower) input(name string) ir.Value {
	v, _ := t.Patches.Input(name)
	return v
}

// Interpolated is the input Positions: each patch's is between the four nearest of the learned table, which lies line
// by line.
func (t *Tower) Interpolated(l *Layout, table []float32) []float32 {
	if t.grid == 0 {
		return nil
	}
	width := t.Patches.Widths[t.input(Positions)]
	rows := make([]float32, len(l.Order)*width)
	for r, patch := range l.Order {
		y0, y1, y := between(patch/l.Grid.Width, l.Grid.Height, t.grid)
		x0, x1, x := between(patch%l.Grid.Width, l.Grid.Width, t.grid)
		for i := range width {
			at := func(line, column int) float32 { return table[(line*t.grid+column)*width+i] }
			rows[r*width+i] = at(y0, x0)*(1-y)*(1-x) + at(y0, x1)*(1-y)*x + at(y1, x0)*y*(1-x) + at(y1, x1)*y*x
		}
	}
	return rows
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
	joined := make([]float32, 0, len(at)*width)
	for down := range l.Text.Height {
		for across := range l.Text.Width {
			for i := range t.Merge * t.Merge {
				r := at[(down*t.Merge+i/t.Merge)*l.Grid.Width+across*t.Merge+i%t.Merge]
				joined = append(joined, rows[r*width:][:width]...)
			}
		}
	}
	return joined
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
