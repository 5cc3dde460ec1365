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

// Reader records the text model of a file, up to the rows that a transformer reads: those before the last layer, after
// the segment last. part has these segments alone.
func Reader(f *gguf.File) (whole, part *ir.Bound, last int, err error) {
	list := tensors(f)
	has := func(name string) bool {
		return slices.ContainsFunc(list, func(t ir.Tensor) bool { return t.Name == name })
	}
	p, err := arch.Record(&f.Meta, has, arch.Options{})
	if err == nil {
		whole, err = ir.Bind(p, list)
	}
	if err != nil {
		return nil, nil, 0, fmt.Errorf("%s: %w", f.Name, err)
	}
	if last = before(p); last < 0 {
		return nil, nil, 0, fmt.Errorf("%s: a model of one layer has no rows before its last one", f.Name)
	}
	return whole, whole.Only(p.All()[:last+1]), last, nil
}

// Encode makes of tokens what a transformer reads of a text: the rows before the last layer of the model of a file, and
// before its last norm. The file's text model is computed on the device once, and not kept.
func Encode(r Room, f *gguf.File, tokens []int32) (rows []float32, err error) {
	b, part, last, err := Reader(f)
	if err != nil {
		return nil, err
	}
	n, from := &blocks.Network{Bound: b}, pixels.Tensors(tensors(f), nil)
	plans, err := r.plan(f, part)
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
