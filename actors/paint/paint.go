// Package paint computes pictures: it loads the programs of stages/model/pixels on a device, and makes larger pictures
// of small ones (upscale.go), and pictures of latents (autoencoder.go), latents of noise (zimage.go, flux.go)
// and of texts what these read (text.go, encoder.go).
//
// One goroutine at a time uses what it opens, and nothing else computes on the device meanwhile.
package paint

import (
	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// tensors lists a file's tensors.
func tensors(f *gguf.File) []ir.Tensor {
	list := make([]ir.Tensor, len(f.Tensors))
	for i, x := range f.Tensors {
		list[i] = ir.Tensor{Name: x.Name, Type: x.Type, Shape: x.Shape}
	}
	return list
}

// network reads a program's weights, all of which stay. Each segment is computed on its own.
func (r *Room) network(f *gguf.File, p *ir.Bound, list []pixels.Tensor) (*blocks.Network, error) {
	n := &blocks.Network{Bound: p}
	for s := range p.Segments {
		n.Runs = append(n.Runs, []int{s})
	}
	var err error
	n.Weights, err = r.weights(n, p, f, list)
	return n, err
}
