package null

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/gpu/driver"
	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// table is the kernels and formats of the device. Weights of all types are kept as float32: a tile of rows is 32 of
// them, one after the other, padded with zeros to a multiple of 256 columns.
type table struct{ d *Device }

func (t table) Matrix(typ quant.Type, rows, cols int, pair bool) (kernel.Matrix, error) {
	if !quant.HasCodec(typ) {
		return kernel.Matrix{}, fmt.Errorf("%s cannot be decoded", typ)
	}
	if _, err := typ.RowBytes(cols); err != nil {
		return kernel.Matrix{}, err
	}
	return kernel.Matrix{Type: typ, Rows: rows, Cols: cols, Pair: pair, Segment: max(1, (kernel.Tiles(cols)+15)/16),
		Float: !t.Integers(typ), TileBytes: 4 * kernel.TileRows * kernel.TileCols}, nil
}

func (t table) Integers(typ quant.Type) bool { return t.d.options.Integers && typ.Block() > 1 }

func (t table) Rounded(quant.Type) bool { return t.d.options.Halves }

func (t table) Apart(*ir.Bound) bool { return t.d.options.Halves }

// Caches implements kernel.Table: there are loops for all formats.
func (table) Caches(backend.Format) error { return nil }

func (t table) Fused(h *kernel.Heads) bool {
	return t.d.options.Fused && h.Format() == backend.KVF16.Format && h.ValueFeatures() == h.Features && h.Query%h.KV == 0
}

func (t table) Fits(m *kernel.MatVec) bool {
	return !t.d.options.Scarce || m.Gain == 0 && (m.Experts == nil || m.Experts.Shares == 0)
}

func (t table) Gathers(*kernel.Matrix, bool) int { return max(kernel.MaxColumns, t.d.options.Gathers) }

// PeakOps implements driver.Kernels: there is nothing to measure.
func (table) PeakOps(bool) float64 { return 1 }

func (table) Tune([]kernel.Heads, driver.Bench) {}

func (table) UploadBytes(t quant.Type, cols int) (int, error) {
	_, err := t.RowBytes(cols)
	return 4 * cols, err
}

func (table) Recodes(t quant.Type) bool { return t != quant.F32 }

func (table) Recode(t quant.Type, cols int, to, file []byte) error {
	size, err := t.RowBytes(cols)
	if err != nil || size == 0 {
		return err
	}
	row := make([]float32, cols)
	for ; len(file) > 0; file, to = file[size:], to[4*cols:] {
		if err := quant.Dequantize(t, row, file[:size]); err != nil {
			return err
		}
		for i, v := range row {
			binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(v))
		}
	}
	return nil
}

// families return the loop of a launch, or nil if it is of another family.
var families = []func(kernel.Launch) func(*access){
	elements, products, mixtures, attentions, recurrences, draws, plains, probes, exchanges,
}

// Launch implements driver.Kernels. Arguments are copied: whoever launches may change them.
func (t table) Launch(to driver.Recording, l kernel.Launch) error {
	var uses kernel.Uses
	l.Uses(&uses)
	var loop func(*access)
	for _, family := range families {
		if loop == nil {
			loop = family(l)
		}
	}
	if loop == nil {
		return fmt.Errorf("null: %T has no loop", l)
	}
	return to.(*recording).launch(fmt.Sprintf("%T", l)[len("*kernel."):], uses, loop)
}

// there is how many of a number of rows are in use.
func there(x *access, count uint64, rows int) int {
	if count == 0 {
		return rows
	}
	return min(rows, int(told[uint32](x, count, 1)[0]))
}

// row is the address of row r of float32 rows.
func row(at uint64, r, stride int) uint64 { return at + uint64(4*r*stride) }

// vector is n weights; nil: there are none.
func vector(x *access, at uint64, n int) []float32 {
	if at == 0 {
		return nil
	}
	return told[float32](x, at, n)
}

// or is a number of a vector, or another one if there is none.
func or(v []float32, i int, otherwise float32) float32 {
	if v == nil {
		return otherwise
	}
	return v[i]
}

// probes returns the loop of a kernel for measurements, or nil.
func probes(l kernel.Launch) func(*access) {
	switch k := l.(type) {
	case *kernel.Read:
		at, n := k.X, int(16*k.Quads)
		return func(x *access) { in[byte](x, at, n) }
	case *kernel.Peak:
		at := k.Y
		return func(x *access) { own(x, at, kernel.PeakBytes) }
	}
	return nil
}
