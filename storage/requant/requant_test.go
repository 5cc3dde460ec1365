package requant

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// model writes a model of random values to memory.
func model(t require.TestingT, tensors []gguf.Tensor, edit func(name string, values []float32)) *gguf.File {
	m := new(meta.Map)
	m.Set("general.name", "test")
	var file bytes.Buffer
	random := rand.New(rand.NewPCG(1, 2))
	require.NoError(t, gguf.Write(&file, m, tensors, func(x *gguf.Tensor, w io.Writer) error {
		values := make([]float32, rows(x)*x.Shape[0])
		for i := range values {
			values[i] = float32(random.NormFloat64())
		}
		if edit != nil {
			edit(x.Name, values)
		}
		data := make([]byte, x.Size)
		require.NoError(t, quant.Quantize(x.Type, data, values))
		_, err := w.Write(data)
		return err
	}))
	f, err := gguf.Parse("model.gguf", file.Bytes())
	require.NoError(t, err)
	return f
}

// plainly makes the new file in the most direct way.
func plainly(t require.TestingT, j *Job) []byte {
	var file bytes.Buffer
	require.NoError(t, gguf.Write(&file, j.Meta, j.Tensors, func(x *gguf.Tensor, w io.Writer) error {
		from, _ := j.Source.Tensor(x.Name)
		values, data := make([]float32, rows(x)*x.Shape[0]), make([]byte, x.Size)
		require.NoError(t, j.Source.View(from, func(b []byte) error { return quant.Dequantize(from.Type, values, b) }))
		require.NoError(t, quant.Quantize(x.Type, data, values))
		_, err := w.Write(data)
		return err
	}))
	return file.Bytes()
}

// job is one with all kinds of tensors, in many pieces, in another order than the source's.
func job(t require.TestingT) *Job {
	f := model(t, []gguf.Tensor{
		{Name: "a", Type: quant.BF16, Shape: []int{64, 9}},
		{Name: "norm", Type: quant.F32, Shape: []int{3}},
		{Name: "experts", Type: quant.F32, Shape: []int{32, 5, 4}},
		{Name: "odd", Type: quant.Q8_0, Shape: []int{96, 7}},
	}, nil)
	m := new(meta.Map)
	m.Set("general.name", "new")
	return &Job{Source: f, Meta: m, Threads: 2, pieceValues: 128, syncBytes: 100, Tensors: []gguf.Tensor{
		{Name: "odd", Type: quant.Q4_0, Shape: []int{96, 7}},
		{Name: "norm", Type: quant.F32, Shape: []int{3}},
		{Name: "a", Type: quant.Q8_0, Shape: []int{64, 9}},
		{Name: "experts", Type: quant.F16, Shape: []int{32, 5, 4}},
	}}
}

func TestRun(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := job(rt)
		j.Threads = rapid.IntRange(1, 5).Draw(rt, "threads")
		j.pieceValues = rapid.IntRange(1, 2000).Draw(rt, "values of a piece")
		last := int64(0)
		j.Progress = func(done, total int64) {
			require.LessOrEqual(rt, last, done)
			require.LessOrEqual(rt, done, total)
			last = done
		}
		path := filepath.Join(t.TempDir(), "new.gguf")
		resumed, err := j.Run(context.Background(), path)
		require.NoError(rt, err)
		require.Zero(rt, resumed)
		got, err := os.ReadFile(path)
		require.NoError(rt, err)
		require.Equal(rt, plainly(rt, j), got)
		require.EqualValues(rt, len(got), last)
		require.NoFileExists(rt, path+Suffix)
	})
}

var errDead = errors.New("the power is gone")

// mortal is a disk that takes some writes, half of the next one, and then nothing: neither data nor journal.
type mortal struct {
	*os.File
	left atomic.Int64
}

func (d *mortal) WriteAt(b []byte, at int64) (int, error) {
	switch n := d.left.Add(-1); {
	case n < -1:
		return 0, errDead
	case n == -1:
		n, _ := d.File.WriteAt(b[:len(b)/2], at)
		return n, errDead
	}
	return d.File.WriteAt(b, at)
}

func (d *mortal) Sync() error {
	if d.left.Load() < 0 {
		return errDead
	}
	return nil
}

func killedAfter(writes int) func(string) (disk, error) {
	return func(path string) (disk, error) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		d := &mortal{File: f}
		d.left.Store(int64(writes))
		return d, err
	}
}

// Whenever a run dies, whatever is then lost of the end of the file, whatever stands where nothing was said to be
// written: nobody takes the rest for a model, and the next run ends with the same bytes.
func TestResume(t *testing.T) {
	want := plainly(t, job(t))
	rapid.Check(t, func(rt *rapid.T) {
		j := job(rt)
		path := filepath.Join(t.TempDir(), "new.gguf")
		for range rapid.IntRange(1, 3).Draw(rt, "deaths") {
			j.open = killedAfter(rapid.IntRange(0, 60).Draw(rt, "writes"))
			if _, err := j.Run(context.Background(), path); err == nil {
				break
			}
			require.NoFileExists(rt, path)
			mistreat(rt, path+Suffix)
			_, err := gguf.Open(path + Suffix)
			require.ErrorContains(rt, err, "partial")
		}
		if _, err := os.Stat(path); err != nil {
			j.open = nil
			_, err := j.Run(context.Background(), path)
			require.NoError(rt, err)
		}
		got, err := os.ReadFile(path)
		require.NoError(rt, err)
		require.Equal(rt, want, got)
	})
}

