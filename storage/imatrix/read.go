package imatrix

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Read reads the file at path, of either format.
func Read(path string) (*Matrix, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads a file that is in memory. The result aliases nothing of data.
func Parse(name string, data []byte) (*Matrix, error) {
	var m *Matrix
	var err error
	if bytes.HasPrefix(data, []byte("GGUF")) {
		var f *gguf.File
		if f, err = gguf.Parse(name, data); err != nil {
			return nil, err // it names the file
		}
		m, err = fromGGUF(f)
	} else {
		m, err = fromDat(data)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(m.Entries) == 0 {
		return nil, fmt.Errorf("%s: it has no entries: measure again", name)
	}
	for weight, e := range m.Entries {
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("%s: importance of %q: %w", name, weight, err)
		}
	}
	return m, nil
}

func fromGGUF(f *gguf.File) (*Matrix, error) {
	if kind, err := f.Meta.String(keyType); err != nil || kind != typeName {
		return nil, fmt.Errorf("key %s is %q, want %q: this is no importance matrix", keyType, kind, typeName)
	}
	m := &Matrix{Entries: map[string]Entry{}}
	var err error
	if m.Datasets, err = f.Meta.Strings(keyDatasets); err != nil && !errors.Is(err, meta.ErrMissing) {
		return nil, fmt.Errorf("key %w", err)
	}
	for key, to := range map[string]*int{keyChunks: &m.Chunks, keyChunkSize: &m.ChunkSize} {
		n, err := f.Meta.Int(key)
		if err != nil && !errors.Is(err, meta.ErrMissing) || n < 0 || n > math.MaxInt32 {
			return nil, fmt.Errorf("key %s: is not a number of chunks or tokens: measure again", key)
		}
		*to = int(n)
	}
	for i := range f.Tensors {
		weight, ok := strings.CutSuffix(f.Tensors[i].Name, sumsSuffix)
		if !ok {
			continue // the counts, found by the sums; newer files may have more
		}
		counts, ok := f.Tensor(weight + countsSuffix)
		if !ok {
			return nil, fmt.Errorf("tensor %q: is missing, but %q is there", weight+countsSuffix, f.Tensors[i].Name)
		}
		var e Entry
		if e.Squares, err = floats(f, &f.Tensors[i]); err != nil {
			return nil, err
		}
		if e.Counts, err = floats(f, counts); err != nil {
			return nil, err
		}
		m.Entries[weight] = e
	}
	return m, nil
}

func floats(f *gguf.File, t *gguf.Tensor) (values []float32, err error) {
	if t.Type != quant.F32 {
		return nil, fmt.Errorf("tensor %q: is of type %s, want F32", t.Name, t.Type)
	}
	err = f.View(t, func(data []byte) error {
		values = make([]float32, len(data)/4)
		return quant.Dequantize(t.Type, values, data)
	})
	return values, err
}

// dat reads the older format: little-endian int32 and float32 without alignment.
//
//	entries; for each: length of the name, name, rows, columns, columns × sum of squares
//	then, in most files: chunks, length of the dataset's name, that name
type dat struct {
	data []byte
	at   int
}

func fromDat(data []byte) (*Matrix, error) {
	d := &dat{data: data}
	const leastEntry = 4 + 1 + 4 + 4 + 4
	n, err := d.count("entries", leastEntry)
	if err != nil {
		return nil, err
	}
	m := &Matrix{Entries: map[string]Entry{}}
	for range n {
		if err := d.entry(m.Entries); err != nil {
			return nil, err
		}
	}
	if d.at == len(data) {
		return m, nil
	}
	if m.Chunks, err = d.number("chunks"); err != nil {
		return nil, err
	}
	set, err := d.text("dataset's name")
	m.Datasets = []string{set}
	return m, err
}

func (d *dat) entry(entries map[string]Entry) error {
	name, err := d.text("name")
	if err != nil {
		return err
	}
	rows, err := d.number("rows")
	if err != nil {
		return err
	}
	cols, err := d.count("columns", 4)
	if err != nil {
		return err
	}
	e := Entry{Squares: make([]float32, cols), Counts: []float32{float32(rows)}}
	for i := range e.Squares {
		e.Squares[i] = math.Float32frombits(binary.LittleEndian.Uint32(d.data[d.at+4*i:]))
	}
	d.at += 4 * cols
	if _, twice := entries[name]; twice {
		return fmt.Errorf("%q has two entries: measure again", name)
	}
	entries[name] = e
	return nil
}

// number reads an int32 that is not negative.
func (d *dat) number(what string) (int, error) {
	if len(d.data)-d.at < 4 {
		return 0, fmt.Errorf("byte %d: the file ends before its number of %s: it is damaged, or no importance matrix",
			d.at, what)
	}
	n := int32(binary.LittleEndian.Uint32(d.data[d.at:]))
	if n < 0 {
		return 0, fmt.Errorf("byte %d: number of %s is %d: the file is damaged, or no importance matrix", d.at, what, n)
	}
	d.at += 4
	return int(n), nil
}

// count reads a number of things that take at least size bytes each, which must be there.
func (d *dat) count(what string, size int) (int, error) {
	at := d.at
	n, err := d.number(what)
	if err == nil && n > (len(d.data)-d.at)/size {
		err = fmt.Errorf("byte %d: number of %s is %d, more than %d bytes can hold: the file is damaged, "+
			"or no importance matrix", at, what, n, len(d.data)-d.at)
	}
	return n, err
}

func (d *dat) text(what string) (string, error) {
	n, err := d.count("bytes of the "+what, 1)
	if err != nil {
		return "", err
	}
	s := string(d.data[d.at : d.at+n])
	d.at += n
	return s, nil
}

// replace writes a file beside its place and renames it when it is complete.
func replace(path string, write func(*os.File) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

func writeAll(f *os.File, keys *meta.Map, tensors []gguf.Tensor, values map[string][]float32) error {
	w := bufio.NewWriter(f)
	err := gguf.Write(w, keys, tensors, func(t *gguf.Tensor, w io.Writer) error {
		return binary.Write(w, binary.LittleEndian, values[t.Name])
	})
	return errors.Join(err, w.Flush())
}
