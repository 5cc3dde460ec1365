package sessionfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var today = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// header is that of a text of four blocks, one class of which keeps all.
func header() Header {
	return Header{Kind: []Trait{{"model", "m"}, {"type of KV cache", "f16"}}, Owner: "o", Name: "n", Salt: 1<<63 + 5,
		Classes: []Class{{Bytes: 10, First: 0, Blocks: 4}, {Bytes: 3, First: 3, Blocks: 1}}}
}

func tokens() (all []int32) {
	for i := range int32(256) {
		all = append(all, i-100)
	}
	return all
}

// block is the content of a class's block.
func block(h *Header, class, i int) []byte {
	return bytes.Repeat([]byte{byte(16*class + i + 1)}, h.Classes[class].Bytes)
}

func writeAll(t require.TestingT, w *Writer, h *Header) int64 {
	for class, c := range h.Classes {
		for i := range c.Blocks {
			require.NoError(t, w.Block(block(h, class, i)))
		}
	}
	n, err := w.Close()
	require.NoError(t, err)
	return n
}

// encoded is a whole file.
func encoded(t require.TestingT, h Header, ids []int32, note []byte) []byte {
	var b bytes.Buffer
	w, err := NewWriter(&b, h, ids, note)
	require.NoError(t, err)
	size, err := Size(h, len(ids), len(note))
	require.NoError(t, err)
	require.Equal(t, size, writeAll(t, w, &h))
	require.EqualValues(t, size, b.Len())
	return b.Bytes()
}

// readAll reads a file and all of its blocks.
func readAll(b []byte) (*File, error) {
	f, err := Read(bytes.NewReader(b), int64(len(b)), nil)
	if err != nil {
		return nil, err
	}
	for class, c := range f.Classes {
		for i := range c.Blocks {
			if err := f.Block(class, i, make([]byte, c.Bytes)); err != nil {
				return nil, err
			}
		}
	}
	return f, nil
}

func TestRoundTrip(t *testing.T) {
	h := header()
	b := encoded(t, h, tokens(), []byte("a note"))
	f, err := readAll(b)
	require.NoError(t, err)
	require.Equal(t, h, f.Header)
	require.Equal(t, tokens(), f.Tokens)
	require.Equal(t, "a note", string(f.Note))
	for class, c := range h.Classes {
		for i := range c.Blocks {
			got := make([]byte, c.Bytes)
			require.NoError(t, f.Block(class, i, got))
			require.Equal(t, block(&h, class, i), got)
		}
	}
	require.Error(t, f.Block(0, 4, make([]byte, 10)))
	require.Error(t, f.Block(0, 0, make([]byte, 9)))
	empty, err := readAll(encoded(t, Header{}, nil, []byte("words alone")))
	require.NoError(t, err)
	require.Equal(t, "words alone", string(empty.Note))
	w, err := NewWriter(&bytes.Buffer{}, h, tokens(), nil)
	require.NoError(t, err)
	require.NoError(t, w.Block(block(&h, 0, 0)))
	_, err = w.Close()
	require.EqualError(t, err, "1 blocks of 5 were written")
}

func TestDiffers(t *testing.T) {
	h := header()
	require.Empty(t, h.Differs(header().Kind))
	require.Equal(t, "type of KV cache", h.Differs([]Trait{{"model", "m"}, {"type of KV cache", "q8"}}))
	require.Equal(t, "device", h.Differs(append(header().Kind, Trait{"device", "cpu"})))
	require.Equal(t, "type of KV cache", h.Differs(h.Kind[:1]))
}

// Any bit that changes, and any byte that is missing or too much, is found, wherever it is.
func TestBroken(t *testing.T) {
	b := encoded(t, header(), tokens(), []byte("note"))
	for at := range b {
		b[at] ^= 0x10
		_, err := readAll(b)
		require.ErrorIs(t, err, ErrBroken, "byte %d", at)
		b[at] ^= 0x10
		_, err = readAll(b[:at])
		require.ErrorIs(t, err, ErrBroken, "%d bytes", at)
	}
	_, err := readAll(append(b, 0))
	require.ErrorIs(t, err, ErrBroken)
	h := header()
	one := int(10 + sumSize)
	at := len(b) - int(h.bytes())
	swapped := bytes.Clone(b)
	copy(swapped[at:], b[at+one:][:one])
	copy(swapped[at+one:], b[at:][:one])
	_, err = readAll(swapped)
	require.ErrorIs(t, err, ErrBroken, "two blocks in each other's place")
}

