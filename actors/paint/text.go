package paint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Encode makes of tokens what a transformer reads of a text: the rows before the last layer of the model of a file, and
// before its last norm. The file's text model is computed on the device once, and not kept.
func Encode(r Room, f *gguf.File, tokens []int32) (rows []float32, err error) {
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
	n, part, from := &blocks.Network{Bound: b}, b.Only(p.All()[:last+1]), pixels.Tensors(list, nil)
	plans, err := r.Plan(f, part)
	if err == nil && plans != nil && plans[0].Streams() {
		err = r.haul(n, part, f, from, &plans[0])
	}
	if err == nil {
		n.Weights, err = r.weights(n, part, f, from)
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return n.Stream(r.Device, tokens, last)
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
