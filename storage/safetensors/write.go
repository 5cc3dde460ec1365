package safetensors

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Floats is a tensor of float32 numbers, in the order of a file: the last axis runs fastest.
type Floats struct {
	Name   string
	Shape  []int
	Values []float32
}

// Write writes a file of tensors.
func Write(w io.Writer, all []Floats) error {
	header, offset := bytes.NewBufferString("{"), 0
	for i, t := range all {
		n := 1
		for _, d := range t.Shape {
			n *= d
		}
		if n != len(t.Values) {
			return fmt.Errorf("%s is %v, and has %d numbers", t.Name, t.Shape, len(t.Values))
		}
		if i > 0 {
			header.WriteByte(',')
		}
		header.WriteString(strconv.Quote(t.Name) + `:{"dtype":"F32","shape":[`)
		for j, d := range t.Shape {
			if j > 0 {
				header.WriteByte(',')
			}
			header.WriteString(strconv.Itoa(d))
		}
		fmt.Fprintf(header, `],"data_offsets":[%d,%d]}`, offset, offset+4*n)
		offset += 4 * n
	}
	header.WriteByte('}')
	const align = 8
	for header.Len()%align != 0 {
		header.WriteByte(' ')
	}
	out := bufio.NewWriter(w)
	word := binary.LittleEndian.AppendUint64(nil, uint64(header.Len()))
	out.Write(word)           //nolint:errcheck // Flush returns the same error
	out.Write(header.Bytes()) //nolint:errcheck // likewise
	for _, t := range all {
		for _, v := range t.Values {
			word = binary.LittleEndian.AppendUint32(word[:0], math.Float32bits(v))
			out.Write(word) //nolint:errcheck // likewise
		}
	}
	return out.Flush()
}
