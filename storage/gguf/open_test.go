package gguf

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
)

// writeFile writes a model with filler for data.
func writeFile(t testing.TB, path string, m *meta.Map, tensors ...Tensor) {
	var b bytes.Buffer
	require.NoError(t, Write(&b, m, tensors, fill))
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
}

// splitMap is the metadata of part no of count.
func splitMap(no, count uint16, tensors int32) *meta.Map {
	m := new(meta.Map)
	m.Set("part", int32(no))
	m.Set(keySplitNo, no)
	m.Set(keySplitCount, count)
	m.Set(keySplitTensors, tensors)
	return m
}

func splitPath(dir string, no, count int) string {
	return filepath.Join(dir, fmt.Sprintf("m-%05d-of-%05d.gguf", no+1, count))
}

// writeSplit writes three parts with two tensors each.
func writeSplit(t testing.TB) string {
	dir := t.TempDir()
	for no := range 3 {
		writeFile(t, splitPath(dir, no, 3), splitMap(uint16(no), 3, 6),
			Tensor{Name: fmt.Sprint("a", no), Type: quant.F32, Shape: []int{5}},
			Tensor{Name: fmt.Sprint("b", no), Type: quant.Q8_0, Shape: []int{32, 2}})
	}
	return dir
}

func TestSplit(t *testing.T) {
	dir := writeSplit(t)
	f, err := Open(splitPath(dir, 0, 3))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	require.Equal(t, 3, f.Parts())
	require.Len(t, f.Tensors, 6)
	for i := range f.Tensors {
		x := &f.Tensors[i]
		require.Equal(t, i/2, x.Part)
		require.Equal(t, splitPath(dir, i/2, 3), f.Part(x.Part).Path)
		require.NoError(t, f.View(x, func(data []byte) error {
			require.Equal(t, filler(x), data)
			return nil
		}))
	}
	part, err := f.Meta.Int("part")
	require.NoError(t, err)
	require.Zero(t, part, "the metadata is the first part's")
}

func TestBrokenSplits(t *testing.T) {
	a := Tensor{Name: "a", Type: quant.F32, Shape: []int{1}}
	for _, c := range []struct {
		name string
		edit func(dir string)
		open int
		want string // with DIR for the folder
	}{
		{"missing part", func(dir string) { require.NoError(t, os.Remove(splitPath(dir, 1, 3))) }, 0,
			"DIR/m-00001-of-00003.gguf: part 2 of 3: DIR/m-00002-of-00003.gguf: " + syscall.ENOENT.Error()},
		{"not the first", func(string) {}, 1,
			`DIR/m-00002-of-00003.gguf: is part "00002" of 3, want the first: open DIR/m-00001-of-00003.gguf`},
		{"part of another model", func(dir string) { writeFile(t, splitPath(dir, 2, 3), splitMap(2, 4, 6), a) }, 0,
			"DIR/m-00001-of-00003.gguf: part 3 of 3: DIR/m-00003-of-00003.gguf: says it is part 3 of 4: " +
				"these parts do not belong together, download the model again"},
		{"parts swapped", func(dir string) { writeFile(t, splitPath(dir, 2, 3), splitMap(1, 3, 6), a) }, 0,
			"DIR/m-00001-of-00003.gguf: part 3 of 3: DIR/m-00003-of-00003.gguf: says it is part 2 of 3: " +
				"these parts do not belong together, download the model again"},
		{"tensor in two parts", func(dir string) {
			a.Name = "a0"
			writeFile(t, splitPath(dir, 2, 3), splitMap(2, 3, 6), a)
		}, 0, "DIR/m-00001-of-00003.gguf: part 3 of 3: DIR/m-00003-of-00003.gguf: " +
			`tensor "a0": is also in DIR/m-00001-of-00003.gguf: ` +
			"these parts do not belong together, download the model again"},
		{"fewer tensors", func(dir string) { a.Name = "c"; writeFile(t, splitPath(dir, 2, 3), splitMap(2, 3, 6), a) }, 0,
			`DIR/m-00001-of-00003.gguf: key "split.tensors.count" is 6, the 3 parts hold 5 tensors: ` +
				"download the model again"},
		{"too many parts", func(dir string) {
			m := splitMap(0, 3, 6)
			m.Set(keySplitCount, uint32(100000))
			writeFile(t, splitPath(dir, 0, 3), m, a)
		}, 0, `DIR/m-00001-of-00003.gguf: key "split.count" is 100000, want at most 99999: ` +
			"the file is damaged, download it again"},
		{"count is a text", func(dir string) {
			m := splitMap(0, 3, 6)
			m.Set(keySplitCount, "three")
			writeFile(t, splitPath(dir, 0, 3), m, a)
		}, 0, "DIR/m-00001-of-00003.gguf: split.count: is of type string, want an integer"},
		{"count is negative", func(dir string) {
			m := splitMap(0, 3, 6)
			m.Set(keySplitCount, int32(-3))
			writeFile(t, splitPath(dir, 0, 3), m, a)
		}, 0, `DIR/m-00001-of-00003.gguf: key "split.count" is -3, want at most 99999: ` +
			"the file is damaged, download it again"},
		{"count of a part is a text", func(dir string) {
			m := splitMap(2, 3, 6)
			m.Set(keySplitCount, "three")
			writeFile(t, splitPath(dir, 2, 3), m, a)
		}, 0, "DIR/m-00001-of-00003.gguf: part 3 of 3: DIR/m-00003-of-00003.gguf: " +
			"split.count: is of type string, want an integer"},
		{"number is a text", func(dir string) {
			m := splitMap(0, 3, 6)
			m.Set(keySplitNo, "first")
			writeFile(t, splitPath(dir, 0, 3), m, a)
		}, 0, "DIR/m-00001-of-00003.gguf: split.no: is of type string, want an integer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := writeSplit(t)
			c.edit(dir)
			_, err := Open(splitPath(dir, c.open, 3))
			require.Error(t, err)
			require.Equal(t, c.want, filepath.ToSlash(strings.ReplaceAll(err.Error(), dir, "DIR")))
		})
	}

	path := filepath.Join(t.TempDir(), "renamed.gguf")
	writeFile(t, path, splitMap(0, 3, 6), a)
	_, err := Open(path)
	require.EqualError(t, err, path+": is one of 3 parts, so its name must end in -00001-of-00003.gguf "+
		"for the others to be found: give the parts their original names")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	_, err := Open(dir)
	require.EqualError(t, err, dir+": is a folder, want a regular file: give the path of a .gguf file")
	_, err = Open(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = Open(empty)
	require.EqualError(t, err, empty+": the file is empty, want a GGUF model: download it again")
}

