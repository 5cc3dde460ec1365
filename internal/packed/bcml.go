package packed

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// bcmlSettings says of tensors of packages (.cgml) how many rows and columns they have.
type bcmlSettings struct {
	Shapes map[string][2]int `json:"shapes"`
}

// BCML1 has blocks of 32 values of a row: a word with a factor (float16, the lower half) and an offset (the upper), and
// four words of codes of 4 bits, the first lowest. A value is code · factor + offset. 64 rows are a panel, whose words
// lie column by column: [panels, words, 64]. What the last panel has beyond the rows, and the last block beyond the
// columns, says nothing. Blocks are those of ggml's Q4_1 but for the order of codes.
const (
	bcmlRows   = 64
	bcmlValues = 32
	bcmlWords  = 5
)

func bcml(s bcmlSettings) (*format, error) {
	return &format{name: "BCML1", make: func(_ *unpacker, t element.Tensor) (*Tensor, error) {
		shape, ok := s.Shapes[t.Name]
		switch {
		case !ok && t.Type == element.U32:
			return nil, fmt.Errorf("is of type U32, and how many rows and columns it has is not said")
		case !ok:
			return nil, nil
		}
		rowCount, columns := shape[0], shape[1]
		made := &Tensor{Tensor: described(t.Name, rowCount, columns), parts: []element.Tensor{t}}
		if err := matrix(made.Tensor); err != nil {
			return nil, err
		}
		wide := ((columns-1)/bcmlValues + 1) * bcmlWords
		if err := shaped(t, (rowCount-1)/bcmlRows+1, wide, bcmlRows); err != nil {
			return nil, err
		}
		if t.Type != element.U32 {
			return nil, fmt.Errorf("is of type %s, want U32", t.Type)
		}
		made.bind = func(parts [][]byte) (Values, error) {
			return rows(columns, bcmlPanels{parts[0], int64(wide)}.read), nil
		}
		if columns%bcmlValues == 0 {
			made.Blocks = quant.Q4_1
			made.blocks = func(parts [][]byte, w io.Writer) error {
				return bcmlPanels{parts[0], int64(wide)}.write(w, int64(rowCount))
			}
		}
		return made, nil
	}}, nil
}

// bcmlPanels are the panels of a tensor whose rows have so many words.
type bcmlPanels struct {
	data []byte
	wide int64
}

// word is a word of a row.
func (p bcmlPanels) word(row, word int64) uint32 {
	at := (row/bcmlRows*p.wide+word)*bcmlRows + row%bcmlRows
	return binary.LittleEndian.Uint32(p.data[4*at:])
}

func (p bcmlPanels) read(dst []float32, row, column int64) {
	runs(dst, column, bcmlValues, func(dst []float32, column, block int64) {
		head := p.word(row, block*bcmlWords)
		factor, offset := quant.F16ToF32(uint16(head)), quant.F16ToF32(uint16(head>>16))
		for i := range dst {
			at := (column + int64(i)) % bcmlValues
			q := p.word(row, block*bcmlWords+1+at/8) >> (4 * (at % 8)) & 15
			dst[i] = float32(float32(q)*factor) + offset
		}
	})
}

// write writes the blocks of so many rows as Q4_1: factor, offset, and bytes of the codes of values i and i + 16.
func (p bcmlPanels) write(w io.Writer, rowCount int64) error {
	var block [20]byte
	for row := range rowCount {
		for at := int64(0); at < p.wide; at += bcmlWords {
			binary.LittleEndian.PutUint32(block[:], p.word(row, at))
			for half := range int64(2) {
				low, high := p.word(row, at+1+half), p.word(row, at+3+half)
				for i := range 8 {
					block[4+8*int(half)+i] = byte(low>>(4*i)&15 | high>>(4*i)&15<<4)
				}
			}
			if _, err := w.Write(block[:]); err != nil {
				return err
			}
		}
	}
	return nil
}