// mistreat cuts a partial file, and overwrites what is beyond its journal's word.
func mistreat(t *rapid.T, path string) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data = data[:rapid.IntRange(0, len(data)).Draw(t, "cut")]
	if len(data) >= journalBytes {
		reached := int(data[journalBytes-8]) | int(data[journalBytes-7])<<8 | int(data[journalBytes-6])<<16
		for i := max(reached, journalBytes); i < len(data); i++ {
			data[i] ^= 0x55
		}
	}
	require.NoError(t, os.WriteFile(path, data, 0o666))
}

// What was written is not written again.
func TestResumeGoesOn(t *testing.T) {
	j := job(t)
	j.Threads = 1
	path := filepath.Join(t.TempDir(), "new.gguf")
	ctx, cancel := context.WithCancel(context.Background())
	half := int64(0)
	j.Progress = func(done, total int64) {
		if half = done; done > total/2 {
			cancel()
		}
	}
	_, err := j.Run(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
	first := int64(0)
	j.Progress = func(done, _ int64) {
		if first == 0 {
			first = done
		}
	}
	resumed, err := j.Run(context.Background(), path)
	require.NoError(t, err)
	layout, err := gguf.Plan(j.Meta, j.Tensors)
	require.NoError(t, err)
	require.Equal(t, half-int64(len(layout.Head)), resumed)
	require.Greater(t, first, half)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, plainly(t, j), got)
}

// What another job has left is of no use, but no harm either.
func TestOtherJobStartsOver(t *testing.T) {
	for name, edit := range map[string]func(j *Job){
		"type":       func(j *Job) { j.Tensors[0].Type = quant.Q8_0 },
		"metadata":   func(j *Job) { j.Meta.Set("k", true) },
		"importance": func(j *Job) { j.Importance = map[string][]float32{"a": make([]float32, 64)} },
		"source": func(j *Job) {
			j.Source = model(t, j.Source.Tensors, func(_ string, values []float32) { values[0]++ })
		},
	} {
		t.Run(name, func(t *testing.T) {
			j, path := job(t), filepath.Join(t.TempDir(), "new.gguf")
			j.open = killedAfter(20)
			_, err := j.Run(context.Background(), path)
			require.ErrorIs(t, err, errDead)
			j.open = nil
			edit(j)
			resumed, err := j.Run(context.Background(), path)
			require.NoError(t, err)
			require.Zero(t, resumed)
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, plainly(t, j), got)
		})
	}
}

func TestErrors(t *testing.T) {
	nan := float32(math.NaN())
	tensors := []gguf.Tensor{{Name: "a", Type: quant.F32, Shape: []int{32, 4}}}
	as := func(typ quant.Type) []gguf.Tensor { return []gguf.Tensor{{Name: "a", Type: typ, Shape: []int{32, 4}}} }
	for _, c := range []struct {
		name string
		j    Job
		want string
	}{
		{"not finite", Job{Tensors: as(quant.Q8_0), Source: model(t, tensors, func(_ string, v []float32) { v[70] = nan })},
			`model.gguf: tensor "a": row 2: value 6 is NaN: Q8_0 holds numbers up to 8.32e+06: ` +
				`is the file damaged? Else choose a type such as BF16 for this tensor`},
		{"no tensors", Job{Source: model(t, nil, nil)}, `model.gguf: it has no tensors`},
		{"other name", Job{Tensors: []gguf.Tensor{{Name: "b", Shape: []int{1}}}, Source: model(t, tensors, nil)},
			`model.gguf: it has no tensor "b"`},
		{"other shape", Job{Tensors: []gguf.Tensor{{Name: "a", Shape: []int{4, 32}}}, Source: model(t, tensors, nil)},
			`model.gguf: tensor "a": shape [32 4], want [4 32]`},
		{"other importance", Job{Tensors: as(quant.Q4_0), Source: model(t, tensors, nil),
			Importance: map[string][]float32{"a": {1}}},
			`tensor "a": importance of 1 columns, want 32: it was made for another model`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			c.j.Meta = new(meta.Map)
			_, err := c.j.Run(context.Background(), "new.gguf")
			require.EqualError(t, err, c.want)
			require.NoFileExists(t, "new.gguf")
		})
	}
}

// A file of that name that is no earlier run's stays as it is.
func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.gguf")
	for _, text := range []string{"GGUF and so on", "S", "a download that is not complete yet"} {
		require.NoError(t, os.WriteFile(path+Suffix, []byte(text), 0o666))
		_, err := job(t).Run(context.Background(), path)
		if text == "S" { // the beginning of a journal
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "is not what an earlier run has left: move it away, or choose another name")
		left, err := os.ReadFile(path + Suffix)
		require.NoError(t, err)
		require.Equal(t, text, string(left))
	}
}

