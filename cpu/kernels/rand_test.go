package kernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/stretchr/testify/require"
)

// types are all that have a product.
var types = func() (types []quant.Type) {
	for t := range quant.Type(len(formats)) {
		if Supports(t) {
			types = append(types, t)
		}
	}
	return types
}()

// unit is the least number of columns that a type's rows are tested with: floats may have any.
func unit(t quant.Type) int { return t.Block() }

// A nature says what random data looks like.
type nature int

const (
	tame    nature = iota // like a model
	wild                  // any bits: NaN, infinities, subnormals in the scales
	extreme               // codes and activations at the ends of their ranges
	natures
)

// f16Fields are the offsets of the half-precision scales of a block.
func f16Fields(t quant.Type) (at []int) {
	for _, f := range formats[t].fields {
		for u := 0; t.Block() > 1 && f.unit == 2 && f.size <= 4 && u < f.size; u += 2 {
			at = append(at, f.offset+u)
		}
	}
	return at
}

// randomRows is a matrix in the file's layout.
func randomRows(rng *rand.Rand, t quant.Type, rows, cols int, kind nature) []byte {
	n := rows * cols / t.Block()
	data := make([]byte, n*t.Bytes())
	if t.Block() == 1 {
		if kind != wild {
			values := make([]float32, n)
			for i := range values {
				values[i] = float32(rng.NormFloat64())
			}
			if err := quant.Quantize(t, data, values); err != nil {
				panic(err)
			}
			return data
		}
	}
	fill := byte([]int{0, 0xff, 0x80, 0x7f}[rng.IntN(4)])
	for i := range data {
		data[i] = byte(rng.Uint32())
		if kind == extreme {
			data[i] = fill
		}
	}
	if kind != wild {
		for at := 0; at < len(data); at += t.Bytes() {
			switch t {
			case quant.MXFP4:
				data[at] = byte(110 + rng.IntN(20))
			case quant.IQ1_M: // the high nibbles of four words
				d := quant.F32ToF16(float32(rng.NormFloat64() * 0.01))
				for i := range 4 {
					data[at+49+2*i] = data[at+49+2*i]&15 | byte(d>>(4*i)&15<<4)
				}
			}
			for _, f := range f16Fields(t) {
				binary.LittleEndian.PutUint16(data[at+f:], quant.F32ToF16(float32(rng.NormFloat64()*0.01)))
			}
		}
	}
	return data
}

// randomValues is rows of activations, all finite.
func randomValues(rng *rand.Rand, n int, kind nature) []float32 {
	values := make([]float32, n)
	sign := float32(1 - 2*rng.IntN(2))
	for i := range values {
		switch kind {
		case tame:
			values[i] = float32(rng.NormFloat64())
		case extreme: // every activation becomes 127 or -127
			values[i] = sign
			if rng.IntN(64) == 0 {
				sign = -sign
			}
		default:
			for values[i] = math.Float32frombits(rng.Uint32()); values[i]-values[i] != 0; {
				values[i] = math.Float32frombits(rng.Uint32())
			}
		}
	}
	return values
}

// packed is data as a matrix.
func packed(t testing.TB, typ quant.Type, rows, cols int, data []byte) *Matrix {
	size, err := Size(typ, rows, cols)
	require.NoError(t, err)
	m, err := NewMatrix(typ, rows, cols, make([]byte, size))
	require.NoError(t, err)
	require.NoError(t, generic().Pack(m, 0, data))
	return m
}

// prepared is activations as weights of a type meet them.
func prepared(t testing.TB, s *Set, typ quant.Type, rows, cols int, values []float32) *Acts {
	a := &Acts{Form: FormOf(typ), Rows: rows, Cols: cols, Float: values, Stride: cols}
	a.Blocks = make([]byte, rows*a.Form.RowBytes(cols))
	if s.Tiled() && a.Form != Plain {
		a.Tiles = make([]byte, TileBytes(rows, a.rowBytes()))
	}
	for r := range rows {
		require.NoError(t, s.Quantize(a, r, values[r*cols:][:cols]))
	}
	return a
}

// sameBits says where two slices differ first; all NaNs are one value.
func sameBits(want, got []float32) error {
	if len(want) != len(got) {
		return fmt.Errorf("%d values, want %d", len(got), len(want))
	}
	for i, w := range want {
		if g := got[i]; math.Float32bits(w) != math.Float32bits(g) && (w == w || g == g) {
			return fmt.Errorf("value %d is %v (%08x), want %v (%08x)", i, g, math.Float32bits(g), w, math.Float32bits(w))
		}
	}
	return nil
}