// TestViewKeepsPanics checks that only faults of the mapping become errors.
func TestViewKeepsPanics(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	writeFile(t, path, new(meta.Map), Tensor{Name: "w", Type: quant.F32, Shape: []int{4}})
	f, err := Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	w, _ := f.Tensor("w")
	require.PanicsWithValue(t, "ours", func() { _ = f.View(w, func([]byte) error { panic("ours") }) })
	var nowhere *int
	require.Panics(t, func() { _ = f.View(w, func([]byte) error { *nowhere = 1; return nil }) })
	require.ErrorIs(t, f.View(w, func([]byte) error { return io.EOF }), io.EOF)
}

// BenchmarkVocabulary opens a file with the vocabulary of a large model: 128256 tokens, 280147 merges.
func BenchmarkVocabulary(b *testing.B) {
	m := new(meta.Map)
	tokens, merges := make([]string, 128256), make([]string, 280147)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("Ġtoken%d", i)
	}
	for i := range merges {
		merges[i] = fmt.Sprintf("Ġto ken%d", i)
	}
	m.Set("tokenizer.ggml.tokens", tokens)
	m.Set("tokenizer.ggml.merges", merges)
	m.Set("tokenizer.ggml.token_type", make([]int32, len(tokens)))
	path := filepath.Join(b.TempDir(), "m.gguf")
	writeFile(b, path, m)
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		require.NoError(b, err)
		require.NoError(b, f.Close())
	}
}

// A file that is shared is open until each owner has closed it.
func TestShare(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	m := new(meta.Map)
	m.Set("general.architecture", "llama")
	writeFile(t, path, m, Tensor{Name: "a", Type: quant.F32, Shape: []int{8}})
	f, err := Open(path)
	require.NoError(t, err)
	other := f.Share()
	require.NoError(t, f.Close())
	require.NotEmpty(t, other.Bytes(&other.Tensors[0]))
	require.NoError(t, other.Close())
	require.Panics(t, func() { other.Bytes(&other.Tensors[0]) })
	require.NoError(t, other.Close())
}
