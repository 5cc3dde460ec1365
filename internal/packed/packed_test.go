package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/quant"
)

// piece is a tensor of a folder with its bytes.
type piece struct {
	element.Tensor
	data []byte
}

// folder is a folder made by hand.
type folder struct {
	mlx, method string // of config.json
	pieces      []piece
}

func (f *folder) add(name string, kind element.Type, shape []int, data []byte) {
	f.pieces = append(f.pieces, piece{element.Tensor{Name: name, Type: kind, Shape: shape}, data})
}

func (f *folder) unpack() (*Contents, error) {
	var tensors []element.Tensor
	for _, p := range f.pieces {
		tensors = append(tensors, p.Tensor)
	}
	return Unpack([]byte(f.mlx), []byte(f.method), tensors)
}

func (f *folder) bytes(name string, use func([]byte) error) error {
	for _, p := range f.pieces {
		if p.Name == name {
			return use(p.data)
		}
	}
	return fmt.Errorf("there is no %s", name)
}

// all reads the values of a tensor at once, and again in pieces of each of some lengths, which must give the same bits.
func (f *folder) all(t testing.TB, made *Tensor) (out []float32) {
	t.Helper()
	n, err := made.Count()
	require.NoError(t, err)
	require.NoError(t, made.Read(f.bytes, func(read Values) error {
		out = make([]float32, n)
		read(out, 0)
		for _, size := range []int{1, 3, 7, 64} {
			for at := 0; at < int(n); at += size {
				part := make([]float32, min(size, int(n)-at))
				read(part, int64(at))
				for i, v := range part {
					if math.Float32bits(out[at+i]) != math.Float32bits(v) {
						require.Fail(t, "differs", "value %d is %v, and %v in pieces of %d", at+i, out[at+i], v, size)
					}
				}
			}
		}
		return nil
	}))
	return out
}

// holds checks that a folder has one tensor of a model, with some name, shape and values.
func (f *folder) holds(t *testing.T, name string, shape []int, want func(row, column int) float32) {
	t.Helper()
	c, err := f.unpack()
	require.NoError(t, err)
	require.Equal(t, []element.Tensor{{Name: name, Type: element.F32, Shape: shape}}, c.Tensors)
	got := f.all(t, c.Made[name])
	width := shape[len(shape)-1]
	for i, v := range got {
		if w := want(i/width, i%width); v != w {
			require.Fail(t, "differs", "row %d, column %d: is %v, want %v", i/width, i%width, v, w)
		}
	}
}

func (f *folder) with(change func(*folder)) *folder {
	other := *f
	other.pieces = slices.Clone(f.pieces)
	change(&other)
	return &other
}

func f32s(v ...float32) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

func f16s(v ...float32) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint16(out, quant.F32ToF16(x))
	}
	return out
}

func bf16s(v ...float32) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint16(out, quant.F32ToBF16(x))
	}
	return out
}

func wordsOf(v ...uint32) (out []byte) {
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, x)
	}
	return out
}

// stream packs codes one behind the other, the lowest bit first, bit by bit, into whole words.
func stream(bits int, codes ...int) []uint32 {
	out := make([]uint32, words(len(codes), bits))
	for i, c := range codes {
		for b := range bits {
			at := i*bits + b
			out[at/32] |= uint32(c>>b&1) << (at % 32)
		}
	}
	return out
}

// matrixOf has the number of each row and column.
func matrixOf[T any](rows, columns int, of func(row, column int) T) (out []T) {
	for r := range rows {
		for c := range columns {
			out = append(out, of(r, c))
		}
	}
	return out
}

// columnsOf packs the codes of each column down its words.
func columnsOf(rows, columns, bits int, of func(row, column int) int) []uint32 {
	height := words(rows, bits)
	out := make([]uint32, height*columns)
	for c := range columns {
		for i, w := range stream(bits, matrixOf(rows, 1, func(r, _ int) int { return of(r, c) })...) {
			out[i*columns+c] = w
		}
	}
	return out
}

// rowsOf packs the codes of each row along its words.
func rowsOf(rows, columns, bits int, of func(row, column int) int) (out []uint32) {
	for r := range rows {
		out = append(out, stream(bits, matrixOf(1, columns, func(_, c int) int { return of(r, c) })...)...)
	}
	return out
}

// Numbers that tests put into folders: a code, a zero and a scale that depend on where they are.
func codeAt(row, column, bits int) int { return (row*7 + column*5 + column/9) % (1 << bits) }
func zeroAt(row, group, bits int) int  { return (row*3 + group*5 + 1) % (1 << bits) }
func scaleAt(row, group int) float32   { return float32(1+(row+3*group)%13) / 64 }

// TestPlain: tensors of folders that nobody packed stay as they are, in their order.
func TestPlain(t *testing.T) {
	f := new(folder)
	f.add("b", element.BF16, []int{2}, nil)
	f.add("a", element.U8, []int{2, 2}, nil)
	for _, method := range []string{"", `{}`, `{"quant_method": "mxfp4"}`} {
		f.method = method
		c, err := f.unpack()
		require.NoError(t, err)
		require.Equal(t, []element.Tensor{f.pieces[0].Tensor, f.pieces[1].Tensor}, c.Tensors)
		require.Empty(t, c.Made)
	}
}

// fuzzed reads folders whose parts have shapes and bytes of a fuzzer's choice: nothing panics, and what is accepted can
// be read.
func fuzzed(f *testing.F, sample *folder) {
	shapes := make([]byte, 0, 16)
	var data []byte
	for _, p := range sample.pieces {
		for _, d := range p.Shape {
			shapes = append(shapes, byte(d))
		}
		data = append(data, p.data...)
	}
	f.Add([]byte(sample.mlx), []byte(sample.method), shapes, data)
	f.Fuzz(func(t *testing.T, mlx, method, shapes, data []byte) {
		x := &folder{mlx: string(mlx), method: string(method)}
		for _, p := range sample.pieces {
			shape := make([]int, len(p.Shape))
			bytes := p.Type.Size()
			for i := range shape {
				if len(shapes) > 0 {
					shape[i], shapes = int(int8(shapes[0])), shapes[1:]
				}
				bytes *= max(shape[i], 0)
			}
			if bytes > 1<<16 {
				return
			}
			content := make([]byte, bytes)
			data = data[copy(content, data):]
			x.add(p.Name, p.Type, shape, content)
		}
		c, err := x.unpack()
		if err != nil {
			require.NotEmpty(t, err.Error())
			return
		}
		for _, made := range c.Made {
			n, err := made.Count()
			require.NoError(t, err)
			require.Less(t, n, int64(1<<20), "no more values than bytes can be")
			_ = made.Read(x.bytes, func(read Values) error {
				read(make([]float32, n), 0)
				return nil
			})
		}
	})
}
