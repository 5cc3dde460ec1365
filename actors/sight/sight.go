// Package sight computes what models see: it loads a tower on a device, and makes rows of text of pictures.
//
// What a tower is stands in stages/model/vision. One goroutine at a time uses an Eye, and nothing else computes on its
// device meanwhile.
package sight

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// MostPatches is the most patches of a picture that are computed.
const MostPatches = 1 << 14

// Seen is a picture as a text has it.
type Seen struct {
	Grid   ir.Grid     // of the rows
	Rows   []float32   // [Grid.Height·Grid.Width][width]
	Deep   [][]float32 // what is added to the same rows after the first layers, one after another
	Beside []float32   // what layers are given besides the rows; empty: nothing
}

// Bytes is the memory that it takes.
func (s *Seen) Bytes() int { return 4 * (len(s.Rows)*(1+len(s.Deep)) + len(s.Beside)) }

// Eye is a tower on a device.
type Eye struct {
	Tower *vision.Tower

	device  backend.Device
	patches blocks.Network
	rows    blocks.Network
	table   []float32 // of learned positions, if those of patches are made of them
	asked   []float32 // by rows of texts, if they ask patches
	between []float32 // stands in texts between lines of a picture's rows, if anything does
}

// Open reads the tower of an mmproj file. The device is the caller's, and is closed after the Eye; nil: Use says which.
func Open(d backend.Device, f *gguf.File) (*Eye, error) {
	list := make([]ir.Tensor, len(f.Tensors))
	for i, x := range f.Tensors {
		list[i] = ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape}
	}
	tensors := vision.Tensors(&f.Meta, list)
	for i := range tensors {
		if !vision.IsNumber(&tensors[i].Tensor) {
			continue
		}
		one, err := values(f, &f.Tensors[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		tensors[i].Value = one[0]
	}
	tower, err := vision.Record(&f.Meta, tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	e := &Eye{Tower: tower, device: d}
	if e.patches.Bound, e.rows.Bound, err = tower.Bind(tensors); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	for _, p := range []*blocks.Network{&e.patches, &e.rows} {
		if p.Weights, err = read(f, p.Bound, tensors); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	e.patches.Runs, e.rows.Runs = alike(tower.Windowed), [][]int{e.rows.All()}
	if _, learned := tower.Patches.Input(vision.Positions); learned {
		e.table, err = named(f, vision.PositionTable)
	}
	if tower.Break != "" && err == nil {
		e.between, err = named(f, tower.Break)
	}
	if tower.Asks > 0 && err == nil {
		e.asked, err = named(f, vision.QuestionTable)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return e, nil
}

// Use sets the device, before the first picture.
func (e *Eye) Use(d backend.Device) { e.device = d }

// alike divides segments where windows begin or end.
func alike(windowed []bool) (runs [][]int) {
	for s, w := range windowed {
		if s == 0 || w != windowed[s-1] {
			runs = append(runs, nil)
		}
		runs[len(runs)-1] = append(runs[len(runs)-1], s)
	}
	return runs
}

// named decodes the tensor of a name, which is there.
func named(f *gguf.File, name string) ([]float32, error) {
	return values(f, &f.Tensors[slices.IndexFunc(f.Tensors, func(t gguf.Tensor) bool { return t.Name == name })])
}

// values decodes a tensor.
func values(f *gguf.File, t *gguf.Tensor) (all []float32, err error) {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	all = make([]float32, n)
	err = f.View(t, func(data []byte) error { return quant.Dequantize(t.Type, all, data) })
	return all, err
}

// read copies the weights, and turns those that the file has the other way round.
func read(f *gguf.File, p *ir.Bound, tensors []vision.Tensor) ([][]byte, error) {
	weights := make([][]byte, len(p.Weights))
	for r, i := range p.Tensors {
		from := &f.Tensors[tensors[i].From]
		err := f.View(from, func(data []byte) error {
			weights[r] = slices.Clone(data)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if tensors[i].Turn {
			if weights[r], err = turned(from, weights[r]); err != nil {
				return nil, err
			}
		}
	}
	return weights, nil
}

// turned makes rows of a matrix's columns.
func turned(t *gguf.Tensor, data []byte) ([]byte, error) {
	if t.Type.Block() != 1 {
		return nil, fmt.Errorf("tensor %s is of type %s, want F32, F16 or BF16", t.Name, t.Type)
	}
	cols, rows := t.Shape[0], t.Shape[1]
	each, out := len(data)/(rows*cols), make([]byte, 0, len(data))
	for c := range cols {
		for r := range rows {
			out = append(out, data[(r*cols+c)*each:][:each]...)
		}
	}
	return out, nil
}

// Look computes a picture.
func (e *Eye) Look(p *vision.Picture) (*Seen, error) {
	l, err := e.Tower.Layout(p.Height, p.Width)
	if err != nil {
		return nil, err
	}
	if n := len(l.Order); n > MostPatches {
		return nil, fmt.Errorf("a picture of %d patches, want at most %d", n, MostPatches)
	}
	whole, windows := []ir.Grid{line(len(l.Order))}, make([]ir.Grid, 0, len(l.Windows))
	for _, n := range l.Windows {
		windows = append(windows, line(n))
	}
	spans := func(s int) []ir.Grid {
		if e.Tower.Windowed[s] {
			return windows
		}
		return whole
	}
	seen, err := e.patches.Run(e.device, spans, l.Places, constants(e.Tower.Patches, len(l.Order), map[string][]float32{
		vision.Patches: e.Tower.Cut(l, p), vision.First: e.Tower.First(l), vision.Positions: e.Tower.Learned(l, e.table)}))
	if err != nil {
		return nil, err
	}
	n, inputs := e.given(l, seen)
	made, err := e.rows.Run(e.device, func(int) []ir.Grid { return []ir.Grid{line(n)} }, nil,
		constants(e.Tower.Rows, n, inputs))
	if err != nil {
		return nil, err
	}
	of := &Seen{}
	if asks := e.Tower.Asks; asks > 0 {
		of.Grid, of.Rows = line(asks), slices.Clone(made[vision.Rows][(n-asks)*e.Tower.Width:])
	} else {
		of.Grid, of.Rows = e.Tower.Between(l.Text, made[vision.Rows], e.between)
	}
	for i := range e.Tower.Deeps {
		of.Deep = append(of.Deep, made[vision.Deep+strconv.Itoa(i)])
	}
	return of, nil
}

// given are the inputs of the program that makes rows of text of the patches, and how many rows it has.
func (e *Eye) given(l *vision.Layout, seen map[string][]float32) (rows int, inputs map[string][]float32) {
	if asks := e.Tower.Asks; asks > 0 {
		return len(l.Order) + asks, e.Tower.Ask(l, seen[vision.Patches], e.asked)
	}
	inputs, width := map[string][]float32{}, e.Tower.Patches.Widths[e.Tower.Patches.Outputs[0].Value]
	for name, x := range seen {
		inputs[name] = e.Tower.Join(l, x, width)
	}
	return l.Text.Height * l.Text.Width, inputs
}

// constants adds the inputs of a program that are 1 in all of so many rows.
func constants(p *ir.Program, rows int, inputs map[string][]float32) map[string][]float32 {
	for _, in := range p.Inputs {
		if strings.HasPrefix(in.Name, vision.Ones) {
			inputs[in.Name] = slices.Repeat([]float32{1}, rows*p.Widths[in.Value])
		}
	}
	return inputs
}

// line is the grid of rows that see each other in the order in which they are.
func line(n int) ir.Grid { return ir.Grid{Height: 1, Width: n} }

// Bytes is the memory that the tower's weights take.
func (e *Eye) Bytes() int64 {
	return bytesOf(&e.patches) + bytesOf(&e.rows) + 4*int64(len(e.table)+len(e.asked)+len(e.between))
}

func bytesOf(n *blocks.Network) (bytes int64) {
	for _, w := range n.Weights {
		bytes += int64(len(w))
	}
	return bytes
}

// Close frees what the device has of the tower.
func (e *Eye) Close() error { return errors.Join(e.patches.Close(), e.rows.Close()) }
