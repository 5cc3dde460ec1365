// Package element knows how training frameworks store numbers: the types of elements, and tensors of them in files.
//
// Readers of checkpoints hand out Stored tensors, what converts models takes them; neither needs to know the other.
// Types of blocks are internal/quant's.
package element

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/sluice-ai/sluice/internal/quant"
)

// Type is that of a tensor's elements.
type Type uint8

// All are little-endian. F8E4M3 is the variant without infinities, as PyTorch's float8_e4m3fn.
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
	last
)

// kinds has the names that safetensors uses, and sizes in bytes.
var kinds = [last]struct {
	name string
	size int
}{
	F64: {"F64", 8}, F32: {"F32", 4}, F16: {"F16", 2}, BF16: {"BF16", 2}, F8E4M3: {"F8_E4M3", 1}, F8E5M2: {"F8_E5M2", 1},
	I64: {"I64", 8}, I32: {"I32", 4}, I16: {"I16", 2}, I8: {"I8", 1}, U8: {"U8", 1}, Bool: {"BOOL", 1},
}

// String is the name in safetensors files.
func (t Type) String() string {
	if t == 0 || t >= last {
		return fmt.Sprintf("element type %d", uint8(t))
	}
	return kinds[t].name
}

// Size is that of one element in bytes; 0 for what is no type.
func (t Type) Size() int {
	if t >= last {
		return 0
	}
	return kinds[t].size
}

// Parse finds a type by its name in safetensors files.
func Parse(name string) (Type, bool) {
	for t := F64; t < last; t++ {
		if kinds[t].name == name {
			return t, true
		}
	}
	return 0, false
}

// Quant is the type of GGUF files that has the same bytes, if there is one.
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

// Real says whether Widen reads the type.
func (t Type) Real() bool { return t >= F64 && t <= BF16 }

// Widen reads one element of a real type. It is exact for all but F64.
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

// Tensor is a name and what it stands for. Elements lie in the order of C: the last dimension is contiguous.
type Tensor struct {
	Name  string
	Type  Type
	Shape []int // outermost dimension first; none for a single number
}

// Count is the number of elements, or an error if no machine could hold them.
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

// Stored is a tensor in a file.
type Stored struct {
	Tensor
	Offset, Size int64 // bytes, from the start of the file
}
