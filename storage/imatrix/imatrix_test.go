package imatrix

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func anyMatrix(t *rapid.T) *Matrix {
	m := &Matrix{
		Datasets:  rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "datasets"),
		Chunks:    rapid.IntRange(0, math.MaxInt32).Draw(t, "chunks"),
		ChunkSize: rapid.IntRange(0, math.MaxInt32).Draw(t, "chunk size"),
		Entries:   map[string]Entry{},
	}
	number := rapid.Float32Range(0, math.MaxFloat32)
	rows := rapid.OneOf(rapid.Just(float32(0)), rapid.Float32Range(1, math.MaxFloat32))
	for _, name := range rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z.]{1,9}`), 1, 4, rapid.ID[string]).Draw(t, "names") {
		experts := rapid.IntRange(1, 3).Draw(t, "experts")
		cols := rapid.IntRange(1, 5).Draw(t, "columns")
		m.Entries[name] = Entry{
			Squares: rapid.SliceOfN(number, cols*experts, cols*experts).Draw(t, "sums"),
			Counts:  rapid.SliceOfN(rows, experts, experts).Draw(t, "counts"),
		}
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "i.gguf")
	rapid.Check(t, func(t *rapid.T) {
		m := anyMatrix(t)
		store(t, m, path)
		got, err := Read(path)
		require.NoError(t, err)
		require.Equal(t, m, got)
	})
}

func store(t require.TestingT, m *Matrix, path string) {
	var file bytes.Buffer
	require.NoError(t, m.Write(&file))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
}

func TestImportance(t *testing.T) {
	e := Entry{Squares: []float32{8, 2, 0, 5, 6, 4}, Counts: []float32{4, 0, 2}}
	require.Equal(t, []float32{2, .5, 1, 1, 3, 2}, e.Importance())
	e.Counts = []float32{2}
	require.Equal(t, []float32{4, 1, 0, 2.5, 3, 2}, e.Importance())
}

// old spells out a file of the older format.
func old(parts ...any) []byte {
	var b bytes.Buffer
	for _, p := range parts {
		if s, ok := p.(string); ok {
			p = []byte(s)
		}
		if n, ok := p.(int); ok {
			p = int32(n)
		}
		_ = binary.Write(&b, binary.LittleEndian, p)
	}
	return b.Bytes()
}

func TestOldFormat(t *testing.T) {
	head := old(2, 1, "a", 4, 2, float32(8), float32(2), 3, "b.c", 0, 1, float32(7))
	want := map[string]Entry{
		"a":   {[]float32{8, 2}, []float32{4}},
		"b.c": {[]float32{7}, []float32{0}},
	}
	m, err := Parse("i.dat", head)
	require.NoError(t, err)
	require.Equal(t, &Matrix{Entries: want}, m)
	m, err = Parse("i.dat", append(head, old(9, 5, "x.txt")...))
	require.NoError(t, err)
	require.Equal(t, &Matrix{Entries: want, Chunks: 9, Datasets: []string{"x.txt"}}, m)
}

// asGGUF is a file with the given tensors, all of F32 unless told, and the marks of an importance matrix.
func asGGUF(t *testing.T, kind string, typ quant.Type, names ...string) []byte {
	m := new(meta.Map)
	m.Set(keyType, kind)
	var tensors []gguf.Tensor
	for _, name := range names {
		tensors = append(tensors, gguf.Tensor{Name: name, Type: typ, Shape: []int{3}})
	}
	var b bytes.Buffer
	require.NoError(t, gguf.Write(&b, m, tensors, func(x *gguf.Tensor, w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte{0xff}, int(x.Size)))
		return err
	}))
	return b.Bytes()
}

func TestBroken(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, `i: byte 0: the file ends before its number of entries: it is damaged, or no importance matrix`},
		{"nothing in it", old(0), `i: it has no entries: measure again`},
		{"another kind of file", []byte("<html><head>"), `i: byte 0: number of entries is 1836345404, more than 8 bytes ` +
			`can hold: the file is damaged, or no importance matrix`},
		{"negative", old(-1), `i: byte 0: number of entries is -1: the file is damaged, or no importance matrix`},
		{"long name", old(1, 1000, "a", 1, 1, float32(1)), `i: byte 4: number of bytes of the name is 1000, ` +
			`more than 13 bytes can hold: the file is damaged, or no importance matrix`},
		{"name as long as a file", append(old(1, 1<<16), make([]byte, 1<<17)...), `i: byte 4: number of bytes of the name ` +
			`is 65536, want at most 65535: the file is damaged, or no importance matrix`},
		{"many columns", old(1, 1, "a", 1, 1<<30, float32(1)), `i: byte 13: number of columns is 1073741824, ` +
			`more than 4 bytes can hold: the file is damaged, or no importance matrix`},
		{"cut", old(1, 13, "abcdefghijklm"), `i: byte 21: the file ends before its number of rows: ` +
			`it is damaged, or no importance matrix`},
		{"twice", old(2, 1, "a", 1, 1, float32(1), 1, "a", 1, 1, float32(1)), `i: "a" has two entries: measure again`},
		{"not finite", old(1, 1, "a", 1, 2, float32(1), nan),
			`i: importance of "a": number 1 is NaN, want a sum of squares: measure again`},
		{"no columns", old(1, 5, "abcde", 1, 0), `i: importance of "abcde": 0 sums for 1 counts, want as many columns for each`},
		{"a model", asGGUF(t, "model", quant.F32), `i: key general.type is "model", want "imatrix": ` +
			`this is no importance matrix`},
		{"no counts", asGGUF(t, "imatrix", quant.F32, "a.in_sum2"), `i: tensor "a.counts": is missing, but "a.in_sum2" is there`},
		{"halves", asGGUF(t, "imatrix", quant.F16, "a.in_sum2", "a.counts"),
			`i: tensor "a.in_sum2": is of type F16, want F32`},
		{"NaN in GGUF", asGGUF(t, "imatrix", quant.F32, "a.in_sum2", "a.counts"),
			`i: importance of "a": number 0 is NaN, want a sum of squares: measure again`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("i", c.data)
			require.EqualError(t, err, c.want)
		})
	}
}

// Means by part of a row could be no numbers.
func TestFractionOfARow(t *testing.T) {
	m := &Matrix{Entries: map[string]Entry{"a": {[]float32{1, 2}, []float32{1, 0x1p-130}}}}
	require.EqualError(t, m.Write(io.Discard),
		"importance of a: count 1 is 7.34684e-40, want a number of rows: measure again")
}

// Of what is no importance matrix only the beginning is read, however large it is.
func TestReadsNoMore(t *testing.T) {
	dir := t.TempDir()
	_, err := Read(dir)
	require.EqualError(t, err, dir+": is a folder, want a regular file")
	path := filepath.Join(dir, "large")
	require.NoError(t, os.WriteFile(path, old(7, 1<<30), 0o666))
	require.NoError(t, os.Truncate(path, 1<<33))
	_, err = Read(path)
	require.ErrorContains(t, err, "number of bytes of the name is 1073741824, want at most 65535")

	m := &Matrix{Chunks: 1, Entries: map[string]Entry{"a": {[]float32{1}, []float32{2}}}}
	require.NoError(t, os.WriteFile(path, old(1, 1, "a", 2, 1, float32(1), 1, 0), 0o666))
	got, err := Read(path)
	require.NoError(t, err)
	m.Datasets = []string{""}
	require.Equal(t, m, got)
}

func FuzzParse(f *testing.F) {
	f.Add(old(2, 1, "a", 4, 2, float32(8), float32(2), 3, "b.c", 0, 1, float32(7), 9, 5, "x.txt"))
	path := filepath.Join(f.TempDir(), "i.gguf")
	m := &Matrix{Datasets: []string{"d"}, Chunks: 1, Entries: map[string]Entry{
		"a": {[]float32{1, 2}, []float32{1, 3}}, "b": {[]float32{4}, []float32{5}},
	}}
	store(f, m, path)
	data, err := os.ReadFile(path)
	require.NoError(f, err)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse("i", data)
		if err != nil {
			return
		}
		size := 0
		for _, e := range m.Entries {
			weights := e.Importance()
			size += 4 * len(weights)
			for _, w := range weights {
				require.True(t, w >= 0 && w <= math.MaxFloat32, "%v", w)
			}
		}
		require.LessOrEqual(t, size, len(data), "no more than the file has")
	})
}
