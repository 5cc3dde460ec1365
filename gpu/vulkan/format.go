//go:build cgo && linux

package vulkan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/gpu/vulkan/shaders"
	"github.com/sluice-ai/sluice/internal/quant"
)

// format is what a type of weights is computed with.
type format struct {
	bytes        int            // of a tile
	dot, plain   shaders.Module // mat-vec with the device's dot products, and without
	pack, lookup shaders.Module
	heads        shaders.Module // products by heads
	float        bool           // activations are float32, not quantised
	split        int            // bytes of a row of a tile, if Recode makes them of the file's; 0: these are packed
}

var formats = allFormats()

func allFormats() map[quant.Type]format {
	all := map[quant.Type]format{
		quant.Q4_0: {bytes: 32 * 144, dot: shaders.MatvecQ4_0, plain: shaders.MatvecQ4_0Plain,
			pack: shaders.RepackQ4_0, lookup: shaders.EmbedQ4_0, heads: shaders.HeadLinearQ4_0},
		quant.Q8_0: {bytes: 32 * 272, dot: shaders.MatvecQ8_0, plain: shaders.MatvecQ8_0Plain,
			pack: shaders.RepackQ8_0, lookup: shaders.EmbedQ8_0, heads: shaders.HeadLinearQ8_0},
		quant.Q4_K: {bytes: 32 * 148, dot: shaders.MatvecQ4_K, plain: shaders.MatvecQ4_KPlain,
			pack: shaders.RepackQ4_K, lookup: shaders.EmbedQ4_K, heads: shaders.HeadLinearQ4_K},
		quant.Q6_K: {bytes: 32 * 210, dot: shaders.MatvecQ6_K, plain: shaders.MatvecQ6_KPlain,
			pack: shaders.RepackQ6_K, lookup: shaders.EmbedQ6_K, heads: shaders.HeadLinearQ6_K},
		quant.F16: {bytes: 32 * 512, dot: shaders.MatvecF16, plain: shaders.MatvecF16,
			pack: shaders.RepackF16, lookup: shaders.EmbedF16, heads: shaders.HeadLinearF16, float: true},
		quant.BF16: {bytes: 32 * 512, dot: shaders.MatvecBf16, plain: shaders.MatvecBf16,
			pack: shaders.RepackF16, lookup: shaders.EmbedBf16, heads: shaders.HeadLinearBf16, float: true},
		quant.F32: {bytes: 32 * 1024, dot: shaders.MatvecF32, plain: shaders.MatvecF32,
			pack: shaders.RepackF32, lookup: shaders.EmbedF32, heads: shaders.HeadLinearF32, float: true},
	}
	split := format{bytes: 32 * 320, split: 320, dot: shaders.MatvecSplit, plain: shaders.MatvecSplitPlain,
		pack: shaders.RepackSplit, lookup: shaders.EmbedSplit, heads: shaders.HeadLinearSplit}
	splitLow := format{bytes: 32 * 384, split: 384, dot: shaders.MatvecSplitLow, plain: shaders.MatvecSplitLowPlain,
		pack: shaders.RepackSplitLow, lookup: shaders.EmbedSplitLow, heads: shaders.HeadLinearSplitLow}
	for _, t := range quant.All() {
		switch _, has := all[t]; {
		case has || !quant.CanSplit(t):
		case t.Bounds().Low > 0:
			all[t] = splitLow
		default:
			all[t] = split
		}
	}
	return all
}

// Supported says whether weights of a type can be computed with.
func Supported(t quant.Type) bool {
	_, ok := formats[t]
	return ok
}

// NewMatrix describes a matrix. Segment is chosen by the shape: about 16 segments, so that 512 threads share a row.
func NewMatrix(t quant.Type, rows, cols int, pair bool) (kernel.Matrix, error) {
	if !Supported(t) {
		return kernel.Matrix{}, fmt.Errorf("%s has no kernels on Vulkan", t)
	}
	if _, err := t.RowBytes(cols); err != nil {
		return kernel.Matrix{}, err
	}
	m := kernel.Matrix{Type: t, Rows: rows, Cols: cols, Pair: pair, Float: formats[t].float, TileBytes: formats[t].bytes}
	m.Segment = max(1, (m.KTiles()+15)/16)
	return m, nil
}