// What a header with the right checksum claims is checked, before anything is allocated for it.
func TestClaims(t *testing.T) {
	for _, edit := range []func(h *Header){
		func(h *Header) { h.Classes[0].Bytes = 0 },
		func(h *Header) { h.Classes[0].Bytes = -1 },
		func(h *Header) { h.Classes[0].Bytes = 1 << 40 },
		func(h *Header) { h.Classes[0].Blocks = 5 },
		func(h *Header) { h.Classes[0].First = 1 },
		func(h *Header) { h.Classes[1].First, h.Classes[1].Blocks = 5, -1 },
		func(h *Header) { h.Classes = make([]Class, mostClasses+1) },
		func(h *Header) { h.Classes = append(h.Classes, Class{Bytes: 1, First: 3, Blocks: 1}) },
	} {
		h := header()
		edit(&h)
		b, err := appendHead(nil, &h, tokens(), nil)
		require.NoError(t, err)
		good := header()
		b = append(b, make([]byte, good.bytes())...)
		_, err = Read(bytes.NewReader(b), int64(len(b)), nil)
		require.ErrorIs(t, err, ErrBroken)
	}
	for i, n := range map[int]uint32{0: 2, 1: mostHeader + 1, 2: mostNote + 1, 3: mostTokens + 64} {
		b := encoded(t, header(), tokens(), nil)
		binary.LittleEndian.PutUint32(b[len(magic)+4*i:], n)
		_, err := readAll(b)
		require.ErrorIs(t, err, ErrBroken)
	}
	_, err := NewWriter(&bytes.Buffer{}, Header{Name: strings.Repeat("x", mostHeader)}, nil, nil)
	require.Error(t, err)
	b := encoded(t, Header{Classes: nil}, tokens()[:64], nil)
	binary.LittleEndian.PutUint32(b[len(magic)+12:], 63) // no whole block
	b = b[:len(b)-4-sumSize]
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	_, err = readAll(b)
	require.ErrorIs(t, err, ErrBroken)
}

// save writes a session of so many bytes.
func save(t *testing.T, f *Folder, owner, name string, blocks int, at time.Time) error {
	h := Header{Owner: owner, Name: name, Classes: []Class{{Bytes: 1000 - sumSize, Blocks: blocks}}}
	ids := make([]int32, 64*blocks)
	size, err := Size(h, len(ids), 0)
	require.NoError(t, err)
	d, err := f.Create(owner, name, size)
	if err != nil {
		return err
	}
	w, err := NewWriter(d, h, ids, nil)
	require.NoError(t, err)
	writeAll(t, w, &h)
	require.NoError(t, d.Commit(at))
	require.NoError(t, d.Close())
	return nil
}

func has(t *testing.T, f *Folder, owner, name string) bool {
	x, c, err := f.Open(owner, name)
	if errors.Is(err, ErrMissing) {
		return false
	}
	require.NoError(t, err)
	require.Equal(t, name, x.Name)
	require.NoError(t, c.Close())
	return true
}

// Sessions are their owner's, private, and found by the next process. A draft that is given up leaves what was there.
func TestFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sessions")
	f, err := OpenFolder(path, 1<<20)
	require.NoError(t, err)
	require.NoError(t, save(t, f, "a", "x", 2, today))
	require.NoError(t, save(t, f, "a", "../../x", 2, today))
	require.NoError(t, save(t, f, "b", "x", 1, today))
	used := f.Used()
	d, err := f.Create("a", "x", 5000)
	require.NoError(t, err)
	require.Equal(t, used+5000, f.Used())
	_, err = d.Write([]byte("half"))
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Equal(t, used, f.Used())
	require.NoError(t, save(t, f, "a", "x", 2, today), "it is replaced")
	require.Equal(t, used, f.Used())
	again, err := OpenFolder(path, 1<<20)
	require.NoError(t, err)
	require.Equal(t, used, again.Used())
	for owner, names := range map[string][2]bool{"a": {true, true}, "b": {true, false}, "": {false, false}} {
		require.Equal(t, names, [2]bool{has(t, again, owner, "x"), has(t, again, owner, "../../x")})
	}
	require.NoError(t, os.Rename(again.at(keyOf("a", "x")), again.at(keyOf("b", "x"))))
	_, _, err = again.Open("b", "x")
	require.ErrorIs(t, err, ErrBroken, "another client's file in its place")
	require.True(t, again.Remove("b", "x"))
	require.False(t, again.Remove("b", "x"))
	require.False(t, has(t, again, "b", "x"))
	if runtime.GOOS == "windows" {
		return
	}
	require.NoError(t, filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := d.Info()
		require.NoError(t, err)
		want := fs.FileMode(privateFile)
		if d.IsDir() {
			want = private
		}
		require.Equal(t, want, info.Mode().Perm(), d.Name())
		return nil
	}))
}

