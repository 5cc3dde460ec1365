package imatrix

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// Read reads the file at path, in either format. A file of another kind is not read to its end.
func Read(path string) (*Matrix, error) {
	f, info, err := safefile.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if !inGGUF(in) {
		m, err := fromDat(in, info.Size())
		return checked(path, m, err)
	}
	model, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer model.Close()
	m, err := fromGGUF(model)
	return checked(path, m, err)
}

// Parse reads a file that is in memory. The result aliases nothing of data. name stands for the file in errors.
func Parse(name string, data []byte) (*Matrix, error) {
	in := bufio.NewReader(bytes.NewReader(data))
	if !inGGUF(in) {
		m, err := fromDat(in, int64(len(data)))
		return checked(name, m, err)
	}
	model, err := gguf.Parse(name, data)
	if err != nil {
		return nil, err // it names the file
	}
	m, err := fromGGUF(model)
	return checked(name, m, err)
}

func inGGUF(in *bufio.Reader) bool {
	magic, _ := in.Peek(4) // on failure it is shorter
	return string(magic) == "GGUF"
}

// checked returns m if all its entries are plausible, else the error.
func checked(name string, m *Matrix, err error) (*Matrix, error) {
	if err == nil && len(m.Entries) == 0 {
		err = errors.New("it has no entries: measure again")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, weight := range slices.Sorted(maps.Keys(m.Entries)) {
		if err := m.Entries[weight].check(); err != nil {
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
	if m.Chunks, err = number(f, keyChunks); err != nil {
		return nil, err
	}
	if m.ChunkSize, err = number(f, keyChunkSize); err != nil {
		return nil, err
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

// number reads an optional key.
func number(f *gguf.File, key string) (int, error) {
	n, err := f.Meta.Int(key)
	if err != nil && !errors.Is(err, meta.ErrMissing) || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("key %s: is not a number of chunks or tokens: measure again", key)
	}
	return int(n), nil
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
	in   io.Reader
	at   int64
	left int64
}

func fromDat(in io.Reader, size int64) (*Matrix, error) {
	d := &dat{in: in, left: size}
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
	if d.left == 0 {
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
	if err := d.read(e.Squares); err != nil {
		return err
	}
	if _, twice := entries[name]; twice {
		return fmt.Errorf("%q has two entries: measure again", name)
	}
	entries[name] = e
	return nil
}

// read fills to from the remaining bytes, which must suffice.
func (d *dat) read(to any) error {
	if err := binary.Read(d.in, binary.LittleEndian, to); err != nil {
		return fmt.Errorf("byte %d: %w", d.at, err)
	}
	n := int64(binary.Size(to))
	d.at, d.left = d.at+n, d.left-n
	return nil
}

// number reads an int32 and refuses negative ones.
func (d *dat) number(what string) (int, error) {
	if d.left < 4 {
		return 0, fmt.Errorf("byte %d: the file ends before its number of %s: it is damaged, or no importance matrix",
			d.at, what)
	}
	at, n := d.at, int32(0)
	if err := d.read(&n); err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, fmt.Errorf("byte %d: number of %s is %d: the file is damaged, or no importance matrix", at, what, n)
	}
	return int(n), nil
}

// count reads a number of items, and checks that the file has at least size bytes for each.
func (d *dat) count(what string, size int64) (int, error) {
	at := d.at
	n, err := d.number(what)
	if err == nil && int64(n) > d.left/size {
		err = fmt.Errorf("byte %d: number of %s is %d, more than %d bytes can hold: the file is damaged, "+
			"or no importance matrix", at, what, n, d.left)
	}
	return n, err
}

func (d *dat) text(what string) (string, error) {
	const most = 1<<16 - 1 // as in GGUF
	at := d.at
	n, err := d.count("bytes of the "+what, 1)
	if err == nil && n > most {
		err = fmt.Errorf("byte %d: number of bytes of the %s is %d, want at most %d: the file is damaged, "+
			"or no importance matrix", at, what, n, most)
	}
	if err != nil {
		return "", err
	}
	s := make([]byte, n)
	err = d.read(s)
	return string(s), err
}
