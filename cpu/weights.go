package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// weight is one tensor in the form in which it is used. Exactly one of matrix, vector and table is set.
type weight struct {
	name   string
	typ    quant.Type
	rows   int
	cols   int
	row    int             // bytes of a row in the file
	size   int             // bytes in the weights' memory
	matrix *kernels.Matrix // packed in tiles, or in file order; a tied embedding is read from it, too
	vector []float32
	table  []byte // rows as in the file: of an embedding that is nothing else
}

func (w *weight) measure(want *ir.Weight, t quant.Type, inPlace bool) (err error) {
	w.name, w.typ, w.rows, w.cols = want.Name, t, want.Rows, want.Cols
	if w.row, err = t.RowBytes(want.Cols); err != nil {
		return err
	}
	switch {
	case want.Experts > 0 && want.Rows/want.Experts%kernels.TileRows != 0:
		err = fmt.Errorf("matrices of %d rows for each expert: want a multiple of %d", want.Rows/want.Experts,
			kernels.TileRows)
	case want.Heads > 0 && want.Rows/want.Heads%kernels.TileRows != 0:
		err = fmt.Errorf("matrices of %d rows for each head: want a multiple of %d", want.Rows/want.Heads, kernels.TileRows)
	case want.Use&ir.Matrix != 0:
		w.size, err = kernels.Size(t, want.Rows, want.Cols)
	case !quant.HasCodec(t):
		err = fmt.Errorf("%s cannot be decoded: convert the model to a type that can, such as Q8_0", t)
	case want.Use&ir.Vector != 0:
		w.size = 4 * want.Rows * want.Cols
	default:
		w.size = w.row * want.Rows
	}
	if inPlace && want.Use&ir.Vector == 0 {
		w.size = 0
	}
	return err
}

// adopt uses data, the whole weight as in the file, where it lies; vectors are decoded.
func (w *weight) adopt(data []byte, use ir.Use) (err error) {
	switch {
	case len(data) != w.row*w.rows:
		err = fmt.Errorf("%d bytes in place, want %d", len(data), w.row*w.rows)
	case use&ir.Matrix != 0:
		w.matrix, err = kernels.InFileOrder(w.typ, w.rows, w.cols, data)
	case use&ir.Vector != 0:
		err = quant.Dequantize(w.typ, w.vector, data)
	default:
		w.table = data
	}
	return err
}

func (w *weight) place(memory []byte, use ir.Use) (err error) {
	switch {
	case use&ir.Matrix != 0:
		w.matrix, err = kernels.NewMatrix(w.typ, w.rows, w.cols, memory)
	case use&ir.Vector != 0:
		w.vector = floats(memory)
	default:
		w.table = memory
	}
	return err
}

// upload stores rows in the file's layout from row on.
func (w *weight) upload(set *kernels.Set, row int, data []byte) error {
	n := len(data) / w.row
	if len(data)%w.row != 0 || row < 0 || row > w.rows-n {
		return fmt.Errorf("%s: %d bytes for row %d, want whole rows of %d bytes, %d in all", w.name, len(data), row, w.row,
			w.rows)
	}
	switch {
	case w.size == 0:
		return fmt.Errorf("%s: is used in place, and cannot be uploaded", w.name)
	case w.matrix != nil:
		if err := set.Pack(w.matrix, row, data); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	case w.vector != nil:
		return quant.Dequantize(w.typ, w.vector[row*w.cols:][:n*w.cols], data)
	default:
		copy(w.table[row*w.row:], data)
	}
	return nil
}

// decode reads one row.
func (w *weight) decode(dst []float32, row int, buf *kernels.RowBuffer) error {
	if w.matrix != nil {
		w.matrix.Row(dst, row, buf)
		return nil
	}
	return quant.Dequantize(w.typ, dst, w.table[row*w.row:][:w.row])
}
