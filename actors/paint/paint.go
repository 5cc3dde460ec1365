// Package paint computes pictures: it loads the programs of stages/model/pixels on a device, and makes larger pictures
// of small ones (upscale.go), and pictures of latents (autoencoder.go), latents of noise (zimage.go, flux.go)
// and of texts what these read (text.go, encoder.go).
//
// One goroutine at a time uses what it opens, and nothing else computes on the device meanwhile.
package paint

import (
	"fmt"

	"github.com/sluice-ai/sluice/actors/blocks"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/mem"
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

// room is an error if a file's weights, of which a copy is made, are more than the memory that is free.
func room(f *gguf.File) error {
	var bytes int64
	for i := range f.Tensors {
		bytes += f.Tensors[i].Size
	}
	if free := mem.Available(); bytes > free {
		return fmt.Errorf("%s: its weights take %d MB of memory, and %d are free", f.Name, bytes>>20, free>>20)
	}
	return nil
}

// whole is a network of one model, which stays for the next step.
func whole(d backend.Device, f *gguf.File, p *ir.Bound, list []pixels.Tensor) (*blocks.Network, error) {
	n := &blocks.Network{Bound: p, Runs: [][]int{p.All()}}
	var err error
	n.Weights, err = weights(d, f, p, list)
	return n, err
}

// part is one of the networks that make a transformer, and its program.
type part struct {
	to *(*blocks.Network)
	p  *ir.Bound
}

// networks reads the parts of a transformer, if memory has room for the file.
func networks(d backend.Device, f *gguf.File, list []pixels.Tensor, parts []part) (err error) {
	if err := room(f); err != nil {
		return err
	}
	for _, part := range parts {
		if *part.to, err = whole(d, f, part.p, list); err != nil {
			return err
		}
	}
	return nil
}

// network reads a program's weights. Each segment is computed on its own.
func network(d backend.Device, f *gguf.File, p *ir.Bound, list []pixels.Tensor) (*blocks.Network, error) {
	n := &blocks.Network{Bound: p}
	for s := range p.Segments {
		n.Runs = append(n.Runs, []int{s})
	}
	var err error
	n.Weights, err = weights(d, f, p, list)
	return n, err
}

// weights copies a program's weights, in its order, unless nobody wants what the device computes any more.
func weights(d backend.Device, f *gguf.File, p *ir.Bound, list []pixels.Tensor) ([][]byte, error) {
	all := make([][]byte, len(p.Weights))
	for r, i := range p.Tensors {
		if err := ended(d); err != nil {
			return nil, err
		}
		if list[i].From == pixels.Computed {
			all[r] = make([]byte, 4*p.Weights[r].Rows*p.Weights[r].Cols)
			continue
		}
		err := f.View(&f.Tensors[list[i].From], func(data []byte) (err error) {
			all[r], err = list[i].Turned(data)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return all, nil
}
