package requant

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/safefile"
	src "github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// piece is a run of rows of a tensor, which one worker converts at a time.
type piece struct {
	tensor     int
	row, rows  int
	begin, end int64 // in the new file; the last piece of a tensor takes the padding after it
}

// cursor yields the pieces of a file in order.
type cursor struct {
	values      int // most values of a piece; a longer row is a piece by itself
	tensor, row int // where the next piece begins
}

func (c *cursor) piece(l *gguf.Layout) (piece, bool) {
	if c.tensor == len(l.Tensors) {
		return piece{}, false
	}
	t := &l.Tensors[c.tensor]
	all := rows(t)
	p := piece{tensor: c.tensor, row: c.row, rows: min(all-c.row, max(1, c.values/t.Shape[0]))}
	p.begin = t.Offset + int64(c.row)*rowBytes(t)
	p.end = p.begin + int64(p.rows)*rowBytes(t)
	if c.row += p.rows; c.row == all {
		c.tensor, c.row = c.tensor+1, 0
		p.end = l.Size
		if c.tensor < len(l.Tensors) {
			p.end = l.Tensors[c.tensor].Offset
		}
	}
	return p, true
}

// rows returns the number of rows of all matrices of a tensor; matrices returns the number of matrices.
func rows(t *gguf.Tensor) int { return product(t.Shape[1:]) }

func matrices(t *gguf.Tensor) int { return product(t.Shape[min(2, len(t.Shape)):]) }

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func rowBytes(t *gguf.Tensor) int64 { return t.Size / int64(rows(t)) }

// source returns the tensor of the source with the values of a tensor of the new file.
func source(f *gguf.File, t *gguf.Tensor) (*gguf.Tensor, error) {
	from, ok := f.Tensor(t.Name)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s: it has no tensor %q", f.Name, t.Name)
	case !slices.Equal(from.Shape, t.Shape):
		return nil, fmt.Errorf("%s: tensor %q: shape %v, want %v", f.Name, t.Name, from.Shape, t.Shape)
	case from.Type != t.Type && !quant.HasCodec(from.Type):
		return nil, fmt.Errorf("%s: tensor %q: values of %s cannot be decoded yet: start from a file in F16 or BF16",
			f.Name, t.Name, from.Type)
	}
	return from, nil
}

// part is an open file of the source. It is read and not mapped: pages of a mapping would count as this process's
// memory.
type part struct {
	io.ReaderAt
	name  string
	close func() error
}

func (w *writer) openSources() error {
	for i := range w.job.Source.Parts() {
		p, err := openPart(w.job.Source.Part(i))
		if err != nil {
			w.closeSources()
			return err
		}
		w.parts = append(w.parts, p)
	}
	var err error
	w.key, err = w.identity()
	return err
}

func openPart(s src.Source) (part, error) {
	if s.Path == "" {
		return part{bytes.NewReader(s.Data), s.Name, func() error { return nil }}, nil
	}
	f, _, err := safefile.Open(s.Path)
	if err != nil {
		return part{}, fmt.Errorf("%s: %w", s.Path, err)
	}
	return part{f, s.Name, f.Close}, nil
}

func (w *writer) closeSources() {
	for _, p := range w.parts {
		_ = p.close() // it was only read
	}
}

// buffers is the memory of one worker.
type buffers struct {
	in, out []byte
	row     []float32
}

// write computes a piece and writes it to the file.
func (w *writer) write(p *piece, b *buffers) error {
	from, to := w.from[p.tensor], &w.layout.Tensors[p.tensor]
	size := rowBytes(from)
	b.in = slices.Grow(b.in[:0], p.rows*int(size))[:p.rows*int(size)]
	if err := w.parts[from.Part].read(b.in, from.Offset+int64(p.row)*size); err != nil {
		return err
	}
	data := b.in
	if from.Type != to.Type {
		b.out = slices.Grow(b.out[:0], int(p.end-p.begin))[:p.rows*int(rowBytes(to))]
		if err := w.convert(b, from, to, p.row); err != nil {
			return fmt.Errorf("%s: tensor %q: %w: is the file damaged? Else choose a type such as BF16 for this tensor",
				w.parts[from.Part].name, to.Name, err)
		}
		data = b.out
	}
	padding := int(p.end-p.begin) - len(data)
	_, err := w.out.WriteAt(append(data, make([]byte, padding)...), p.begin)
	return err
}

func (p *part) read(dst []byte, at int64) error {
	_, err := p.ReadAt(dst, at)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: was cut to less than %d bytes while it was read", p.name, at+int64(len(dst)))
	}
	return err
}

// convert decodes the rows in b.in one by one and encodes them to b.out. first is the index of the first row in its
// tensor.
func (w *writer) convert(b *buffers, from, to *gguf.Tensor, first int) error {
	cols := to.Shape[0]
	b.row = slices.Grow(b.row[:0], cols)[:cols]
	perMatrix := rows(to) / matrices(to)
	importance := w.job.Importance[to.Name]
	in, out := int(rowBytes(from)), int(rowBytes(to))
	for i := range len(b.in) / in {
		if err := quant.Dequantize(from.Type, b.row, b.in[i*in:][:in]); err != nil {
			return err
		}
		var weights []float32
		if importance != nil {
			weights = importance[(first+i)/perMatrix*cols:][:cols]
		}
		if err := quant.QuantizeRow(to.Type, b.out[i*out:][:out], b.row, weights); err != nil {
			return fmt.Errorf("row %d: %w", first+i, err)
		}
	}
	return nil
}
