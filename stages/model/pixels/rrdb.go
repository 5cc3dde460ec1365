package pixels

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sluice-ai/sluice/internal/ir"
)

// Names of an upscaler's input and output.
const (
	Small = "small"
	Large = "large"
)

// Upscaler is a network that makes pictures larger, an RRDBNet as Real-ESRGAN has it: residual blocks in residual
// blocks at the resolution of the rows, then twice as large, twice.
type Upscaler struct {
	Scale int // 4, 2 or 1
	Cell  int // pixels of the input at a side of a row's cell: 1, 2 or 4
	Wide  int // features of a row that are kept from one block to the next
	*ir.Bound
	Tensors []Tensor
}

// Upsampled is the side of a row's cell of the result.
const Upsampled = 4

// rrdb are the sizes of an RRDBNet.
type rrdb struct{ in, features, growth, blocks int }

// NewUpscaler records the upscaler that a file holds. Its sizes are those of the tensors.
func NewUpscaler(file []ir.Tensor) (*Upscaler, error) {
	u := &Upscaler{Tensors: Tensors(file, upscalerName)}
	s := sizesOf(u.Tensors)
	n, err := s.rrdb()
	if err != nil {
		return nil, fmt.Errorf("no upscaler that is known (Real-ESRGAN's RRDBNet): %w", err)
	}
	cells := map[int]int{3: 1, 12: 2, 48: 4}
	u.Cell = cells[n.in]
	if u.Cell == 0 {
		return nil, fmt.Errorf("conv_first.weight takes %d channels, want 3, 12 or 48, for a scale of 4, 2 or 1", n.in)
	}
	u.Scale, u.Wide = Upsampled/u.Cell, n.features
	p, err := n.record(s)
	if err == nil {
		u.Bound, err = bind(p, u.Tensors)
	}
	return u, err
}

// rrdb reads the sizes.
func (s sizes) rrdb() (n rrdb, err error) {
	const mostBlocks = 256
	if n.features, n.in, err = s.matrix("conv_first", window); err != nil {
		return n, err
	}
	if n.growth, _, err = s.matrix("body.0.rdb1.conv1", window); err != nil {
		return n, err
	}
	if n.blocks = s.count("body", "rdb1.conv1.weight"); n.blocks > mostBlocks {
		return n, fmt.Errorf("body has %d blocks, want at most %d", n.blocks, mostBlocks)
	}
	return n, nil
}

// slope and residual are the network's constants.
const (
	slope    = 0.2
	residual = 0.2
)

// plain is a convolution at the resolution of the rows.
var plain = ir.Conv2DArgs{Size: 3, Side: 1, Up: 1, Stride: 1}

func (n *rrdb) record(s sizes) (*ir.Program, error) {
	b := ir.NewBuilder("rrdb", s.has)
	x := b.Input(Small, n.in, true)
	b.Block()
	first := b.Conv2D(x, "conv_first", plain, n.features)
	x = first
	for i := range n.blocks {
		in := x
		for k := 1; k <= 3; k++ {
			b.Block()
			x = n.dense(b, x, fmt.Sprintf("body.%d.rdb%d.conv", i, k))
		}
		x = b.Add(in, b.Scale(x, residual))
	}
	b.Block()
	x = b.Add(first, b.Conv2D(x, "conv_body", plain, n.features))
	x = b.Leaky(b.Conv2D(x, "conv_up1", ir.Conv2DArgs{Size: 3, Side: 1, Up: 2, Stride: 1}, n.features), slope)
	x = b.Leaky(b.Conv2D(x, "conv_up2", ir.Conv2DArgs{Size: 3, Side: 2, Up: 2, Stride: 1}, n.features), slope)
	last := ir.Conv2DArgs{Size: 3, Side: 4, Up: 1, Stride: 1}
	x = b.Leaky(b.Conv2D(x, "conv_hr", last, n.features), slope)
	b.Output(Large, b.Conv2D(x, "conv_last", last, 3))
	return b.Program(0)
}

// dense is a residual dense block: each convolution sees the results of all before it.
func (n *rrdb) dense(b *ir.Builder, x ir.Value, name string) ir.Value {
	seen := x
	for i := 1; i < 5; i++ {
		seen = b.HeadJoin(seen, b.Leaky(b.Conv2D(seen, fmt.Sprint(name, i), plain, n.growth), slope), 1)
	}
	return b.Add(x, b.Scale(b.Conv2D(seen, fmt.Sprint(name, 5), plain, n.features), residual))
}

// dense blocks and single layers as ESRGAN's first files name them.
var (
	oldDense  = regexp.MustCompile(`^model\.1\.sub\.(\d+)\.RDB(\d)\.conv(\d)\.0\.`)
	oldBody   = regexp.MustCompile(`^model\.1\.sub\.\d+\.`)
	oldSingle = map[string]string{"model.0.": "conv_first.", "model.3.": "conv_up1.", "model.6.": "conv_up2.",
		"model.8.": "conv_hr.", "model.10.": "conv_last."}
)

// upscalerName is the name of a tensor today, without prefixes.
func upscalerName(name string) string {
	for _, prefix := range []string{"params_ema.", "params."} {
		name = strings.TrimPrefix(name, prefix)
	}
	if oldDense.MatchString(name) {
		return oldDense.ReplaceAllString(name, "body.$1.rdb$2.conv$3.")
	}
	if at := oldBody.FindString(name); at != "" {
		return "conv_body." + name[len(at):]
	}
	for old, now := range oldSingle {
		if rest, ok := strings.CutPrefix(name, old); ok {
			return now + rest
		}
	}
	return strings.TrimPrefix(name, "model.")
}

// Grid is the rows of a picture of so many pixels.
func (u *Upscaler) Grid(height, width int) ir.Grid {
	return ir.Grid{Height: (height + u.Cell - 1) / u.Cell, Width: (width + u.Cell - 1) / u.Cell}
}

// Rows lays out a picture of so many pixels, each a colour from 0 to 1 for red, green and blue, as the network takes
// it: a cell's pixels colour by colour. Pixels beyond the last ones of a line, or column, repeat these. at is never
// called for a pixel that is not there.
func (u *Upscaler) Rows(height, width int, at func(y, x, colour int) float32) (ir.Grid, []float32, error) {
	if height < 1 || width < 1 {
		return ir.Grid{}, nil, errors.New("a picture without pixels")
	}
	c, grid := u.Cell, u.Grid(height, width)
	rows := make([]float32, 0, grid.Height*grid.Width*3*c*c)
	for line := range grid.Height {
		for column := range grid.Width {
			for colour := range 3 {
				for i := range c * c {
					rows = append(rows, at(min(line*c+i/c, height-1), min(column*c+i%c, width-1), colour))
				}
			}
		}
	}
	return grid, rows, nil
}

// At is a colour of a pixel of the result.
func (u *Upscaler) At(grid ir.Grid, rows []float32, y, x, colour int) float32 {
	const side = Upsampled
	row := y/side*grid.Width + x/side
	return rows[((row*side+y%side)*side+x%side)*3+colour]
}
