// Package imatrix reads and writes importance matrices in llama.cpp's formats: GGUF, and the older .dat.
//
// An importance matrix says how large the inputs of each column of each weight are over some text: the sum of their
// squares, and the number of rows that were summed. Quantisers round columns with large inputs more carefully.
// Devices measure it (internal/backend), internal/quant uses it.
package imatrix

import (
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Matrix is an importance matrix with its origin.
type Matrix struct {
	Datasets  []string // the texts it was measured on
	Chunks    int      // pieces of text
	ChunkSize int      // tokens of each; 0 if the file does not say
	Entries   map[string]Entry
}

// Entry holds the measurements of one weight, whose name is its key in Matrix.Entries.
type Entry struct {
	Squares []float32 // sums of squares by column, of one expert after another
	Counts  []float32 // rows summed up: of each expert, or one number for all
}

// Importance returns the mean square of the input of each column, one expert after another. Columns of an expert that
// no row reached are all 1.
func (e Entry) Importance() []float32 {
	out := make([]float32, len(e.Squares))
	cols := len(e.Squares) / len(e.Counts)
	for i, sum := range e.Squares {
		out[i] = 1
		if n := e.Counts[i/cols]; n > 0 {
			out[i] = sum / n
		}
	}
	return out
}

// check fails for numbers that no measurement gives.
func (e Entry) check() error {
	if len(e.Squares) == 0 || len(e.Counts) == 0 || len(e.Squares)%len(e.Counts) != 0 {
		return fmt.Errorf("%d sums for %d counts, want as many columns for each", len(e.Squares), len(e.Counts))
	}
	for _, list := range [][]float32{e.Squares, e.Counts} {
		for i, x := range list {
			if !(x >= 0 && x <= math.MaxFloat32) {
				return fmt.Errorf("number %d is %v, want a sum of squares: measure again", i, x)
			}
		}
	}
	for i, n := range e.Counts {
		if n > 0 && n < 1 { // the mean, a quotient by n, could overflow
			return fmt.Errorf("count %d is %v, want a number of rows: measure again", i, n)
		}
	}
	return nil
}

// Keys and names of the GGUF format.
const (
	keyType      = "general.type"
	typeName     = "imatrix"
	keyDatasets  = "imatrix.datasets"
	keyChunks    = "imatrix.chunk_count"
	keyChunkSize = "imatrix.chunk_size"
	sumsSuffix   = ".in_sum2"
	countsSuffix = ".counts"
)

// Write writes m as GGUF. It fails if an entry is not plausible.
func (m *Matrix) Write(w io.Writer) error {
	keys := new(meta.Map)
	keys.Set(keyType, typeName)
	keys.Set(keyDatasets, m.Datasets)
	keys.Set(keyChunks, uint32(m.Chunks))
	keys.Set(keyChunkSize, uint32(m.ChunkSize))
	var tensors []gguf.Tensor
	values := map[string][]float32{}
	add := func(name string, cols, experts int, list []float32) {
		shape := []int{cols, experts}
		if experts == 1 {
			shape = shape[:1]
		}
		tensors = append(tensors, gguf.Tensor{Name: name, Type: quant.F32, Shape: shape})
		values[name] = list
	}
	for _, name := range slices.Sorted(maps.Keys(m.Entries)) {
		e := m.Entries[name]
		if err := e.check(); err != nil {
			return fmt.Errorf("importance of %s: %w", name, err)
		}
		add(name+sumsSuffix, len(e.Squares)/len(e.Counts), len(e.Counts), e.Squares)
		add(name+countsSuffix, 1, len(e.Counts), e.Counts)
	}
	return gguf.Write(w, keys, tensors, func(t *gguf.Tensor, w io.Writer) error {
		return binary.Write(w, binary.LittleEndian, values[t.Name])
	})
}
