package convert

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/packed"
	"github.com/sluice-ai/sluice/internal/quant"
)

// Bytes calls use with the bytes of a tensor of the folder; they are valid until use returns.
type Bytes func(name string, use func(data []byte) error) error

// InPlace says whether the tensor's bytes at a type are bytes of one tensor of the folder, unchanged and in one
// piece, and where in that they begin.
func (t *Tensor) InPlace(to quant.Type) (source string, offset int64, ok bool) {
	if len(t.Views) != 1 || t.Change != Same || t.Scales != nil || !t.Views[0].Contiguous() {
		return "", 0, false
	}
	v := &t.Views[0]
	own, ok := v.Source.Type.Quant()
	return v.Source.Name, v.Offset * int64(v.Source.Type.Size()), ok && own == to
}

// Write writes the values of the tensor at a type.
func (t *Tensor) Write(w io.Writer, to quant.Type, bytes Bytes) error {
	switch {
	case t.Change == PlusIndex && to == quant.I64:
		return t.writeIndices(w, bytes)
	case t.Scales != nil && to == quant.MXFP4:
		return t.writeBlocks(w, bytes)
	case t.Scales != nil:
		return fmt.Errorf("is stored as MXFP4 and would become %s: keep its type", to)
	}
	if made := t.blocks(); made != nil && made.Blocks == to {
		return made.WriteBlocks(packed.Bytes(bytes), w)
	}
	e, err := newEncoder(w, to, t.Shape[0])
	if err != nil {
		return err
	}
	if len(t.Values) > 0 {
		return e.add(t.Values)
	}
	for i := range t.Views {
		if err := t.Views[i].copy(bytes, e, t.Change); err != nil {
			return err
		}
	}
	return nil
}

// writeIndices writes whole numbers, each with its place added.
func (t *Tensor) writeIndices(w io.Writer, bytes Bytes) error {
	return bytes(t.Views[0].Source.Name, func(data []byte) error {
		out := make([]byte, 0, len(data))
		for i := range uint64(len(data) / 8) {
			out = binary.LittleEndian.AppendUint64(out, binary.LittleEndian.Uint64(data[8*i:])+i)
		}
		_, err := w.Write(out)
		return err
	})
}

// copy gives the elements of a view to an encoder.
func (v *View) copy(bytes Bytes, e *encoder, change Change) error {
	if v.Made != nil {
		return v.Made.Read(packed.Bytes(bytes), func(read packed.Values) error { return v.encode(read, e, change) })
	}
	return bytes(v.Source.Name, func(data []byte) error {
		size := int64(v.Source.Type.Size())
		own, ok := v.Source.Type.Quant()
		if !ok || own != e.to || change != Same || v.Factors != nil {
			widened := func(dst []float32, at int64) { widen(dst, v.Source.Type, data[at*size:]) }
			return v.encode(widened, e, change)
		}
		_, run := v.Runs()
		return v.Walk(func(at int64) error {
			_, err := e.w.Write(data[at*size : (at+run)*size])
			return err
		})
	})
}

// encode gives the elements of a view to an encoder, as a reader reads them.
func (v *View) encode(read packed.Values, e *encoder, change Change) error {
	_, run := v.Runs()
	const most = 4096 // values at a time, so that what is between types stays in a cache
	wide := make([]float32, 0, min(run, most))
	return v.Walk(func(at int64) error {
		for end := at + run; at < end; at += int64(len(wide)) {
			wide = wide[:min(end-at, most)]
			read(wide, at)
			for _, f := range v.Factors {
				for i := range wide {
					wide[i] *= f
				}
			}
			change.apply(wide)
			if err := e.add(wide); err != nil {
				return err
			}
		}
		return nil
	})
}

func widen(dst []float32, t element.Type, src []byte) {
	size := t.Size()
	for i := range dst {
		dst[i] = t.Widen(src[i*size:])
	}
}

func (c Change) apply(x []float32) {
	switch c {
	case Plus1:
		for i := range x {
			x[i]++
		}
	case NegExp:
		for i := range x {
			x[i] = float32(-math.Exp(float64(x[i])))
		}
	}
}

// encoder writes rows of values at a type.
type encoder struct {
	w     io.Writer
	to    quant.Type
	row   []float32 // the values of the present row that have come
	bytes []byte    // a row encoded
}

func newEncoder(w io.Writer, to quant.Type, row int) (*encoder, error) {
	size, err := to.RowBytes(row)
	if err != nil {
		return nil, err
	}
	return &encoder{w: w, to: to, row: make([]float32, 0, row), bytes: make([]byte, size)}, nil
}

func (e *encoder) add(x []float32) error {
	for len(x) > 0 {
		n := min(len(x), cap(e.row)-len(e.row))
		e.row, x = append(e.row, x[:n]...), x[n:]
		if len(e.row) < cap(e.row) {
			return nil
		}
		if err := quant.Quantize(e.to, e.bytes, e.row); err != nil {
			return err
		}
		if _, err := e.w.Write(e.bytes); err != nil {
			return err
		}
		e.row = e.row[:0]
	}
	return nil
}

// writeBlocks writes MXFP4: of each block the scale, then its 32 codes. ggml has the codes of values i and i + 16 in a
// byte, the folder those of values 2i and 2i + 1.
func (t *Tensor) writeBlocks(w io.Writer, bytes Bytes) error {
	scales, err := gather(t.Scales, bytes)
	if err != nil {
		return err
	}
	var block [17]byte
	filled := 1
	for i := range t.Views {
		v := &t.Views[i]
		_, run := v.Runs()
		err := bytes(v.Source.Name, func(data []byte) error {
			return v.Walk(func(at int64) error {
				for _, b := range data[at : at+run] {
					block[filled] = b
					if filled++; filled < len(block) {
						continue
					}
					block[0], scales, filled = scales[0], scales[1:], 1
					if _, err := w.Write(halved(&block)); err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// halved puts the codes of a block into ggml's order.
func halved(block *[17]byte) []byte {
	from := *block
	code := func(i int) byte { return from[1+i/2] >> (4 * (i % 2)) & 15 }
	for i := range 16 {
		block[1+i] = code(i) | code(i+16)<<4
	}
	return block[:]
}

// gather reads the elements of views of single bytes.
func gather(views []View, bytes Bytes) ([]byte, error) {
	var out []byte
	for i := range views {
		v := &views[i]
		_, run := v.Runs()
		err := bytes(v.Source.Name, func(data []byte) error {
			return v.Walk(func(at int64) error {
				out = append(out, data[at:at+run]...)
				return nil
			})
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
