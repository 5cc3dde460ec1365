package incidents

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/safefile"
	"github.com/sluice-ai/sluice/internal/tokentrace"
	"github.com/sluice-ai/sluice/storage/sealed"
	"github.com/sluice-ai/sluice/storage/sealed/sealedtest"
)

var began = time.Date(2026, 11, 27, 8, 0, 0, 123456000, time.UTC)

// model is what the traces are of.
var model = tokentrace.Model{Name: "m", Vocab: 9, Number: 3}

func head() []byte {
	var b bytes.Buffer
	_, _ = tokentrace.NewWriter(&b, &model)
	return b.Bytes()
}

// batch is records of so many tokens.
func batch(first, n int) []byte {
	var b bytes.Buffer
	w, _ := tokentrace.NewWriter(&b, &model)
	b.Reset()
	w.Part()
	w.Of(model.Number)
	for i := range n {
		_ = w.Write(&tokentrace.Drawn{Sequence: 1, Token: int32(first + i)})
	}
	return b.Bytes()
}

// tokens reads all tokens of a run.
func tokens(t *testing.T, files []string, keys ...*sealed.Key) (all []int32) {
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		in, err := Reader(bytes.NewReader(data), keys...)
		require.NoError(t, err)
		r, err := tokentrace.NewReader(in)
		require.NoError(t, err)
		for {
			e, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			require.Equal(t, "m", r.Model.Name)
			all = append(all, e.(*tokentrace.Drawn).Token)
		}
	}
	return all
}

func open(t *testing.T, path string, most int64) *Folder {
	f, err := OpenFolder(path, most)
	require.NoError(t, err)
	return f
}

func size(t *testing.T, path string) (sum int64) {
	require.NoError(t, filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		info, _ := d.Info()
		if d.Type().IsRegular() {
			sum += info.Size()
			require.EqualValues(t, 0o600, info.Mode().Perm())
		}
		return err
	}))
	return sum
}

// What was written last is there, in order, across files; what is older goes, a file at a time; the folder is never
// larger than it may be, also after it was made smaller.
func TestRing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "incidents")
	f := open(t, path, Least)
	_, err := OpenFolder(path, Least)
	require.ErrorIs(t, err, safefile.ErrHeld)
	const each = 500
	for i := range 1000 {
		require.NoError(t, f.Append(batch(i*each, each), head, began.Add(time.Duration(i)*time.Second)))
		if i%100 == 0 {
			require.LessOrEqual(t, size(t, path), int64(Least))
		}
	}
	f.Close()
	require.Greater(t, size(t, path), int64(Least-Least/parts-8*each))
	runs, err := Runs(filepath.Dir(path))
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.GreaterOrEqual(t, len(runs[0]), parts)
	all := tokens(t, runs[0])
	for i, id := range all {
		require.EqualValues(t, 1000*each-len(all)+i, id)
	}

	f = open(t, path, 2*Least) // a later process
	require.NoError(t, f.Append(batch(7, 1), head, began.Add(time.Hour)))
	f.Part()
	require.NoError(t, f.Append(batch(8, 1), head, began.Add(2*time.Hour)))
	f.Close()
	require.NoError(t, os.Remove(runs[0][5]))
	after, err := Runs(path)
	require.NoError(t, err)
	require.Len(t, after, 4, "and the first one has a gap")
	require.Equal(t, []int32{7}, tokens(t, after[2]))
	require.Equal(t, []int32{8}, tokens(t, after[3]))
	require.NoError(t, os.WriteFile(filepath.Join(path, "notes.trace"), nil, 0o600))
	open(t, path, Least).Close()
	require.FileExists(t, filepath.Join(path, "notes.trace"), "it is not ours")
	_, err = OpenFolder(path, Least-1)
	require.ErrorContains(t, err, "want at least 1048576")
}

// A disk that fails costs what was to be written. What comes after it is a run of its own.
func TestFailingDisk(t *testing.T) {
	path := t.TempDir()
	f := open(t, path, Least)
	defer f.Close()
	require.NoError(t, f.Append(batch(1, 1), head, began))
	require.NoError(t, f.out.Close()) // writes fail
	require.Error(t, f.Append(batch(2, 1), head, began))
	require.NoError(t, f.Append(batch(3, 1), head, began.Add(time.Second)))
	require.ErrorContains(t, f.Append(make([]byte, Least+1), head, began.Add(2*time.Second)), "are recorded at once")
	runs, err := Runs(path)
	require.NoError(t, err)
	last := runs[len(runs)-1]
	require.NotContains(t, tokens(t, last), int32(1))
	_, err = Runs(t.TempDir())
	require.ErrorContains(t, err, "there are no traces")
}

// With a key nobody reads ids without it, and parts of one file are not taken for those of another.
func TestEncrypted(t *testing.T) {
	path := t.TempDir()
	a, b := sealedtest.Key(t, "a"), sealedtest.Key(t, "b")
	f := open(t, path, Least)
	f.Encrypt(a)
	require.NoError(t, f.Append(batch(10, 3), head, began))
	require.NoError(t, f.Append(batch(13, 2), head, began))
	f.Part()
	require.NoError(t, f.Append(batch(20, 2), head, began.Add(time.Second)))
	f.Close()
	runs, err := Runs(path)
	require.NoError(t, err)
	require.Len(t, runs, 2)
	require.Equal(t, []int32{10, 11, 12, 13, 14}, tokens(t, runs[0], b, nil, a))
	require.Equal(t, []int32{20, 21}, tokens(t, runs[1], a))

	data, err := os.ReadFile(runs[0][0])
	require.NoError(t, err)
	require.NotContains(t, string(data), "sluice token trace")
	_, err = Reader(bytes.NewReader(data))
	require.ErrorContains(t, err, "set SLUICE_STATE_KEY")
	read := func(data []byte, keys ...*sealed.Key) error {
		r, err := Reader(bytes.NewReader(data), keys...)
		if err == nil {
			_, err = io.ReadAll(r)
		}
		return err
	}
	require.ErrorIs(t, read(data, b), sealed.ErrOpen)
	other, err := os.ReadFile(runs[1][0])
	require.NoError(t, err)
	begin := len(sealedHead(filepath.Base(runs[0][0])))
	require.ErrorIs(t, read(append(bytes.Clone(data[:begin]), other[begin:]...), a), sealed.ErrOpen)
	require.ErrorIs(t, read(data[:len(data)-1], a), io.ErrUnexpectedEOF)
	require.ErrorContains(t, read(append([]byte(sealedMagic), 2, 0), a), "version 2")
	huge := append(sealedHead("x"), 0xff, 0xff, 0xff, 0xff)
	require.ErrorContains(t, read(huge, a), "want at most 134217728")
	require.NoError(t, read([]byte(strings.Repeat("x", 9))), "what is not encrypted is as it is")
}

// FuzzReader: whatever the bytes, reading ends, and what comes was encrypted by the key.
func FuzzReader(f *testing.F) {
	k := sealedtest.Key(f, "a")
	good := sealedHead("n")
	good = appendSealed(good, []byte("records"), k, "n", int64(len(good)))
	f.Add(good)
	f.Add([]byte(sealedMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Reader(bytes.NewReader(data), k)
		if err != nil || !bytes.HasPrefix(data, []byte(sealedMagic)) {
			return
		}
		all, err := io.ReadAll(r)
		if len(all) > 0 {
			require.Equal(t, "records", string(all), err)
		}
	})
}
