package uring

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/internal/system"
	"github.com/sluice-ai/sluice/storage/pin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is n bytes, each of which depends on its place.
func content(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, uint64(n)))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// writeSource writes content to a file in dir.
func writeSource(t testing.TB, dir string, b []byte) source.Source {
	f, err := os.CreateTemp(dir, "ring")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Remove(f.Name())) })
	_, err = f.Write(b)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return source.Source{Name: "m.gguf", Path: f.Name(), Size: int64(len(b))}
}

// dropped writes content to a file and takes it out of the page cache, where the system can be told to.
func dropped(t testing.TB, dir string, b []byte) source.Source {
	s := writeSource(t, dir, b)
	f, err := os.Open(s.Path)
	require.NoError(t, err)
	defer f.Close()
	drop(f)
	return s
}

// folders are places with different file systems: the second has no direct reads.
func folders(t testing.TB) []string {
	dirs := []string{t.TempDir()}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		dirs = append(dirs, "/dev/shm")
	}
	return dirs
}

// slabs allocates an arena for the test.
func slabs(t testing.TB, n, size int) *pin.Arena {
	a, err := pin.New(n, size)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// rings runs a test on each engine that this machine has.
func rings(t *testing.T, depth int, test func(t *testing.T, open func(memory []byte) *Ring)) {
	for _, kind := range []string{"io_uring", "pread"} {
		t.Run(kind, func(t *testing.T) {
			test(t, func(memory []byte) *Ring {
				r, err := Open(depth, memory)
				require.NoError(t, err)
				if kind == "pread" {
					require.NoError(t, r.Close())
					r, err = OpenPread(depth)
					require.NoError(t, err)
				}
				if r.Kind() != kind {
					require.NoError(t, r.Close())
					t.Skip("io_uring is not available here")
				}
				require.Equal(t, depth, r.Depth())
				return r
			})
		})
	}
}

// TestAlignments reads from and to every kind of place: block borders, the middle, the end of the file, slabs
// without slack, slabs that start at an odd address.
func TestAlignments(t *testing.T) {
	const size = 3*4096 + 777
	want := content(size)
	rings(t, 4, func(t *testing.T, open func([]byte) *Ring) {
		for i, dir := range append(folders(t), t.TempDir()) {
			s := writeSource(t, dir, want)
			if i == 0 {
				s = dropped(t, dir, want) // from the disk: direct reads leave nothing in the cache
			}
			arena := slabs(t, 1, size+Slack)
			r := open(arena.Memory())
			out := make([]Completion, 1)
			edges := []int64{0, 1, 511, 512, 513, 4095, 4096, 4097, 8192, 3 * 4096, size - 1}
			for _, from := range edges {
				for _, length := range []int64{1, 511, 512, 4096, 5000, size} {
					for _, into := range [][]byte{
						arena.Slab(0), arena.Slab(0)[:length:length], arena.Slab(0)[3:], arena.Slab(0)[512:],
					} {
						n := int(min(length, size-from, int64(len(into))))
						q := Request{ID: 7, Source: s, Offset: from, Length: n, Into: into}
						if head := HeadOf(from); head+n <= len(into) {
							q.Head = head
						}
						fill(into, 0xa5)
						require.NoError(t, r.Submit([]Request{q}))
						got, err := r.Wait(1, out)
						require.NoError(t, err)
						require.Equal(t, 1, got)
						require.NoError(t, out[0].Err)
						require.EqualValues(t, 7, out[0].ID)
						require.True(t, bytes.Equal(want[from:][:n], out[0].Data), "%d bytes from %d", n, from)
						require.Equal(t, n, cap(out[0].Data))
						require.Same(t, &into[q.Head], &out[0].Data[0], "where it was asked for")
						require.True(t, untouched(into[:max(q.Head-Block, 0)]), "blocks before")
						require.True(t, untouched(into[min(q.Head+n+Block, len(into)):]), "blocks after")
					}
				}
			}
			t.Logf("%s: direct reads: %t", dir, r.files[s.Path].direct != nil)
			require.NoError(t, r.Close())
		}
	})
}

func fill(b []byte, with byte) {
	for i := range b {
		b[i] = with
	}
}

func untouched(b []byte) bool { return len(bytes.TrimLeft(b, "\xa5")) == 0 }

// TestManyUnderWay keeps a ring full, with completions taken in small bites.
func TestManyUnderWay(t *testing.T) {
	const size, piece, depth = 4 << 20, 50_000, 8
	want := content(size)
	rings(t, depth, func(t *testing.T, open func([]byte) *Ring) {
		s := writeSource(t, t.TempDir(), want)
		memory := source.Source{Name: "memory", Size: size, Data: want}
		arena := slabs(t, depth, piece+Slack)
		r := open(nil)
		free, seen, next := []int{0, 1, 2, 3, 4, 5, 6, 7}, 0, 0
		slabOf := make(map[uint64]int)
		out := make([]Completion, 3)
		pieces := (size + piece - 1) / piece
		for seen < pieces {
			for len(free) > 0 && next < pieces {
				q := Request{ID: uint64(next), Source: s, Offset: int64(next) * piece, Into: arena.Slab(free[0])}
				q.Length, q.Head = min(piece, size-next*piece), HeadOf(q.Offset)
				if next%5 == 0 {
					q.Source = memory
				}
				slabOf[q.ID], free, next = free[0], free[1:], next+1
				require.NoError(t, r.Submit([]Request{q}))
			}
			n, err := r.Wait(1, out)
			require.NoError(t, err)
			require.Positive(t, n)
			for _, c := range out[:n] {
				require.NoError(t, c.Err)
				require.True(t, bytes.Equal(want[c.ID*piece:][:len(c.Data)], c.Data), "piece %d", c.ID)
				free = append(free, slabOf[c.ID])
				seen++
			}
		}
		n, err := r.Wait(1, out)
		require.NoError(t, err)
		require.Zero(t, n, "nothing is under way, so there is nothing to wait for")
		require.NoError(t, r.Close())
	})
}

func TestFaultyRequests(t *testing.T) {
	rings(t, 4, func(t *testing.T, open func([]byte) *Ring) {
		dir := t.TempDir()
		s := writeSource(t, dir, content(10_000))
		gone := source.Source{Name: "gone.gguf", Path: filepath.Join(dir, "gone"), Size: 100}
		grown := s
		grown.Size = 9_000
		folder := source.Source{Name: "folder", Path: dir, Size: s.Size}
		r := open(nil)
		into := make([]byte, 4096)
		for _, c := range []struct {
			request Request
			want    string
		}{
			{Request{Source: grown, Length: 10}, "m.gguf: bytes 0 to 10: the file has 10000 bytes, " +
				"and had 9000 when it was opened: restore it and start again"},
			{Request{Source: s, Offset: -1, Length: 10}, "m.gguf: bytes -1 to 9: " +
				"outside the 10000 bytes of the file"},
			{Request{Source: s, Offset: 9_995, Length: 10}, "m.gguf: bytes 9995 to 10005: " +
				"outside the 10000 bytes of the file"},
			{Request{Source: s, Length: 0}, "m.gguf: bytes 0 to 0: outside the 10000 bytes of the file"},
			{Request{Source: s, Length: 5000}, "m.gguf: bytes 0 to 5000: the memory has only 4096 bytes from 0 on"},
			{Request{Source: s, Length: 4000, Head: 97}, "m.gguf: bytes 0 to 4000: the memory has only 3999 bytes from 97 on"},
			{Request{Source: gone, Length: 1}, "gone.gguf: bytes 0 to 1: " + gone.Path + ": " + syscall.ENOENT.Error()},
			{Request{Source: folder, Length: 1}, ""},
		} {
			c.request.Into = into
			require.NoError(t, r.Submit([]Request{c.request}))
			out := make([]Completion, 2)
			n, err := r.Wait(1, out)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Nil(t, out[0].Data)
			if c.want == "" {
				require.Error(t, out[0].Err)
				continue
			}
			require.EqualError(t, out[0].Err, c.want)
		}
		require.EqualError(t, r.Submit(make([]Request, 5)),
			"5 requests for a ring of depth 4 with 4 free: take completions first")
		require.NoError(t, r.Close())
	})
}

// TestTruncatedInUse cuts the file while the ring has it open.
func TestTruncatedInUse(t *testing.T) {
	rings(t, 2, func(t *testing.T, open func([]byte) *Ring) {
		for _, left := range []int64{0, 100, 4096, 9_000} {
			s := writeSource(t, t.TempDir(), content(20_000))
			into := slabs(t, 1, 20_000+Slack).Slab(0)
			r := open(nil)
			out := make([]Completion, 1)
			require.NoError(t, r.Submit([]Request{{Source: s, Length: 20_000, Into: into}}))
			_, err := r.Wait(1, out)
			require.NoError(t, err)
			require.NoError(t, out[0].Err)

			require.NoError(t, os.Truncate(s.Path, left))
			require.NoError(t, r.Submit([]Request{{Source: s, Offset: 5, Length: 19_000, Into: into, Head: 5}}))
			_, err = r.Wait(1, out)
			require.NoError(t, err)
			require.ErrorIs(t, out[0].Err, io.ErrUnexpectedEOF)
			require.ErrorContains(t, out[0].Err, "m.gguf: bytes 5 to 19005: the file ends at byte ")
			require.NoError(t, r.Close())
		}
	})
}

// TestChangedInUse: bytes of a file that somebody wrote to, or put in the place of another, are not handed out.
func TestChangedInUse(t *testing.T) {
	rings(t, 2, func(t *testing.T, open func([]byte) *Ring) {
		s := writeSource(t, t.TempDir(), content(20_000))
		old := time.Now().Add(-time.Hour) // not within the grain of its clock
		require.NoError(t, os.Chtimes(s.Path, old, old))
		var err error
		s.Info, err = os.Stat(s.Path)
		require.NoError(t, err)
		into, out := slabs(t, 1, 20_000+Slack).Slab(0), make([]Completion, 1)
		read := func(r *Ring) error {
			require.NoError(t, r.Submit([]Request{{Source: s, Length: 20_000, Into: into}}))
			_, err := r.Wait(1, out)
			require.NoError(t, err)
			return out[0].Err
		}
		r := open(nil)
		require.NoError(t, read(r))
		f, err := os.OpenFile(s.Path, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte("others"), 5000)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.ErrorContains(t, read(r), "m.gguf: bytes 0 to 20000: the file was written to after it was opened")
		require.NoError(t, os.Chtimes(s.Path, old, old))
		require.NoError(t, read(r), "nothing else tells")
		require.NoError(t, r.Close())

		other := writeSource(t, t.TempDir(), content(20_000))
		require.NoError(t, os.Chtimes(other.Path, old, old))
		require.NoError(t, os.Remove(s.Path))
		require.NoError(t, os.Link(other.Path, s.Path))
		r = open(nil)
		require.ErrorContains(t, read(r), "another file has taken the place of the one that was opened")
		require.NoError(t, r.Close())
	})
}

// atOnce is an engine that reads when a read starts; what the ring makes of the result comes whenever it asks.
type atOnce struct {
	engine
	ended []*op
}

func (e *atOnce) start(o *op) {
	o.n, o.err = system.ReadAt(o.handle(), o.rest(), o.from+int64(o.got))
	e.ended = append(e.ended, o)
}

func (e *atOnce) next(bool) (*op, error) {
	if len(e.ended) == 0 {
		return nil, nil
	}
	o := e.ended[0]
	e.ended = e.ended[1:]
	return o, nil
}

// TestRestored: bytes that were read while a file was changed are not handed out after it was restored.
func TestRestored(t *testing.T) {
	const size = 20_000
	want := content(size)
	s := writeSource(t, t.TempDir(), want)
	old := time.Now().Add(-time.Hour) // not within the grain of its clock
	restore := func() {
		require.NoError(t, os.WriteFile(s.Path, want, 0o600))
		require.NoError(t, os.Chtimes(s.Path, old, old))
	}
	restore()
	var err error
	s.Info, err = os.Stat(s.Path)
	require.NoError(t, err)
	pread := newPreads(3)
	runtime.LockOSThread()
	r := newRing(3, &atOnce{engine: pread})
	into, out := slabs(t, 3, size+Slack), make([]Completion, 1)
	submit := func(slab int) {
		require.NoError(t, r.Submit([]Request{{ID: uint64(slab), Source: s, Length: size, Into: into.Slab(slab)}}))
	}
	next := func() error {
		n, err := r.Wait(1, out)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		return out[0].Err
	}
	submit(0)
	require.NoError(t, next(), "the file is open")
	require.NoError(t, os.WriteFile(s.Path, make([]byte, size), 0o600))
	submit(0)
	submit(1)
	require.ErrorContains(t, next(), "was written to after it was opened")
	submit(2) // is not tried
	restore()
	require.ErrorContains(t, next(), "was written to after it was opened")
	require.NoError(t, next())
	require.Equal(t, want, out[0].Data)
	require.NoError(t, r.Close())
}

// TestCloseWaits closes a full ring: the slabs are freed right after, so no read may be under way.
func TestCloseWaits(t *testing.T) {
	rings(t, 8, func(t *testing.T, open func([]byte) *Ring) {
		s := writeSource(t, t.TempDir(), content(1<<20))
		arena, err := pin.New(8, 1<<20)
		require.NoError(t, err)
		r := open(arena.Memory())
		for i := range 8 {
			require.NoError(t, r.Submit([]Request{{Source: s, Length: 1 << 20, Into: arena.Slab(i)}}))
		}
		require.NoError(t, r.Close())
		require.NoError(t, arena.Close())
	})
}

// flaky is an engine whose reads are short, come back in any order, and are refused when direct.
type flaky struct {
	draw    func(most int) int
	waiting []*op
}

func (f *flaky) start(o *op)           { f.waiting = append(f.waiting, o) }
func (f *flaky) flush() error          { return nil }
func (f *flaky) register([]byte) error { return nil }
func (f *flaky) kind() string          { return "flaky" }
func (f *flaky) close() error          { return nil }

func (f *flaky) next(bool) (*op, error) {
	if len(f.waiting) == 0 {
		return nil, nil
	}
	i := f.draw(len(f.waiting) - 1)
	o := f.waiting[i]
	f.waiting = append(f.waiting[:i], f.waiting[i+1:]...)
	b, at, least := o.rest(), o.from+int64(o.got), 1
	if o.direct {
		least = o.file.block // a direct read that is not at the end moves a block or more
		if at%int64(least) != 0 || len(b)%least != 0 {
			return nil, errors.New("a direct read of a part of a block")
		}
		if f.draw(3) == 3 {
			o.n, o.err = 0, syscall.EINVAL
			return o, nil
		}
	}
	o.n, o.err = system.ReadAt(o.file.plain, b[:least+f.draw(len(b)-least)], at)
	return o, nil
}

// TestShortReads checks that requests are completed from any sequence of short reads.
func TestShortReads(t *testing.T) {
	const size = 5000
	want := content(size)
	s := writeSource(t, t.TempDir(), want)
	arena := slabs(t, 4, size+Slack)
	rapid.Check(t, func(t *rapid.T) {
		r := newRing(4, &flaky{draw: func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }})
		f, err := openFile(s)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.close()) }()
		planned := *f // as if the disk had blocks of 512 bytes, whatever it has
		planned.direct, planned.block, planned.cached = f.plain, 512, cached{true}
		r.files[s.Path] = &planned
		r.resident = func(*os.File, int64, int) bool { return rapid.Bool().Draw(t, "resident") }

		var asked []Request
		for i := range 4 {
			q := Request{ID: uint64(i), Source: s, Into: arena.Slab(i)}
			q.Offset = rapid.Int64Range(0, size-1).Draw(t, "offset")
			q.Length = rapid.IntRange(1, int(size-q.Offset)).Draw(t, "length")
			q.Head = HeadOf(q.Offset)
			asked = append(asked, q)
		}
		require.NoError(t, r.Submit(asked))
		out := make([]Completion, 4)
		n, err := r.Wait(4, out)
		require.NoError(t, err)
		require.Equal(t, 4, n)
		for _, c := range out {
			q := asked[c.ID]
			require.NoError(t, c.Err)
			require.True(t, bytes.Equal(want[q.Offset:][:q.Length], c.Data), "request %d", c.ID)
		}
	})
}

