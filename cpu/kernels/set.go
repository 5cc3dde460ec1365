package kernels

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/sluice-ai/sluice/cpu/vec"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Set is the kernels of one instruction set, or of the next lower one where it has none of its own. All sets give the
// same bits. A Set is read-only and shared.
type Set struct {
	Name string
	Vec  vec.ISA // all other arithmetic may use it

	quantize  [forms]quantizer
	transpose transposers
	stream    transposers // the same, bypassing the caches; columns are written to multiples of streamAlign
	// Missing kernels are nil: the twin stands in.
	one  [len(formats)]rowKernel // one row of activations
	four [len(formats)]kernel    // four rows

	panels [len(formats)][]panels // those to be used first come first
	tiled  bool                   // some are for Acts.Tiles
}

// A rowKernel multiplies up to four strips, over all of k, by one row of activations. Strips begin wStride bytes apart,
// their outputs stride bytes apart: 16 each, but lanes for the last. All else is as in kernel.
type rowKernel func(out *float32, stride, strips, lanes int, w, x *byte, wStride, blocks int)

// A kernel multiplies one row tile, over all of k, by four rows of activations:
// out[r,o] = Σₖ w[o,k]·x[r,k] for the first lanes outputs o.
//
//	w  the strip of 16 rows: blocks tiles; any alignment
//	x  activations in the form of the weights' type, any alignment
//
// Rows 0 to 3 of x begin at 0, xStride, 2·xStride and xLast bytes; those of out at 0, stride, 2·stride and last bytes.
// A row may be named more than once, for fewer than four rows. The kernel reads exactly the bytes of w and of these
// rows, and writes lanes float32 for each row.
type kernel func(out *float32, stride, last, lanes int, w, x *byte, xStride, xLast, blocks int)

// panels is a kernel for many rows: a multiple of group, at most most. Fewer than least rows are faster without it.
type panels struct {
	least, group, most int
	tiles              bool // x is in Acts.Tiles, from a multiple of 16 rows on; xStride is the distance of groups
	multiply           panelKernel
}

// A panelKernel does what a kernel does, but unpacks weights once for all rows. Rows of x are xStride bytes apart,
// those of out stride bytes. Kernels for floats multiply two strips, one after the other in w, if lanes exceeds 16.
type panelKernel func(out *float32, stride, rows, lanes int, w, x *byte, xStride, blocks int)

// setPanels adds panel kernels for some types. Those for tiles leave the others in place, for activations without
// tiles.
func (s *Set) setPanels(p panels, kernels map[quant.Type]panelKernel) {
	s.tiled = s.tiled || p.tiles
	for t, multiply := range kernels {
		p.multiply = multiply
		if p.tiles {
			s.panels[t] = append([]panels{p}, s.panels[t]...)
		} else {
			s.panels[t] = []panels{p}
		}
	}
}

// generic is plain Go: the twins, which define the bits of every other set.
func generic() *Set {
	return &Set{Name: "generic", quantize: quantizers(quantizeBlock)}
}

// quantizers prepare blocks in Go, whose values a rounder rounds.
func quantizers(round rounder) [forms]quantizer {
	return [forms]quantizer{
		By32: func(dst *byte, src *float32, n int) bool {
			return quantize32(bytesAt(dst, n*x32Bytes), floatsAt(src, n*32), round)
		},
		By256: func(dst *byte, src *float32, n int) bool {
			return quantize256(bytesAt(dst, n*x256Bytes), floatsAt(src, n*256), round)
		},
	}
}

func bytesAt(p *byte, n int) []byte        { return unsafe.Slice(p, n) }
func floatsAt(p *float32, n int) []float32 { return unsafe.Slice(p, n) }

// Sets are the sets that this machine can run, slowest first.
func Sets() []*Set { return append([]*Set{generic()}, native()...) }

// Best is the fastest set, or the one that force names if it is not empty.
func Best(force string) (*Set, error) {
	sets := Sets()
	if force == "" {
		return sets[len(sets)-1], nil
	}
	names := make([]string, len(sets))
	for i, s := range sets {
		if s.Name == force {
			return s, nil
		}
		names[i] = s.Name
	}
	return nil, fmt.Errorf("there are no CPU kernels %q here: this machine can run %s", force, strings.Join(names, ", "))
}

// Tiled says whether the set is faster for batches if activations come with Acts.Tiles.
func (s *Set) Tiled() bool { return s.tiled }

// Has says whether products of type t run in assembly; otherwise they run in plain Go.
func (s *Set) Has(t quant.Type) bool { return Supports(t) && s.one[t] != nil && s.four[t] != nil }

// Blocks names the set whose kernels multiply blocks of integers: AVX-512 without VNNI uses those of AVX2.
func (s *Set) Blocks() string {
	if s.Name == "avx512" {
		return "avx2"
	}
	return s.Name
}
