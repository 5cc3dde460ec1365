// Package element describes numbers as training frameworks store them: element types, and tensors of them in files.
//
// Readers of checkpoints return Stored tensors, the conversion of models takes them; neither needs to know the other.
// Block types are in internal/quant.
package element

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Type is the type of a tensor's elements.
type Type uint8

// Element types, all little-endian. F8E4M3 is the variant without infinities, as PyTorch's float8_e4m3fn.
const (
	F64 Type = iota + 1
	F32
	F16
	BF16
	F8E4M3
	F8E5M2
	I64
	I32
	I16
	I8
	U8
	Bool
	U32
	F8E8M0 // a power of two, as a scale of others
	last
)

// kinds holds the types' names in safetensors files, and their sizes in bytes.
var kinds = [last]struct {
	name string
	size int
}{
	F64: {"F64", 8}, F32: {"F32", 4}, F16: {"F16", 2}, BF16: {"BF16", 2}, F8E4M3: {"F8_E4M3", 1}, F8E5M2: {"F8_E5M2", 1},
	I64: {"I64", 8}, I32: {"I32", 4}, I16: {"I16", 2}, I8: {"I8", 1}, U8: {"U8", 1}, Bool: {"BOOL", 1},
	U32: {"U32", 4}, F8E8M0: {"F8_E8M0", 1},
}

// String returns the type's name in safetensors files.
func (t Type) String() string {
	if t == 0 || t >= last {
		return fmt.Sprintf("element type %d", uint8(t))
	}
	return kinds[t].name
}

// Size returns the size of an element in bytes; 0 for an unknown type.
func (t Type) Size() int {
	if t >= last {
		return 0
	}
	return kinds[t].size
}

// Parse returns the type of a name in safetensors files, and whether there is one.
func Parse(name string) (Type, bool) {
	for t := F64; t < last; t++ {
		if kinds[t].name == name {
			return t, true
		}
	}
	return 0, false
}

// Quant returns the type of GGUF files with the same bytes, and whether there is one.
func (t Type) Quant() (quant.Type, bool) {
	switch t {
	case F32:
		return quant.F32, true
	case F16:
		return quant.F16, true
	case BF16:
		return quant.BF16, true
	}
	return 0, false
}

// Real reports whether Widen accepts the type.
func (t Type) Real() bool { return t >= F64 && t <= BF16 }

// Widen converts one element of a real type from its bytes. It is exact for all types but F64.
func (t Type) Widen(b []byte) float32 {
	switch t {
	case F64:
		return float32(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case F32:
		return math.Float32frombits(binary.LittleEndian.Uint32(b))
	case F16:
		return quant.F16ToF32(binary.LittleEndian.Uint16(b))
	case BF16:
		return quant.BF16ToF32(binary.LittleEndian.Uint16(b))
	}
	panic("element: " + t.String() + " is not real") // callers ask Real first
}

// Tensor is the name, type and shape of a tensor. Elements lie in C order: the last dimension is contiguous.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int // outermost dimension first; none for a single number
}

// Count returns the number of elements. It fails if a dimension is negative or the number does not fit an int64.
func (t *Tensor) Count() (int64, error) {
	n := int64(1)
	for _, d := range t.Shape {
		if d < 0 {
			return 0, fmt.Errorf("shape is %v: no dimension is negative", t.Shape)
		}
		if d > 0 && n > math.MaxInt64/16/int64(d) {
			return 0, fmt.Errorf("shape is %v: it has more elements than any disk", t.Shape)
		}
		n *= int64(d)
	}
	return n, nil
}

// Stored is a tensor in a file, with the place of its bytes.
type Stored struct {
	Tensor
	Offset, Size int64 // bytes, from the start of the file
}
