package sessionfiles

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/sealed"
	"github.com/sluice-ai/sluice/storage/sealed/sealedtest"
)

// readBy reads a file by a key, and all of its blocks.
func readBy(b []byte, k *sealed.Key) (*File, error) {
	f, err := Read(bytes.NewReader(b), int64(len(b)), k)
	if err != nil {
		return nil, err
	}
	for class, c := range f.Classes {
		for i := range c.Blocks {
			into := make([]byte, c.Bytes)
			if err := f.Block(class, i, into); err != nil {
				return f, err
			}
			if h := header(); !bytes.Equal(into, block(&h, class, i)) {
				return f, nil
			}
		}
	}
	return f, nil
}

// An encrypted session comes back by its key alone; no byte of it can be changed, and no block put in another's place.
func TestEncrypted(t *testing.T) {
	h := header()
	h.Key = sealedtest.Key(t, "a")
	b := encoded(t, h, tokens(), []byte("a secret note"))
	require.NotContains(t, string(b), "secret")
	require.NotContains(t, string(b), "salt")
	f, err := readBy(b, sealedtest.Key(t, "a"))
	require.NoError(t, err)
	require.Equal(t, h.Classes, f.Classes)
	require.Equal(t, tokens(), f.Tokens)
	require.Equal(t, "a secret note", string(f.Note))
	for k, says := range map[*sealed.Key]string{sealedtest.Key(t, "b"): "not encrypted by this key", nil: "encrypted, and there is no key"} {
		_, err = readBy(b, k)
		require.ErrorIs(t, err, ErrBroken)
		require.ErrorContains(t, err, says)
	}
	_, err = readBy(encoded(t, header(), tokens(), nil), sealedtest.Key(t, "a"))
	require.ErrorContains(t, err, "not encrypted, but there is a key")
	for at := 0; at < len(b); at += 7 {
		bad := bytes.Clone(b)
		bad[at] ^= 1
		_, err := readBy(bad, sealedtest.Key(t, "a"))
		require.ErrorIs(t, err, ErrBroken, "byte %d", at)
	}
	other := encoded(t, h, tokens(), []byte("a secret note"))
	at, each := len(b)-int(f.bytes()), int(f.room(f.Classes[0]))
	for name, with := range map[string][]byte{"of another file": other[at:][:each], "the next one": b[at+each:][:each]} {
		bad := bytes.Clone(b)
		copy(bad[at:], with)
		_, err = readBy(bad, sealedtest.Key(t, "a"))
		require.ErrorContains(t, err, "block 0", name)
	}
}

func FuzzReadEncrypted(f *testing.F) {
	h := header()
	h.Key = sealedtest.Key(f, "a")
	f.Add(encoded(f, h, tokens(), []byte("note")))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := readBy(b, h.Key); err != nil {
			require.ErrorIs(t, err, ErrBroken)
		}
	})
}