// full is a disk without room.
type full struct{ *os.File }

func (d full) WriteAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: d.Name(), Err: syscall.ENOSPC}
}

// A file that cannot be written is named once, and callers can tell what happened.
func TestDiskFull(t *testing.T) {
	j, path := job(t), filepath.Join(t.TempDir(), "new.gguf")
	j.open = func(path string) (disk, error) {
		f, err := os.Create(path)
		return full{f}, err
	}
	_, err := j.Run(context.Background(), path)
	require.EqualError(t, err, path+Suffix+": no space left on device")
	require.ErrorIs(t, err, syscall.ENOSPC)

	path = filepath.Join(t.TempDir(), "none", "new.gguf")
	_, err = job(t).Run(context.Background(), path)
	require.EqualError(t, err, path+Suffix+": no such file or directory")
}

func TestOneRunAtATime(t *testing.T) {
	j, path := job(t), filepath.Join(t.TempDir(), "new.gguf")
	j.Progress = func(int64, int64) {
		_, err := job(t).Run(context.Background(), path)
		require.ErrorContains(t, err, "is being written by another run")
	}
	_, err := j.Run(context.Background(), path)
	require.NoError(t, err)
}

// A source that is cut while it is read gives an error.
func TestSourceCut(t *testing.T) {
	j, dir := job(t), t.TempDir()
	from := filepath.Join(dir, "from.gguf")
	require.NoError(t, os.WriteFile(from, j.Source.Part(0).Data, 0o666))
	f, err := gguf.Open(from)
	require.NoError(t, err)
	defer f.Close()
	j.Source, j.Threads = f, 1
	j.Progress = func(int64, int64) { require.NoError(t, os.Truncate(from, 1000)) }
	_, err = j.Run(context.Background(), filepath.Join(dir, "new.gguf"))
	require.ErrorContains(t, err, from+": was cut to less than")
	require.NotContains(t, err.Error(), Suffix, "which is not to blame")
}

// The parts of a split model become one file.
func TestSplitSource(t *testing.T) {
	dir, names := t.TempDir(), []string{"a", "b", "c"}
	random := rand.New(rand.NewPCG(3, 4))
	for part := range names {
		m := new(meta.Map)
		m.Set("split.no", uint16(part))
		m.Set("split.count", uint16(len(names)))
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("m-%05d-of-%05d.gguf", part+1, len(names))))
		require.NoError(t, err)
		tensors := []gguf.Tensor{{Name: names[part], Type: quant.F32, Shape: []int{32, 5 + part}}}
		require.NoError(t, gguf.Write(f, m, tensors, func(x *gguf.Tensor, w io.Writer) error {
			values := make([]float32, x.Size/4)
			for i := range values {
				values[i] = random.Float32()
			}
			return binary.Write(w, binary.LittleEndian, values)
		}))
		require.NoError(t, f.Close())
	}
	f, err := gguf.Open(filepath.Join(dir, "m-00001-of-00003.gguf"))
	require.NoError(t, err)
	defer f.Close()
	j := &Job{Source: f, Meta: new(meta.Map), Threads: 2, pieceValues: 64}
	for i, name := range []string{"c", "a", "b"} {
		j.Tensors = append(j.Tensors, gguf.Tensor{Name: name, Type: quant.Q8_0, Shape: []int{32, 5 + (i+2)%3}})
	}
	path := filepath.Join(dir, "new.gguf")
	_, err = j.Run(context.Background(), path)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, plainly(t, j), got)
}

// Each row is rounded by the importance of its own matrix's columns.
func TestImportanceOfExperts(t *testing.T) {
	f := model(t, []gguf.Tensor{{Name: "experts", Type: quant.F32, Shape: []int{32, 3, 2}}}, nil)
	weights := make([]float32, 64)
	for i := range weights {
		weights[i] = float32(1 + i*i%13)
	}
	j := &Job{Source: f, Meta: new(meta.Map), Threads: 1, pieceValues: 64,
		Tensors:    []gguf.Tensor{{Name: "experts", Type: quant.Q4_0, Shape: []int{32, 3, 2}}},
		Importance: map[string][]float32{"experts": weights}}
	path := filepath.Join(t.TempDir(), "new.gguf")
	_, err := j.Run(context.Background(), path)
	require.NoError(t, err)

	var values [6 * 32]float32
	require.NoError(t, f.View(&f.Tensors[0], func(b []byte) error { return quant.Dequantize(quant.F32, values[:], b) }))
	var want []byte
	for row := range 6 {
		b := make([]byte, quant.Q4_0.Bytes())
		require.NoError(t, quant.QuantizeRow(quant.Q4_0, b, values[row*32:][:32], weights[row/3*32:][:32]))
		want = append(want, b...)
	}
	got, err := gguf.Open(path)
	require.NoError(t, err)
	defer got.Close()
	require.NoError(t, got.View(&got.Tensors[0], func(data []byte) error {
		require.Equal(t, want, data)
		return nil
	}))
}
