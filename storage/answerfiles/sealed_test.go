package answerfiles

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/sealed"
	"github.com/sluice-ai/sluice/storage/sealed/sealedtest"
)

// Encrypted answers come back by their key alone, as far as they were written, and go on.
func TestEncrypted(t *testing.T) {
	path, now := t.TempDir(), time.Now()
	open := func(k *sealed.Key) *Folder {
		f, err := OpenFolder(path, 1<<20, now)
		require.NoError(t, err)
		f.Encrypt(k)
		return f
	}
	f := open(sealedtest.Key(t, "a"))
	asked := request("owner", "1")
	asked.Body = "a secret body"
	x, err := f.Create(asked, now)
	require.NoError(t, err)
	for i := range int32(3) {
		var log Log
		log.Token(&Token{ID: 1000 + i})
		require.NoError(t, x.Append(log.Take(), now))
	}
	used := f.Used()
	f.Close()
	files, err := filepath.Glob(filepath.Join(path, "*", "*.open"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	data, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Len(t, data, int(used))
	require.NotContains(t, string(data), "secret")

	for k, says := range map[*sealed.Key]string{sealedtest.Key(t, "b"): "not encrypted by this key", nil: "encrypted, and there is no key"} {
		f = open(k)
		all, odd := f.Unfinished()
		require.Empty(t, all)
		require.ErrorContains(t, odd[0], says)
		_, err = f.Find("owner", "1")
		require.ErrorContains(t, err, says)
		f.Close()
	}

	require.NoError(t, os.WriteFile(files[0], append(bytes.Clone(data), "torn"...), privateFile))
	f = open(sealedtest.Key(t, "a"))
	defer f.Close()
	all, odd := f.Unfinished()
	require.Empty(t, odd)
	require.Len(t, all, 1)
	require.Equal(t, "a secret body", all[0].Body)
	require.Len(t, all[0].Tokens, 3)
	x, err = f.Resume(all[0])
	require.NoError(t, err)
	var log Log
	log.Token(&Token{ID: 7})
	require.NoError(t, x.Append(log.Take(), now))
	p, err := f.Find("owner", "1")
	require.NoError(t, err)
	require.Len(t, p.Tokens, 4)
}

// Records of an encrypted file that are dropped, doubled, exchanged, or of another file, end it there.
func TestEncryptedRecordsChangePlaces(t *testing.T) {
	k := sealedtest.Key(t, "a")
	file := func(name string, tokens ...int32) (parts [][]byte) {
		parts = append(parts, appendHead(nil, k))
		at := len(parts[0])
		add := func(records []byte) {
			parts = append(parts, appendSealed(nil, records, k, name, at))
			at += len(parts[len(parts)-1])
		}
		add(appendRecord(nil, asked, appendAsked(nil, request("a", "1"))))
		for _, id := range tokens {
			var log Log
			log.Token(&Token{ID: id})
			add(log.Take())
		}
		return parts
	}
	read := func(parts ...[]byte) int {
		p, err := parse(bytes.Clone(bytes.Join(parts, nil)), k, "x")
		if err != nil {
			return -1
		}
		return len(p.Tokens)
	}
	p, o := file("x", 1, 2, 3), file("y", 1, 2, 3)
	require.Equal(t, 3, read(p...))
	require.Equal(t, 0, read(p[0], p[1], p[3], p[4]), "dropped")
	require.Equal(t, 1, read(p[0], p[1], p[2], p[2], p[3]), "doubled")
	require.Equal(t, 1, read(p[0], p[1], p[2], p[4], p[3]), "exchanged")
	require.Equal(t, 1, read(p[0], p[1], p[2], o[3], p[4]), "of another file")
	require.Equal(t, 1, read(p[0], p[1], p[2], appendRecord(nil, drawn, appendToken(nil, &Token{ID: 9}))), "in the clear")
	require.Equal(t, 1, read(p[0], p[1], p[2], appendRecord(nil, drawn, p[3][recordHead:])), "of another kind")
	require.Equal(t, -1, read(o...), "another file whole")
	require.Equal(t, -1, read(p[0], p[2]), "no request")
	require.Equal(t, -1, read(appendHead(nil, nil), appendRecord(nil, asked, appendAsked(nil, request("a", "1")))))
}

func FuzzReadEncrypted(f *testing.F) {
	k := sealedtest.Key(f, "a")
	head := appendHead(nil, k)
	f.Add(appendSealed(head, appendRecord(nil, asked, appendAsked(nil, request("a", "1"))), k, "x", len(head)), true)
	f.Add(appendRecord(nil, asked, appendAsked(nil, request("a", "1"))), false)
	f.Fuzz(func(t *testing.T, data []byte, whole bool) {
		if !whole { // what stands in an encrypted part is reached as well
			data = appendSealed(appendHead(nil, k), data, k, "x", headSize)
		}
		p, err := parse(data, k, "x")
		if err == nil {
			require.LessOrEqual(t, p.bytes, int64(len(data)))
			require.LessOrEqual(t, len(p.Tokens), len(data))
		}
	})
}
