package cpu

import (
	"fmt"

	"github.com/sluice-ai/sluice/cpu/kernels"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// weight is one tensor in the form in which it is used. Exactly one of parts, vector and table is set, with one
// exception: an embedding whose pieces share slots is in a table, too, for reading single rows.
type weight struct {
	name     string
	typ      quant.Type
	use      ir.Use
	rows     int
	cols     int
	row      int               // bytes of a row in the file
	each     int               // rows of a part
	parts    []*kernels.Matrix // one for each group: packed in tiles; or in file order, without Data while in no slot
	groups   []int             // groups of parts
	vector   []float32
	byColumn bool   // the vector has several rows, and is kept column after column
	table    []byte // rows as in the file: of an embedding
}

// measure sets a weight's sizes from the file's type, for groups of one use.
func (w *weight) measure(want *ir.Weight, t quant.Type, use ir.Use) (err error) {
	w.name, w.typ, w.use, w.rows, w.cols, w.each = want.Name, t, use, want.Rows, want.Cols, want.Rows
	if w.row, err = t.RowBytes(want.Cols); err != nil {
		return err
	}
	switch {
	case want.Experts > 0 && want.Rows/want.Experts%kernels.TileRows != 0:
		return fmt.Errorf("matrices of %d rows for each expert: want a multiple of %d", want.Rows/want.Experts,
			kernels.TileRows)
	case want.Heads > 0 && want.Rows/want.Heads%kernels.TileRows != 0:
		return fmt.Errorf("matrices of %d rows for each head: want a multiple of %d", want.Rows/want.Heads,
			kernels.TileRows)
	case use == ir.Table && t == quant.I32: // numbers of something
	case use == ir.Matrix:
		_, err = kernels.Size(t, want.Rows, want.Cols)
	case !quant.HasCodec(t):
		err = fmt.Errorf("%s cannot be decoded: convert the model to a type that can, such as Q8_0", t)
	}
	return err
}

// size is the bytes that so many rows take in memory of their own.
func (w *weight) size(rows int) int {
	switch w.use {
	case ir.Matrix:
		size, err := kernels.Size(w.typ, rows, w.cols)
		if err != nil {
			panic(err) // measure reported it of all rows
		}
		return size
	case ir.Vector:
		return 4 * rows * w.cols
	}
	return w.row * rows
}

// add adds the rows of a group, to be packed into memory.
func (w *weight) add(group, rows int, memory []byte) (err error) {
	switch w.use {
	case ir.Matrix:
		var m *kernels.Matrix
		m, err = kernels.NewMatrix(w.typ, rows, w.cols, memory)
		w.part(group, m)
	case ir.Vector:
		w.vector = floats(memory)
	default:
		w.table = memory
	}
	return err
}

// adopt adds the rows of a group in place, in the file's layout; vectors are decoded.
func (w *weight) adopt(group, rows int, data []byte) (err error) {
	switch {
	case len(data) != rows*w.row:
		err = fmt.Errorf("%d bytes in place, want %d", len(data), rows*w.row)
	case w.use == ir.Matrix:
		var m *kernels.Matrix
		m, err = kernels.InFileOrder(w.typ, rows, w.cols, data)
		w.part(group, m)
	case w.use == ir.Vector:
		err = w.take(0, data)
	default:
		w.table = data
	}
	return err
}

// await adds the rows of a group that is in no slot yet. With again, packed strips are kept while the group is there.
func (w *weight) await(group, rows int, again bool) {
	m := &kernels.Matrix{Type: w.typ, Rows: rows, Cols: w.cols, FileOrder: true}
	if again {
		m.Packed = make([]bool, m.Tiles())
	}
	w.part(group, m)
}

func (w *weight) part(group int, m *kernels.Matrix) {
	if len(w.parts) == 0 {
		w.each = m.Rows
	}
	w.parts, w.groups = append(w.parts, m), append(w.groups, group)
}

// upload stores rows in the file's layout from row on.
func (w *weight) upload(set *kernels.Set, row int, data []byte) error {
	n := len(data) / w.row
	if len(data)%w.row != 0 || row < 0 || row > w.rows-n {
		return fmt.Errorf("%s: %d bytes for row %d, want whole rows of %d bytes, %d in all", w.name, len(data), row, w.row,
			w.rows)
	}
	switch w.use {
	case ir.Matrix:
		return w.pack(set, row, data)
	case ir.Vector:
		return w.take(row, data)
	}
	copy(w.table[row*w.row:], data)
	return nil
}

// take decodes rows into a vector, from row on.
func (w *weight) take(row int, data []byte) error {
	n := len(data) / w.row
	if !w.byColumn {
		return quant.Dequantize(w.typ, w.vector[row*w.cols:][:n*w.cols], data)
	}
	one := make([]float32, w.cols)
	for i := range n {
		if err := quant.Dequantize(w.typ, one, data[i*w.row:][:w.row]); err != nil {
			return err
		}
		for j, x := range one {
			w.vector[j*w.rows+row+i] = x
		}
	}
	return nil
}

// channelwise says whether a weight has rows for channels that are computed side by side: of a convolution, or the
// rates of a scan by channels.
func channelwise(p *ir.Bound, r ir.Ref) (found bool) {
	eachState(p, func(n *ir.Node) { found = found || n.W == r && (n.Op == ir.CausalConv || byChannel(n)) })
	return found
}

// oddHalves is an error if a weight is gate and up in one, and the rows of each do not fill whole tiles.
func oddHalves(p *ir.Bound, r ir.Ref) error {
	for s := range p.Segments {
		for i := range p.Segments[s].Nodes {
			e := p.Segments[s].Nodes[i].Experts
			if e == nil || !e.Joined() || e.Gate != r {
				continue
			}
			if rows := p.Weights[e.Down].Cols; rows%kernels.TileRows != 0 {
				return fmt.Errorf("two matrices of %d rows for each expert: want a multiple of %d", rows, kernels.TileRows)
			}
		}
	}
	return nil
}

// pack packs rows into the parts that they belong to.
func (w *weight) pack(set *kernels.Set, row int, data []byte) error {
	for len(data) > 0 {
		m, at := w.parts[row/w.each], row%w.each
		if m.FileOrder {
			return fmt.Errorf("%s: row %d is placed in a slot, and cannot be uploaded", w.name, row)
		}
		n := min(len(data)/w.row, m.Rows-at)
		if err := set.Pack(m, at, data[:n*w.row]); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		row, data = row+n, data[n*w.row:]
	}
	return nil
}

// decode reads one row.
func (w *weight) decode(dst []float32, row int, buf *kernels.RowBuffer) error {
	if w.table == nil {
		w.parts[row/w.each].Row(dst, row%w.each, buf)
		return nil
	}
	if w.typ == quant.I32 {
		quant.Whole(dst, w.table[row*w.row:][:w.row])
		return nil
	}
	return quant.Dequantize(w.typ, dst, w.table[row*w.row:][:w.row])
}