// Who has most loses its oldest sessions to another client, and none to its own: then saving is refused.
func TestBounded(t *testing.T) {
	f, err := OpenFolder(t.TempDir(), 8000)
	require.NoError(t, err)
	require.NoError(t, save(t, f, "a", "2", 1, today.Add(time.Hour)))
	require.NoError(t, save(t, f, "a", "1", 1, today))
	require.NoError(t, save(t, f, "a", "3", 1, today.Add(2*time.Hour)))
	require.NoError(t, save(t, f, "b", "1", 1, today))
	require.NoError(t, save(t, f, "a", "4", 1, today.Add(3*time.Hour)))
	require.ErrorIs(t, save(t, f, "a", "5", 2, today), ErrFull)
	require.True(t, has(t, f, "a", "1"), "nothing was lost for it")
	require.NoError(t, save(t, f, "b", "2", 1, today))
	require.ErrorIs(t, save(t, f, "b", "3", 1, today), ErrFull, "it would have as much as who has most")
	require.Equal(t, []bool{false, true, true, true}, []bool{has(t, f, "a", "1"), has(t, f, "a", "2"), has(t, f, "a", "3"),
		has(t, f, "b", "1")})
	require.ErrorIs(t, save(t, f, "c", "1", 9, today), ErrFull, "more than all")
	require.LessOrEqual(t, f.Used(), int64(8000))
}

func TestHeadRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := rapid.IntRange(0, 3).Draw(t, "blocks")
		h := Header{Owner: rapid.String().Draw(t, "owner"), Salt: rapid.Uint64().Draw(t, "salt")}
		for range rapid.IntRange(0, 3).Draw(t, "classes") {
			n := rapid.IntRange(0, whole).Draw(t, "held")
			h.Classes = append(h.Classes, Class{Bytes: rapid.IntRange(1, 20).Draw(t, "bytes"), First: whole - n, Blocks: n})
		}
		ids := rapid.SliceOfN(rapid.Int32(), 64*whole, 64*whole).Draw(t, "tokens")
		note := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "note")
		f, err := readAll(encoded(t, h, ids, note))
		require.NoError(t, err)
		require.Equal(t, h, f.Header)
		require.Equal(t, ids, f.Tokens)
		require.True(t, bytes.Equal(note, f.Note))
	})
}

// Whatever stands in a file: it is a session whose blocks can be read, or ErrBroken, and never allocates more than a
// few times the file's size.
func FuzzRead(f *testing.F) {
	f.Add(encoded(f, header(), tokens(), []byte("note")))
	f.Add(encoded(f, Header{}, nil, nil))
	f.Add([]byte(magic))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		// The checksum is made right, so that what stands behind it is reached.
		if len(b) > headSize {
			n := int64(headSize)
			for i, each := range []int64{1, 1, 4} {
				n += each * int64(binary.LittleEndian.Uint32(b[len(magic)+4+4*i:]))
			}
			if n+sumSize <= int64(len(b)) {
				binary.LittleEndian.PutUint32(b[n:], crc32.Checksum(b[:n], castagnoli))
			}
		}
		x, err := Read(bytes.NewReader(b), int64(len(b)), nil)
		if err != nil {
			require.ErrorIs(t, err, ErrBroken)
			return
		}
		for class, c := range x.Classes {
			for i := range c.Blocks {
				require.LessOrEqual(t, c.Bytes, len(b))
				if err := x.Block(class, i, make([]byte, c.Bytes)); err != nil {
					require.ErrorIs(t, err, ErrBroken)
				}
			}
		}
	})
}
