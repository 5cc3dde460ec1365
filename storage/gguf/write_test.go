package gguf

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// anyValue draws a metadata value of any kind.
func anyValue(t *rapid.T) any {
	raw := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
	return rapid.OneOf(
		rapid.Uint8().AsAny(), rapid.Int8().AsAny(), rapid.Uint16().AsAny(), rapid.Int16().AsAny(),
		rapid.Uint32().AsAny(), rapid.Int32().AsAny(), rapid.Float32().AsAny(), rapid.Bool().AsAny(),
		raw.AsAny(), rapid.Uint64().AsAny(), rapid.Int64().AsAny(), rapid.Float64().AsAny(),
		rapid.SliceOf(rapid.Uint8()).AsAny(), rapid.SliceOf(rapid.Int8()).AsAny(),
		rapid.SliceOf(rapid.Uint16()).AsAny(), rapid.SliceOf(rapid.Int16()).AsAny(),
		rapid.SliceOf(rapid.Uint32()).AsAny(), rapid.SliceOf(rapid.Int32()).AsAny(),
		rapid.SliceOf(rapid.Float32()).AsAny(), rapid.SliceOf(rapid.Bool()).AsAny(),
		rapid.SliceOf(raw).AsAny(), rapid.SliceOf(rapid.Uint64()).AsAny(),
		rapid.SliceOf(rapid.Int64()).AsAny(), rapid.SliceOf(rapid.Float64()).AsAny(),
	).Draw(t, "value")
}

// anyFile draws metadata and tensors of every type.
func anyFile(t *rapid.T) (*meta.Map, []Tensor) {
	names := rapid.SliceOfNDistinct(rapid.StringN(1, 20, 60), 0, 6, rapid.ID[string])
	m := new(meta.Map)
	for _, key := range names.Draw(t, "keys") {
		m.Set(key, anyValue(t))
	}
	if n := rapid.SampledFrom([]uint32{0, 1, 8, 32, 4096}).Draw(t, "alignment"); n > 0 {
		m.Set(keyAlignment, n)
	}
	var types []quant.Type
	for id := quant.Type(0); id < 64; id++ {
		if id.Known() {
			types = append(types, id)
		}
	}
	var tensors []Tensor
	for _, name := range names.Draw(t, "tensors") {
		typ := rapid.SampledFrom(types).Draw(t, "type")
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(t, "shape")
		shape[0] *= typ.Block()
		tensors = append(tensors, Tensor{Name: name, Type: typ, Shape: shape})
	}
	return m, tensors
}

// filler is the data of a tensor in tests: every byte depends on the name and the place.
func filler(t *Tensor) []byte {
	b := make([]byte, t.Size)
	for i := range b {
		b[i] = byte(i*31 + len(t.Name) + int(t.Name[0]))
	}
	return b
}

func fill(t *Tensor, w io.Writer) error {
	_, err := w.Write(filler(t))
	return err
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, tensors := anyFile(t)
		var file bytes.Buffer
		require.NoError(t, Write(&file, m, tensors, func(x *Tensor, w io.Writer) error {
			require.EqualValues(t, x.Offset, file.Len(), "where the data stands is known while it is written")
			_, err := io.Copy(w, bytes.NewReader(filler(x)))
			return err
		}))

		f, err := Parse("m.gguf", file.Bytes())
		require.NoError(t, err)
		require.Equal(t, m.Keys(), f.Meta.Keys())
		for _, key := range m.Keys() {
			want, _ := m.Get(key)
			got, _ := f.Meta.Get(key)
			require.IsType(t, want, got, key)
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), key) // as text, in which NaN equals itself
		}
		require.Len(t, f.Tensors, len(tensors))
		for i := range f.Tensors {
			x := &f.Tensors[i]
			require.Equal(t, tensors[i].Name, x.Name)
			require.Equal(t, tensors[i].Type, x.Type)
			require.Equal(t, tensors[i].Shape, x.Shape)
			require.NoError(t, f.View(x, func(data []byte) error {
				require.Equal(t, filler(x), data)
				return nil
			}))
		}
	})
}

func TestWriteRefuses(t *testing.T) {
	none := func(*Tensor, io.Writer) error { return nil }
	row := []int{4}
	for _, c := range []struct {
		name    string
		value   any
		tensors []Tensor
		data    func(*Tensor, io.Writer) error
		want    string
	}{
		{"value of no kind", 7, nil, none,
			`key "k": type int cannot be stored: want a number, truth value or text, or a slice of one of those`},
		{"duplicate", true, []Tensor{{Name: "a", Shape: row}, {Name: "a", Shape: row}}, none,
			`tensor "a": is listed twice`},
		{"name", true, []Tensor{{Name: "\xff", Shape: row}}, none,
			`tensor "\xff": a name is 1 to 65535 bytes of UTF-8`},
		{"shape", true, []Tensor{{Name: "a", Shape: []int{4, 0}}}, none,
			`tensor "a": dimension 1 is 0, want at least 1`},
		{"dimensions", true, []Tensor{{Name: "a"}}, none,
			`tensor "a": has 0 dimensions, want 1 to 4`},
		{"too little", true, []Tensor{{Name: "a", Shape: row}}, none,
			`tensor "a": 0 bytes were written, its F32 of shape [4] takes 16`},
		{"too much", true, []Tensor{{Name: "a", Shape: row}}, func(_ *Tensor, w io.Writer) error {
			_, err := w.Write(make([]byte, 17))
			return err
		}, `tensor "a": 17 bytes are more than its shape takes`},
		{"source fails", true, []Tensor{{Name: "a", Shape: row}}, func(*Tensor, io.Writer) error {
			return io.ErrUnexpectedEOF
		}, `tensor "a": unexpected EOF`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := new(meta.Map)
			m.Set("k", c.value)
			require.EqualError(t, Write(io.Discard, m, c.tensors, c.data), c.want)
		})
	}
}

// A few bytes of metadata do not make a file of gigabytes.
func TestPlanRefusesHugePadding(t *testing.T) {
	m := new(meta.Map)
	m.Set(keyAlignment, uint32(1<<31))
	_, err := Plan(m, nil)
	require.EqualError(t, err, `key "general.alignment": alignment is 2147483648, want at most 1048576 to write a file: `+
		`convert the model again`)
	m.Set(keyAlignment, uint32(1<<20))
	l, err := Plan(m, nil)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, l.Size)
}

// full is a disk that takes n more bytes.
type full struct{ n int }

func (d *full) Write(b []byte) (int, error) {
	if len(b) > d.n {
		return 0, io.ErrShortWrite
	}
	d.n -= len(b)
	return len(b), nil
}

// TestWriteReportsDiskFull lets the disk end at every byte of the file.
func TestWriteReportsDiskFull(t *testing.T) {
	m := new(meta.Map)
	m.Set("k", "v")
	write := func(w io.Writer) error {
		return Write(w, m, []Tensor{{Name: "a", Shape: []int{3}}}, func(x *Tensor, w io.Writer) error {
			_, _ = w.Write(filler(x)) // a careless source: the error must not get lost
			return nil
		})
	}
	var whole bytes.Buffer
	require.NoError(t, write(&whole))
	for n := range whole.Len() {
		require.ErrorIs(t, write(&full{n: n}), io.ErrShortWrite, "disk of %d bytes", n)
	}
	require.NoError(t, write(&full{n: whole.Len()}))
}
