package tile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/sluice-ai/sluice/gpu/kernel"
	"github.com/sluice-ai/sluice/internal/quant"
)

// UploadBytes is the size of a row of cols weights in bytes, as Pack takes it: as in the file, or as Recode converts
// it.
func UploadBytes(t quant.Type, cols int) (int, error) {
	if n := Of(t).Recoded(); n > 0 {
		return n * kernel.Tiles(cols), nil
	}
	return t.RowBytes(cols)
}

// Recode converts whole rows of a file to the form that Pack takes; to has UploadBytes for each. Types without kernels
// of their own become signed bytes with a float32 scale, and perhaps a float32 minimum (low), for each 16 values: 10 or
// 12 bits a weight. Values stay the same, bit for bit. It uses all cores: one converts some tens of millions of values
// a second.
func Recode(t quant.Type, cols int, to, file []byte) error {
	size := Of(t).Recoded() * kernel.Tiles(cols)
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
	size         int // bytes of a row of a tile
	codes        []int8
	scales, lows []float32
}

func newRecoder(t quant.Type, cols int) *recoder {
	runs := cols / quant.SplitRun
	return &recoder{t, Of(t).Recoded(), make([]int8, cols), make([]float32, runs), make([]float32, runs)}
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

// tile writes what one tile holds of the row that was split.
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
