package sight

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Beside makes what layers of a text's model are given besides the stream of rows that are no tokens.
type Beside struct {
	network blocks.Network
	found   []float32 // what the table has of rows that are no tokens
	scale   float32
}

// OpenBeside reads what a model's file says of it; nil: layers are given nothing besides the stream.
func OpenBeside(f *gguf.File) (*Beside, error) {
	of, err := arch.RecordBeside(&f.Meta, func(name string) bool { _, ok := f.Tensor(name); return ok })
	if err != nil || of == nil {
		return nil, err
	}
	b := &Beside{scale: 1 / of.Scale}
	if b.network, err = inFile(f, of.Program); err != nil {
		return nil, err
	}
	t, ok := f.Tensor(of.Table)
	if !ok || len(t.Shape) != 2 {
		return nil, fmt.Errorf("tensor %s is missing or no table", of.Table)
	}
	b.found = make([]float32, t.Shape[0])
	size, err := t.Type.RowBytes(t.Shape[0])
	if err != nil {
		return nil, err
	}
	err = f.View(t, func(data []byte) error { return quant.Dequantize(t.Type, b.found, data[:size]) })
	return b, err
}

// inFile binds a program to a file, and copies its weights.
func inFile(f *gguf.File, p *ir.Program) (of blocks.Network, err error) {
	list := make([]ir.Tensor, len(f.Tensors))
	for i, x := range f.Tensors {
		list[i] = ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape}
	}
	if of.Bound, err = ir.Bind(p, list); err != nil {
		return of, err
	}
	of.Runs = [][]int{of.All()}
	of.Weights = make([][]byte, len(of.Bound.Weights))
	for r, i := range of.Tensors {
		err := f.View(&f.Tensors[i], func(data []byte) error {
			of.Weights[r] = slices.Clone(data)
			return nil
		})
		if err != nil {
			return of, err
		}
	}
	return of, nil
}

// Of computes it for rows.
func (b *Beside) Of(d backend.Device, rows []float32) ([]float32, error) {
	p := b.network.Program
	in, ok := p.Input(arch.Rows)
	if !ok {
		return nil, fmt.Errorf("the program has no input %s", arch.Rows)
	}
	n := len(rows) / p.Widths[in]
	scaled := make([]float32, len(rows))
	for i, x := range rows {
		scaled[i] = x * b.scale
	}
	made, err := b.network.Run(d, func(int) []ir.Grid { return []ir.Grid{line(n)} }, nil,
		map[string][]float32{arch.Rows: scaled, arch.Found: slices.Repeat(b.found, n)})
	return made[arch.Given], err
}

// Bytes is the memory that it takes.
func (b *Beside) Bytes() int64 {
	if b == nil {
		return 0
	}
	return bytesOf(&b.network) + 4*int64(len(b.found))
}

// Close frees what a device has of it.
func (b *Beside) Close() error {
	if b == nil {
		return nil
	}
	return b.network.Close()
}