// Matrix implements kernel.Table.
func (k *Kernels) Matrix(t quant.Type, rows, cols int, pair bool) (kernel.Matrix, error) {
	return NewMatrix(t, rows, cols, pair)
}

// Integers implements kernel.Table.
func (k *Kernels) Integers(t quant.Type) bool { return !formats[t].float }

// UploadBytes implements driver.Kernels.
func (k *Kernels) UploadBytes(t quant.Type, cols int) (int, error) { return UploadBytes(t, cols) }

// Recodes implements driver.Kernels.
func (k *Kernels) Recodes(t quant.Type) bool { return formats[t].split > 0 }

// Recode implements driver.Kernels.
func (k *Kernels) Recode(t quant.Type, cols int, to, file []byte) error {
	return Recode(t, cols, to, file)
}

// UploadBytes is the size of a row of weights as Pack takes it: the file's, or what Recode makes of it.
func UploadBytes(t quant.Type, cols int) (int, error) {
	if n := formats[t].split; n > 0 {
		return n * kernel.Tiles(cols), nil
	}
	return t.RowBytes(cols)
}

// Recode makes of whole rows of a file what Pack takes, in to, which has UploadBytes for each. Formats without kernels
// of their own become signed bytes with float32 scales, and lows, of 16 values each: 10 or 12 bits a weight. Values
// stay what they are, bit for bit. It uses all cores: one does some tens of millions of values a second.
func Recode(t quant.Type, cols int, to, file []byte) error {
	size := formats[t].split * kernel.Tiles(cols)
	if size == 0 {
		copy(to, file)
		return nil
	}
	row, err := t.RowBytes(cols)
	if err != nil || row == 0 {
		return err
	}
	rows := len(file) / row
	if len(to) < rows*size {
		return fmt.Errorf("%d rows of %d %s values need %d bytes, not %d", rows, cols, t, rows*size, len(to))
	}
	each := max(1, (1<<16)/cols) // rows of a piece
	var next atomic.Int64
	var group sync.WaitGroup
	faults := make([]error, min(runtime.GOMAXPROCS(0), (rows+each-1)/each))
	for worker := range faults {
		group.Go(func() {
			r := newRecoder(t, cols)
			for from := int(next.Add(int64(each))) - each; from < rows && faults[worker] == nil; {
				end := min(from+each, rows)
				faults[worker] = r.recode(to[from*size:end*size], file[from*row:end*row])
				from = int(next.Add(int64(each))) - each
			}
		})
	}
	group.Wait()
	return errors.Join(faults...)
}

// recoder recodes rows, one after the other.
type recoder struct {
	t            quant.Type
	size         int // of a row of a tile
	codes        []int8
	scales, lows []float32
}

func newRecoder(t quant.Type, cols int) *recoder {
	runs := cols / quant.SplitRun
	return &recoder{t, formats[t].split, make([]int8, cols), make([]float32, runs), make([]float32, runs)}
}

func (r *recoder) recode(to, file []byte) error {
	cols := len(r.codes)
	row := cols / r.t.Block() * r.t.Bytes()
	for ; len(file) > 0; file = file[row:] {
		if err := quant.Split(r.t, r.codes, r.scales, r.lows, file[:row]); err != nil {
			return err
		}
		for tile := range kernel.Tiles(cols) {
			r.tile(to[:r.size], tile)
			to = to[r.size:]
		}
	}
	return nil
}

// tile writes what a tile has of the row that was split.
func (r *recoder) tile(to []byte, tile int) {
	const runs = kernel.TileCols / quant.SplitRun
	clear(to)
	for i, c := range r.codes[tile*kernel.TileCols : min((tile+1)*kernel.TileCols, len(r.codes))] {
		to[i] = byte(c)
	}
	put := func(at int, all []float32) {
		for i, v := range all[tile*runs : min((tile+1)*runs, len(all))] {
			binary.LittleEndian.PutUint32(to[at+4*i:], math.Float32bits(v))
		}
	}
	put(kernel.TileCols, r.scales)
	if lows := kernel.TileCols + 4*runs; lows < len(to) {
		put(lows, r.lows)
	}
}
