package kvfiles

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	today  = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	latest = today.Add(24 * time.Hour)
)

func folder(t testing.TB, most int64) *Folder {
	f, err := Open(filepath.Join(t.TempDir(), "kv"), most, today)
	require.NoError(t, err)
	return f
}

// header is that of block n.
func header(n byte) (h Header) {
	h.Key, h.Parent, h.Salt, h.Class = Key{n}, Key{n - 1}, uint64(n)<<40, int(n%3)
	for i := range h.Tokens {
		h.Tokens[i] = int32(n) - int32(i)
	}
	if n == 3 {
		h.Before = slices.Repeat(h.Tokens[:], 2)
	}
	return h
}

func content(n byte) []byte { return bytes.Repeat([]byte{n, n + 1, 0}, 100) }

// put writes block n, used at a time.
func put(t testing.TB, s *Shelf, n byte, used time.Time) string {
	h := header(n)
	require.NoError(t, s.Write(h, content(n)))
	path := s.path(&h.Key, h.Class)
	require.NoError(t, os.Chtimes(path, used, used))
	return path
}

// has says whether block n can be read, as it was written.
func has(t testing.TB, s *Shelf, n byte) bool {
	h, block := header(n), make([]byte, 300)
	if err := s.Read(h.Key, h.Class, [][]byte{block[:100], block[100:]}, latest); err != nil {
		return false
	}
	require.Equal(t, content(n), block)
	return true
}

// scanned is all that a shelf has.
func scanned(s *Shelf, now time.Time) []Found { return slices.Collect(s.Scan(now)) }

// A shelf of more blocks than are looked into together tells of each once, until nobody wants to hear of more.
func TestManyBlocksAreFound(t *testing.T) {
	const blocks = 2*scannedTogether + 3
	f := folder(t, 1<<20)
	s := f.Shelf("a")
	require.NoError(t, os.Mkdir(s.Path(), private))
	for n := range blocks {
		h := header(1)
		binary.LittleEndian.PutUint32(h.Key[:], uint32(n))
		h.Kind, h.Bytes = s.kind, 300
		file := append(h.encode(make([]byte, 0, headerSize), 0), make([]byte, h.whole(0)-headerSize)...)
		require.NoError(t, os.WriteFile(s.path(&h.Key, h.Class), file, privateFile))
	}
	broken := scanned(s, today)[7]
	require.NoError(t, os.WriteFile(s.path(&broken.Key, broken.Class), nil, privateFile))
	seen := map[Key]int{}
	for x := range s.Scan(today) {
		seen[x.Key]++
	}
	require.Len(t, seen, blocks-1)
	require.NotContains(t, seen, broken.Key)
	next, stop := iter.Pull(s.Scan(today))
	_, more := next()
	require.True(t, more)
	stop()
}

