// Package quant knows the number formats of ggml: their ids, names, block sizes and byte layouts.
//
// Tensors are rows of blocks. A block holds a fixed number of values in a fixed number of bytes; the table in
// formats.go describes each one. Dequantize is the reference decoder, written to be read: kernels are tested against
// it, and do not call it. Quantize and QuantizeRow are the encoders, which search for little error. The package knows
// no tensors, files or devices.
package quant

import (
	"fmt"
	"math"
	"strings"
)

// Type is a ggml type id, as stored in a GGUF tensor directory. Ids that are missing here were given to formats
// that ggml has since removed (4, 5, 31 to 33, 36 to 38).
type Type uint32

// The ids are those of enum ggml_type in ggml.h.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q8_1    Type = 9
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	Q8_K    Type = 15
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// Known says whether the id is that of a format. Other ids have no known size, so their data cannot even be skipped.
func (t Type) Known() bool { return int(t) < len(formats) && formats[t].block > 0 }

// String is the name as llama.cpp prints it, such as Q4_K.
func (t Type) String() string {
	if !t.Known() {
		return fmt.Sprintf("type %d", uint32(t))
	}
	return formats[t].name
}

// Block is the number of values in one block, 0 for an unknown type.
func (t Type) Block() int {
	if !t.Known() {
		return 0
	}
	return formats[t].block
}

// Bytes is the size of one block, 0 for an unknown type.
func (t Type) Bytes() int {
	if !t.Known() {
		return 0
	}
	return formats[t].bytes
}

// RowBytes is the size of n values. They must fill whole blocks.
func (t Type) RowBytes(n int) (int, error) {
	if !t.Known() {
		return 0, fmt.Errorf("%s is not a known ggml type: its size is unknown", t)
	}
	f := &formats[t]
	if n < 0 || n%f.block != 0 {
		return 0, fmt.Errorf("%s comes in blocks of %d values, and %d is not a multiple of it", t, f.block, n)
	}
	if n/f.block > math.MaxInt/f.bytes {
		return 0, fmt.Errorf("%s: %d values need more bytes than this machine can address", t, n)
	}
	return n / f.block * f.bytes, nil
}

// Bounds are those of a block's numbers; all are 0 for types that have no blocks.
func (t Type) Bounds() Bounds {
	if !t.Known() {
		return Bounds{}
	}
	return formats[t].bounds
}

// All lists the types whose format is known.
func All() (types []Type) {
	for id := range formats {
		if t := Type(id); t.Known() {
			types = append(types, t)
		}
	}
	return types
}

// Parse finds a type by its name, in either case.
func Parse(name string) (Type, bool) {
	for _, t := range All() {
		if strings.EqualFold(formats[t].name, name) {
			return t, true
		}
	}
	return 0, false
}

// HasCodec says whether Dequantize reads the type.
func HasCodec(t Type) bool { return t.Known() && formats[t].decode != nil }

// Dequantize decodes all of src, whole blocks of type t, to dst, in ggml's own arithmetic: every product and sum
// rounded to float32, in the order of ggml's reference loops.
func Dequantize(t Type, dst []float32, src []byte) error {
	if !HasCodec(t) {
		return fmt.Errorf("%s has no decoder yet: convert the tensor to a type that has one, such as Q8_0", t)
	}
	if err := sameLength(t, len(dst), len(src)); err != nil {
		return err
	}
	formats[t].decode(dst, src)
	return nil
}

// sameLength checks that n values of type t take exactly size bytes.
func sameLength(t Type, n, size int) error {
	want, err := t.RowBytes(n)
	if err != nil {
		return err
	}
	if want != size {
		return fmt.Errorf("%s: %d values take %d bytes, not %d", t, n, want, size)
	}
	return nil
}
