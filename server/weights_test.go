package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/server/cluster"
)

// TestLends: a member reads another one's files, to the bit; what changes is refused, and so is who is no member.
func TestLends(t *testing.T) {
	w := newTown(t)
	a, b := w.join(t, "a", Options{}), w.join(t, "b", Options{})
	b.sees(t, "a")
	l, err := b.cluster.Lender(t.Context(), "a", "m")
	require.NoError(t, err)
	require.Equal(t, "the toy's", l.Content)
	require.Len(t, l.Parts, 1)
	require.EqualValues(t, len(mini.GGUF), l.Parts[0].Bytes)
	require.Less(t, l.Parts[0].Head, l.Parts[0].Bytes/2)
	got := make([]byte, len(mini.GGUF))
	require.NoError(t, l.Read(t.Context(), 0, got, 0))
	require.True(t, bytes.Equal(mini.GGUF, got))
	require.NoError(t, l.Read(t.Context(), 0, got[:5], int64(len(got)-5)))
	require.True(t, bytes.Equal(mini.GGUF[len(got)-5:], got[:5]))

	require.ErrorContains(t, l.Read(t.Context(), 1, got[:5], 0), `part is "1": want 0 to 0`)
	require.ErrorContains(t, l.Read(t.Context(), 0, got[:5], int64(len(got))), "the range is")
	other := *l
	other.Content = "another's"
	require.ErrorContains(t, other.Read(t.Context(), 0, got[:5], 0), "is another one by now")
	_, err = b.cluster.Lender(t.Context(), "a", "n")
	require.ErrorContains(t, err, `model "n" does not run here`)

	for _, path := range []string{"?model=m", "?model=m&content=the+toy's&part=0"} { // a client, with all rights of clients
		q, err := http.NewRequest(http.MethodGet, a.url+cluster.WeightsPath+path, nil)
		require.NoError(t, err)
		q.Header.Set("Range", "bytes=0-9")
		got, err := a.http.Do(q)
		require.NoError(t, err)
		status, _ := read(t, got)
		require.Equal(t, http.StatusNotFound, status)
	}
	foreign := newTown(t)
	foreign.first = a.at
	f, err := cluster.New(cluster.Options{Pass: foreign.pass(t, "b"), Addr: "127.0.0.1:9", Join: []string{a.at}})
	require.NoError(t, err)
	f.Offers = nil
	q, err := http.NewRequest(http.MethodGet, "https://"+a.at+cluster.WeightsPath+"?model=m", nil)
	require.NoError(t, err)
	_, err = f.Do(q)
	require.Error(t, err)

	a.loans.Store(mostLent)
	began := time.AfterFunc(300*time.Millisecond, func() { a.loans.Store(0) })
	defer began.Stop()
	require.NoError(t, l.Read(t.Context(), 0, got[:5], 0), "it waits for its turn")
}

// TestLentFile: a file that changed since the model was opened is not lent, also if it changes while it is read.
func TestLentFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(path, []byte("0123456789"), 0o600))
	info, err := os.Stat(path)
	require.NoError(t, err)
	from := &source.Source{Name: "f", Path: path, Size: 10, Info: info}
	file, err := openLent(from)
	require.NoError(t, err)
	require.NoError(t, file.check(from))
	later := info.ModTime().Add(time.Hour)
	require.NoError(t, os.Chtimes(path, later, later))
	require.ErrorIs(t, file.check(from), source.ErrChanged)
	file.Close()
	_, err = openLent(from)
	require.ErrorIs(t, err, source.ErrChanged)

	file, err = openLent(&source.Source{Data: []byte("0123456789"), Size: 10})
	require.NoError(t, err)
	two := make([]byte, 2)
	for at, want := range map[int64]error{0: nil, 8: nil, 9: io.EOF, 11: io.EOF} {
		_, err := file.ReadAt(two, at)
		require.ErrorIs(t, err, want, fmt.Sprint(at))
	}
	_, err = file.ReadAt(two, -1)
	require.Error(t, err)
	file.Close()
}

// TestLentNothing: a model that is not known by its content is not lent.
func TestLentNothing(t *testing.T) {
	e := startEngine(t, func(c *actors.Config) { c.Name = "m" })
	_, content := e.Lent()
	require.Empty(t, content)
}