// What was written is found and read, also by the next process, and by no other kind. Only its owner may look.
func TestBlocksComeBack(t *testing.T) {
	f := folder(t, 1<<20)
	s := f.Shelf("a")
	for n := range byte(5) {
		put(t, s, n, today.Add(time.Duration(n)))
	}
	require.EqualValues(t, 5*(headerSize+300)+4*128, f.Used())
	again, err := Open(f.Path(), 1<<20, today)
	require.NoError(t, err)
	require.Equal(t, f.Used(), again.Used())
	s = again.Shelf("a")
	all := scanned(s, today)
	require.Len(t, all, 5)
	for _, x := range all {
		n := x.Key[0]
		want := header(n)
		want.Kind, want.Bytes = s.kind, 300
		require.Equal(t, Found{want, today.Add(time.Duration(n)).Local()}, x)
		require.True(t, has(t, s, n))
	}
	require.Equal(t, latest, scanned(s, today)[0].Used.UTC(), "it was read")
	require.Empty(t, scanned(again.Shelf("b"), today))
	require.False(t, has(t, again.Shelf("b"), 1))
	s.Remove(Key{1}, 1)
	s.Remove(Key{1}, 1)
	require.False(t, has(t, s, 1))
	require.EqualValues(t, 4*(headerSize+300)+4*128, again.Used())
	if runtime.GOOS == "windows" {
		return
	}
	require.NoError(t, filepath.WalkDir(f.Path(), func(_ string, d fs.DirEntry, err error) error {
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

// rehash makes the header's checksum right again.
func rehash(b []byte) {
	binary.LittleEndian.PutUint32(b[atHeader:], crc32.Checksum(b[:atHeader], castagnoli))
}

// A file that is torn, changed or foreign is never used, and vanishes; the others stay.
func TestBrokenFilesAreIgnored(t *testing.T) {
	for _, test := range []struct {
		name string
		edit func(b []byte) []byte
		seen bool // Scan, which reads headers alone, takes it for a block
	}{
		{"empty", func([]byte) []byte { return nil }, false},
		{"half a header", func(b []byte) []byte { return b[:headerSize/2] }, false},
		{"header alone", func(b []byte) []byte { return b[:headerSize] }, false},
		{"last byte is missing", func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"one byte more", func(b []byte) []byte { return append(b, 0) }, false},
		{"another magic", func(b []byte) []byte { b[0]++; rehash(b); return b }, false},
		{"another version", func(b []byte) []byte { b[atVersion]++; rehash(b); return b }, false},
		{"another kind", func(b []byte) []byte { b[atKind]++; rehash(b); return b }, false},
		{"another key", func(b []byte) []byte { b[atKey]++; rehash(b); return b }, false},
		{"end of the key", func(b []byte) []byte { b[atKey+31]++; rehash(b); return b }, true},
		{"another class", func(b []byte) []byte { b[atClass]++; rehash(b); return b }, false},
		{"class beyond all", func(b []byte) []byte { b[atClass+3]++; rehash(b); return b }, false},
		{"another size", func(b []byte) []byte { b[atBytes]++; rehash(b); return b }, false},
		{"no size", func(b []byte) []byte { clear(b[atBytes:atSalt]); rehash(b); return b }, false},
		{"tokens behind it", func(b []byte) []byte { b[atBefore] = 64; rehash(b); return b }, false},
		{"a few tokens", func(b []byte) []byte { b[atBefore]++; rehash(b); return append(b, 0, 0, 0, 0) }, false},
		{"many tokens", func(b []byte) []byte { b[atBefore+3]++; rehash(b); return b }, false},
		{"more in the header", func(b []byte) []byte { b[headerSize-1]++; return b }, false},
		{"token", func(b []byte) []byte { b[atTokens]++; return b }, false},
		{"bit of the block", func(b []byte) []byte { b[headerSize+7] ^= 4; return b }, true},
		{"block of zeros", func(b []byte) []byte { clear(b[headerSize:]); return b }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := folder(t, 1<<20)
			s := f.Shelf("a")
			path := put(t, s, 4, today)
			put(t, s, 5, today)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			b = test.edit(b)
			require.NoError(t, os.WriteFile(path, b, privateFile))
			h := header(4)
			require.ErrorIs(t, s.Read(h.Key, h.Class, [][]byte{make([]byte, 300)}, today), ErrBroken)
			require.NoFileExists(t, path)
			require.NoError(t, os.WriteFile(path, b, privateFile))
			want := 1
			if test.seen {
				want = 2
			}
			require.Len(t, scanned(s, today), want)
			require.True(t, has(t, s, 5))
			put(t, s, 4, today)
			require.True(t, has(t, s, 4) || test.seen, "it is written anew")
		})
	}
}

// The folder never takes more than it may. What goes first was not used for longest, and is of no model that runs.
func TestBounded(t *testing.T) {
	const each = headerSize + 300
	f := folder(t, 4*each)
	a, b := f.Shelf("a"), f.Shelf("b")
	for n := range byte(3) {
		put(t, a, n, today.Add(-time.Duration(n)*time.Hour)) // 2 is the oldest
	}
	put(t, b, 7, today)
	require.ErrorIs(t, b.Write(header(8), content(8)), ErrFull)
	require.EqualValues(t, 4*each, f.Used())
	a.Close(today)
	put(t, b, 8, today)
	put(t, b, 9, today)
	require.EqualValues(t, 4*each, f.Used())
	a = f.Shelf("a")
	require.Equal(t, []bool{true, false, false}, []bool{has(t, a, 0), has(t, a, 1), has(t, a, 2)})
	require.ErrorIs(t, b.Write(header(10), content(10)), ErrFull)
	less, err := Open(f.Path(), 2*each, today)
	require.NoError(t, err)
	require.EqualValues(t, 2*each, less.Used())
	require.Len(t, append(scanned(less.Shelf("a"), today), scanned(less.Shelf("b"), today)...), 2)
}

// What a process left that was killed while it wrote is removed once it is old. Files that are not ours stay.
func TestLeftovers(t *testing.T) {
	f := folder(t, 1<<20)
	s := f.Shelf("a")
	put(t, s, 1, today)
	old, fresh, foreign := filepath.Join(s.Path(), beside+"1"), filepath.Join(s.Path(), beside+"2"),
		filepath.Join(s.Path(), "notes.txt")
	for path, at := range map[string]time.Time{old: today.Add(-time.Hour), fresh: today, foreign: today.Add(-time.Hour)} {
		require.NoError(t, os.WriteFile(path, []byte("x"), privateFile))
		require.NoError(t, os.Chtimes(path, at, at))
	}
	require.NoError(t, os.Mkdir(filepath.Join(f.Path(), "mine"), private))
	require.Len(t, scanned(s, today), 1)
	require.NoFileExists(t, old)
	require.FileExists(t, fresh)
	require.FileExists(t, foreign)
	again, err := Open(f.Path(), 1, today)
	require.NoError(t, err)
	require.Zero(t, again.Used())
	require.DirExists(t, filepath.Join(f.Path(), "mine"))
	require.FileExists(t, foreign)
}

// A folder that is removed while it is used is made again.
func TestRemovedFolder(t *testing.T) {
	f := folder(t, 1<<20)
	s := f.Shelf("a")
	put(t, s, 1, today)
	require.NoError(t, os.RemoveAll(f.Path()))
	require.False(t, has(t, s, 1))
	require.Empty(t, scanned(s, today))
	put(t, s, 2, today)
	require.True(t, has(t, s, 2))
}

// Files that somebody else removes, as anybody may at any time, make room as soon as one of them is missed.
func TestFilesThatOthersRemoveMakeRoom(t *testing.T) {
	f := folder(t, 4*(headerSize+300))
	s := f.Shelf("a")
	var paths []string
	for _, n := range []byte{1, 2, 4, 5} {
		paths = append(paths, put(t, s, n, today))
	}
	require.ErrorIs(t, s.Write(header(7), content(7)), ErrFull)
	for _, path := range paths[:3] {
		require.NoError(t, os.Remove(path))
	}
	s.Remove(header(1).Key, header(1).Class)
	put(t, s, 7, today)
	put(t, s, 8, today)
	require.EqualValues(t, 3*(headerSize+300), f.Used())
	put(t, s, 10, today)
	require.ErrorIs(t, s.Write(header(11), content(11)), ErrFull, "the bound holds")
	require.True(t, has(t, s, 5) && has(t, s, 7) && has(t, s, 8) && has(t, s, 10))

	require.NoError(t, os.RemoveAll(f.Path()))
	require.False(t, has(t, s, 5), "it is missed when it is wanted, too")
	put(t, s, 11, today)
	require.EqualValues(t, headerSize+300, f.Used())
}

// A clock that jumps changes which blocks go first, and never what is read. A file that another process is writing may
// be taken for one of a process that has ended: its writing fails, and the next one succeeds.
func TestClockJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	f := folder(t, 1<<20)
	s := f.Shelf("a")
	for i, jump := range []time.Duration{0, 10 * year, -10 * year} {
		put(t, s, byte(i), today.Add(jump))
		h := header(byte(i))
		require.NoError(t, s.Read(h.Key, h.Class, [][]byte{make([]byte, 300)}, today.Add(-jump)))
		require.Len(t, scanned(s, today.Add(jump)), i+1)
		again, err := Open(f.Path(), 1<<20, today.Add(jump))
		require.NoError(t, err)
		require.Equal(t, f.Used(), again.Used())
	}
	fresh := filepath.Join(s.Path(), beside+"1")
	require.NoError(t, os.WriteFile(fresh, []byte("x"), privateFile))
	scanned(s, time.Now().Add(-year))
	require.FileExists(t, fresh)
	scanned(s, time.Now().Add(year))
	require.NoFileExists(t, fresh)
	for n := range byte(3) {
		require.True(t, has(t, s, n))
	}
}

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := func(name string) (k Key) {
			copy(k[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, name))
			return k
		}
		h := Header{Kind: key("kind"), Key: key("key"), Parent: key("parent"), Salt: rapid.Uint64().Draw(t, "salt"),
			Class: rapid.IntRange(0, mostClasses-1).Draw(t, "class"), Bytes: rapid.IntRange(1, mostBytes).Draw(t, "bytes")}
		copy(h.Tokens[:], rapid.SliceOfN(rapid.Int32(), len(h.Tokens), len(h.Tokens)).Draw(t, "tokens"))
		want := rapid.Uint32().Draw(t, "sum")
		var back Header
		h.Before = make([]int32, 64*rapid.IntRange(0, 3).Draw(t, "before"))
		sum, before, err := back.decode(h.encode(nil, want))
		require.NoError(t, err)
		require.Len(t, h.Before, before)
		h.Before = nil
		require.Equal(t, want, sum)
		require.Equal(t, h, back)
	})
}

