package paint

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Encode makes of tokens what a transformer reads of a text: the rows before the last layer of the model of a file, and
// before its last norm. The file's text model is computed on the device once, and not kept.
func Encode(d backend.Device, f *gguf.File, tokens []int32) ([]float32, error) {
	if err := room(f); err != nil {
		return nil, err
	}
	list := tensors(f)
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(t ir.Tensor) bool { return t.Name == name })
	}
	p, err := arch.Record(&f.Meta, has, arch.Options{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	b, err := ir.Bind(p, list)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	last := before(p)
	if last < 0 {
		return nil, fmt.Errorf("%s: a model of one layer has no rows before its last one", f.Name)
	}
	n := &blocks.Network{Bound: b, Weights: make([][]byte, len(b.Weights))}
	used, _, _ := b.Only(p.All()[:last+1]).Used()
	for r, i := range b.Tensors {
		if !used[r] {
			continue
		}
		if err := ended(d); err != nil {
			return nil, err
		}
		err := f.View(&f.Tensors[i], func(data []byte) error {
			n.Weights[r] = slices.Clone(data)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return n.Stream(d, tokens, last)
}

// before is the last segment before a program's last layer; less than 0: it has one layer.
func before(p *ir.Program) int {
	layers := 0
	for i := range p.Segments {
		layers = max(layers, p.Segments[i].Layer)
	}
	if layers == 0 {
		return -1
	}
	return slices.IndexFunc(p.Segments, func(s ir.Segment) bool { return s.Layer == layers }) - 1
}
