package kvfiles

import (
	"bytes"
	"encoding/hex"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/sealed"
	"github.com/sluice-ai/sluice/storage/sealed/sealedtest"
)

// again opens a folder with a key.
func again(t testing.TB, path string, k *sealed.Key) *Shelf {
	f, err := Open(path, 1<<20, today)
	require.NoError(t, err)
	f.Encrypt(k)
	return f.Shelf("a")
}

// Encrypted blocks come back by their key alone, are listed by it alone, and their files and names tell nothing.
func TestEncrypted(t *testing.T) {
	path := t.TempDir()
	s := again(t, path, sealedtest.Key(t, "a"))
	files := map[byte]string{}
	for n := byte(1); n <= 3; n++ {
		files[n] = put(t, s, n, today)
		data, err := os.ReadFile(files[n])
		require.NoError(t, err)
		require.False(t, bytes.Contains(data, content(n)[:12]))
		require.NotContains(t, string(data), magic)
		h := header(n)
		require.NotContains(t, files[n], hex.EncodeToString(h.Key[:16]))
	}
	used := s.of.Used()
	s = again(t, path, sealedtest.Key(t, "a"))
	require.Equal(t, used, s.of.Used())
	require.Len(t, scanned(s, latest), 3)
	for _, x := range scanned(s, latest) {
		want := header(x.Key[0])
		require.Equal(t, want.Tokens, x.Tokens)
		require.Equal(t, want.Before, x.Before)
	}
	for name, k := range map[string]*sealed.Key{"another": sealedtest.Key(t, "b"), "none": nil} {
		o := again(t, path, k)
		require.Empty(t, scanned(o, latest), name)
		require.False(t, has(t, o, 1), name)
		for n := range files { // put in place by hand
			h := header(n)
			require.NoError(t, os.MkdirAll(o.Path(), private))
			data, err := os.ReadFile(files[n])
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(o.path(&h.Key, h.Class), data, privateFile))
			require.False(t, has(t, o, n), name)
		}
	}
	require.True(t, has(t, s, 1) && has(t, s, 2) && has(t, s, 3))
}

// A part of another file, or of another model's, is not taken, though the key is the same.
func TestEncryptedPartsChangePlaces(t *testing.T) {
	path := t.TempDir()
	s, k := again(t, path, sealedtest.Key(t, "a")), sealedtest.Key(t, "a")
	one, four := put(t, s, 1, today), put(t, s, 4, today) // of the same class and size
	a, err := os.ReadFile(one)
	require.NoError(t, err)
	b, err := os.ReadFile(four)
	require.NoError(t, err)
	head := headerSize + k.Over()
	mixed := append(bytes.Clone(a[:head]), b[head:]...)
	h := header(1)
	for name, data := range map[string][]byte{"whole": b, "block": mixed} {
		err = s.readFrom(bytes.NewReader(data), h.Key, h.Class, [][]byte{make([]byte, 300)})
		require.ErrorIs(t, err, sealed.ErrOpen, name)
	}
	_, err = s.open(bytes.Clone(a[:head]), blockPart, one)
	require.ErrorIs(t, err, sealed.ErrOpen, "the header in the place of the block")
	for name, data := range map[string][]byte{"whole": b, "block": mixed, "cut": a[:len(a)-1], "longer": append(a, 0)} {
		require.NoError(t, os.WriteFile(one, data, privateFile))
		require.False(t, has(t, s, 1), name)
		require.NoFileExists(t, one)
	}
	other := s.of.Shelf("b")
	require.NoError(t, os.MkdirAll(other.Path(), private))
	require.NoError(t, os.WriteFile(other.path(&h.Key, h.Class), a, privateFile))
	require.False(t, has(t, other, 1))
	require.True(t, has(t, s, 4))
}

func FuzzReadEncrypted(f *testing.F) {
	s := again(f, f.TempDir(), sealedtest.Key(f, "a"))
	for n := byte(3); n <= 4; n++ {
		data, err := os.ReadFile(put(f, s, n, today))
		require.NoError(f, err)
		f.Add(data)
	}
	h := header(4)
	f.Fuzz(func(t *testing.T, data []byte) {
		block := make([]byte, 300)
		if err := s.readFrom(io.Reader(bytes.NewReader(data)), h.Key, h.Class, [][]byte{block[:7], block[7:]}); err != nil {
			require.ErrorIs(t, err, ErrBroken)
			return
		}
		require.Equal(t, content(4), block)
	})
}