// Whatever stands in a file: it is a block that was written, or ErrBroken.
func FuzzRead(f *testing.F) {
	h := header(4)
	h.Kind, h.Bytes = (&Folder{open: map[string]int{}}).Shelf("a").kind, 300
	whole := append(h.encode(nil, crc32.Checksum(content(4), castagnoli)), content(4)...)
	f.Add(whole)
	f.Add(whole[:headerSize])
	h.Before = make([]int32, 64)
	rest := append(content(4), h.tail()...)
	f.Add(append(h.encode(nil, crc32.Checksum(rest, castagnoli)), rest...))
	f.Add([]byte(magic))
	f.Add([]byte{})
	s := (&Folder{open: map[string]int{}}).Shelf("a")
	f.Fuzz(func(t *testing.T, b []byte) {
		var read Header
		if _, before, err := read.decode(b); err == nil {
			read.Before = make([]int32, before)
			again := read.encode(nil, binary.LittleEndian.Uint32(b[atBlock:]))
			require.True(t, bytes.Equal(b[:headerSize], again), "it says all")
		} else {
			require.ErrorIs(t, err, ErrBroken)
		}
		block := make([]byte, 300)
		if err := s.readFrom(bytes.NewReader(b), h.Key, h.Class, [][]byte{block[:7], block[7:]}); err == nil {
			require.True(t, bytes.Equal(b[headerSize:][:300], block))
		} else {
			require.ErrorIs(t, err, ErrBroken)
		}
	})
}