func TestProbe(t *testing.T) {
	ok, detail, _ := Probe()
	r, err := Open(1, nil)
	require.NoError(t, err)
	require.Equal(t, ok, r.Kind() == "io_uring")
	require.NotEmpty(t, detail)
	t.Log(detail)
	require.NoError(t, r.Close())
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(0, nil)
	require.EqualError(t, err, "ring of depth 0: want 1 to 4096")
	_, err = OpenPread(4097)
	require.EqualError(t, err, "ring of depth 4097: want 1 to 4096")
}

// BenchmarkRead reads from the page cache and past it.
func BenchmarkRead(b *testing.B) {
	for _, cached := range []bool{true, false} {
		b.Run(fmt.Sprintf("cached=%t", cached), func(b *testing.B) { benchRead(b, cached) })
	}
}

func benchRead(b *testing.B, cached bool) {
	const size, piece = 64 << 20, 1 << 20
	s := writeSource(b, b.TempDir(), content(size))
	arena, err := pin.New(8, piece)
	require.NoError(b, err)
	defer func() { require.NoError(b, arena.Close()) }()
	r, err := Open(8, arena.Memory())
	require.NoError(b, err)
	defer func() { require.NoError(b, r.Close()) }()
	r.resident = func(*os.File, int64, int) bool { return cached }
	out := make([]Completion, 8)
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		var free = []int{0, 1, 2, 3, 4, 5, 6, 7}
		for next, seen := 0, 0; seen < size/piece; {
			for ; len(free) > 0 && next < size/piece; next++ {
				q := Request{ID: uint64(free[0]), Source: s, Offset: int64(next) * piece, Length: piece}
				q.Into, free = arena.Slab(free[0]), free[1:]
				require.NoError(b, r.Submit([]Request{q}))
			}
			n, err := r.Wait(1, out)
			require.NoError(b, err)
			for _, c := range out[:n] {
				free = append(free, int(c.ID))
			}
			seen += n
		}
	}
}
