package store

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestUpload: what is uploaded waits for its model, for a day; what is not what it should be, or breaks off, leaves
// nothing.
func TestUpload(t *testing.T) {
	s, ctx := open(t), context.Background()
	data := content("x", 100_000)
	d := DigestOf(data)
	_, err := s.Upload(ctx, DigestOf(nil), -1, bytes.NewReader(data))
	require.ErrorAs(t, err, new(*WrongContent))
	broken := errors.New("the connection broke")
	_, err = s.Upload(ctx, d, int64(len(data)), io.MultiReader(bytes.NewReader(data[:5000]), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	_, here := s.Size(d)
	require.False(t, here)
	require.Empty(t, tree(t, s))
	_, err = s.Upload(ctx, d, 1<<60, bytes.NewReader(data))
	require.ErrorAs(t, err, new(*NoRoom))

	for range 2 {
		found, err := s.Upload(ctx, "", -1, bytes.NewReader(data))
		require.NoError(t, err)
		require.Equal(t, d, found)
	}
	size, here := s.Size(d)
	require.True(t, here)
	require.EqualValues(t, len(data), size)
	require.Equal(t, []string{"uploads/" + d.file()}, tree(t, s))
	old := time.Now().Add(-uploadsLast - time.Minute)
	require.NoError(t, os.Chtimes(s.path(uploadsFolder, d.file()), old, old))
	invent(t, "a/b:Q8_0", 1000, "x.gguf").pull(t, s)
	_, here = s.Size(d)
	require.False(t, here, "nobody came for it")
}

// TestMake: a model is made of files that were uploaded, of others' files and of new ones, which go with it.
func TestMake(t *testing.T) {
	s, ctx := open(t), context.Background()
	data, template := content("weights", 50_000), []byte("a template")
	weights := Layer{File: File{Role: Weights, Name: "w.gguf", Digest: DigestOf(data)}}
	_, err := s.Make(ctx, name(t, "mine"), "here", []Layer{weights})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = s.Upload(ctx, weights.Digest, -1, bytes.NewReader(data))
	require.NoError(t, err)
	m, err := s.Make(ctx, name(t, "mine"), "here",
		[]Layer{weights, {File: File{Role: Template, Name: "template"}, Data: template}})
	require.NoError(t, err)
	require.Equal(t, "ollama.com/library/mine:latest", m.Name)
	found, err := s.Find(name(t, "mine"))
	require.NoError(t, err)
	texts, err := s.Texts(&found.Manifest, Template)
	require.NoError(t, err)
	require.Equal(t, []string{"a template"}, texts)
	path, err := s.Path(found)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, data, got)
	left, err := os.ReadDir(s.path(uploadsFolder))
	require.NoError(t, err)
	require.Empty(t, left, "it is a model's now")

	_, err = s.Make(ctx, name(t, "other"), "here", []Layer{weights}) // of the first one's file
	require.NoError(t, err)
	_, err = s.Make(ctx, name(t, "mine"), "here", []Layer{weights, {File: File{Role: System, Name: "system"}, Data: template}})
	require.NoError(t, err)
	found, err = s.Find(name(t, "mine"))
	require.NoError(t, err)
	require.Len(t, found.Files, 2)
	require.Equal(t, System, found.Files[1].Role, "it took the place of the older one")
	for _, n := range []string{"mine", "other"} {
		_, err = s.Remove(ctx, name(t, n))
		require.NoError(t, err)
	}
	require.Empty(t, tree(t, s))
}

// TestNoRoomSays: how much is needed, how much there is and where, and what to do.
func TestNoRoomSays(t *testing.T) {
	require.EqualError(t, &NoRoom{Needed: 3 << 30, Free: 1 << 29, Store: "/s"},
		"it takes 3.0 GiB, and /s has room for 0.5: make room (sluice list, sluice rm), or name a folder on another disk by SLUICE_STORE")
}
