package gguf

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// kind is the type id of a metadata value.
type kind uint32

const (
	kindUint8 kind = iota
	kindInt8
	kindUint16
	kindInt16
	kindUint32
	kindInt32
	kindFloat32
	kindBool
	kindString
	kindArray
	kindUint64
	kindInt64
	kindFloat64
	kinds // one more than the last
)

// least is the size of the smallest encoding of a value of each kind, in bytes.
var least = [kinds]int{1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8}

// value reads one metadata value: its kind, then its bytes.
func (c *cursor) value() (any, error) {
	at := c.at
	id, err := c.u32()
	if err != nil {
		return nil, err
	}
	switch k := kind(id); {
	case k == kindArray:
		return c.array()
	case k == kindString:
		b, err := c.bytes()
		return string(b), err
	case k < kinds:
		return c.scalar(k)
	}
	return nil, fmt.Errorf("value type at byte %d is %d, want 0 to %d: "+
		"the file is damaged or newer than this program", at, id, kinds-1)
}

func (c *cursor) scalar(k kind) (any, error) {
	at := c.at
	b, err := c.take(least[k])
	if err != nil {
		return nil, err
	}
	switch k {
	case kindUint8:
		return b[0], nil
	case kindInt8:
		return int8(b[0]), nil
	case kindUint16:
		return number[uint16](b), nil
	case kindInt16:
		return number[int16](b), nil
	case kindUint32:
		return number[uint32](b), nil
	case kindInt32:
		return number[int32](b), nil
	case kindFloat32:
		return number[float32](b), nil
	case kindUint64:
		return number[uint64](b), nil
	case kindInt64:
		return number[int64](b), nil
	case kindFloat64:
		return number[float64](b), nil
	}
	if b[0] > 1 {
		return nil, fmt.Errorf("truth value at byte %d is %d, want 0 or 1: the file is damaged, download it again",
			at, b[0])
	}
	return b[0] == 1, nil
}

func number[T any](b []byte) T { return numbers[T](b, 1)[0] }

// numbers decodes n numbers from b, which has exactly their bytes.
func numbers[T any](b []byte, n int) []T {
	out := make([]T, n)
	if _, err := binary.Decode(b, binary.LittleEndian, out); err != nil {
		panic(err) // the caller cut b wrongly, or T has no fixed size
	}
	return out
}

// array reads the kind of the elements, their number, and the elements.
func (c *cursor) array() (any, error) {
	at := c.at
	id, err := c.u32()
	if err != nil {
		return nil, err
	}
	k := kind(id)
	if k == kindArray {
		return nil, fmt.Errorf("element type at byte %d is array, want numbers, truth values or texts: "+
			"nested arrays are not supported, convert the model without this key", at)
	}
	if k >= kinds {
		return nil, fmt.Errorf("element type at byte %d is %d, want 0 to %d: "+
			"the file is damaged or newer than this program", at, id, kinds-1)
	}
	n, err := c.count("array length", least[k])
	if err != nil {
		return nil, err
	}
	if k == kindString {
		return c.texts(n)
	}
	return c.elements(k, n)
}

func (c *cursor) elements(k kind, n int) (any, error) {
	at := c.at
	b, err := c.take(n * least[k]) // count has checked that these bytes exist
	if err != nil {
		return nil, err
	}
	switch k {
	case kindUint8:
		return numbers[uint8](b, n), nil
	case kindInt8:
		return numbers[int8](b, n), nil
	case kindUint16:
		return numbers[uint16](b, n), nil
	case kindInt16:
		return numbers[int16](b, n), nil
	case kindUint32:
		return numbers[uint32](b, n), nil
	case kindInt32:
		return numbers[int32](b, n), nil
	case kindFloat32:
		return numbers[float32](b, n), nil
	case kindUint64:
		return numbers[uint64](b, n), nil
	case kindInt64:
		return numbers[int64](b, n), nil
	case kindFloat64:
		return numbers[float64](b, n), nil
	}
	for i, x := range b {
		if x > 1 {
			return nil, fmt.Errorf("truth value at byte %d is %d, want 0 or 1: the file is damaged, download it again",
				at+i, x)
		}
	}
	return numbers[bool](b, n), nil
}

// texts copies n strings into one allocation, since a vocabulary has hundreds of thousands of them. Lengths are read
// once only, because the file may change meanwhile.
func (c *cursor) texts(n int) ([]string, error) {
	var all strings.Builder
	ends := make([]int, 0, min(n, 1<<16))
	for i := range n {
		b, err := c.bytes()
		if err != nil {
			return nil, fmt.Errorf("element %d of %d: %w", i, n, err)
		}
		all.Write(b)
		ends = append(ends, all.Len())
	}
	out, text, start := make([]string, n), all.String(), 0
	for i, end := range ends {
		out[i], start = text[start:end], end
	}
	return out, nil
}
