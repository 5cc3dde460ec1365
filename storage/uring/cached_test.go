package uring

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/source"
	"github.com/sluice-ai/sluice/internal/system"
)

func TestCachedHas(t *testing.T) {
	c := cached{true, true, false, true}
	for _, test := range []struct {
		from int64
		n    int
		want bool
	}{
		{0, 1, true}, {0, 2 * partBytes, true}, {0, 2*partBytes + 1, false}, {partBytes - 1, 2, true},
		{2*partBytes - 1, 1, true}, {2*partBytes - 1, 2, false}, {2 * partBytes, 1, false}, {3*partBytes - 1, 2, false},
		{3 * partBytes, partBytes, true},
	} {
		require.Equal(t, test.want, c.has(test.from, test.n), "%d bytes from %d", test.n, test.from)
	}
}

// openCold writes a file that the page cache does not hold. Where the system has no direct reads or does not say what
// it holds, there is nothing to test.
func openCold(t *testing.T, size int) (source.Source, *os.File) {
	s := dropped(t, t.TempDir(), content(size))
	f, err := os.Open(s.Path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	direct, _ := system.OpenDirect(s.Path)
	if direct == nil {
		t.Skip("no direct reads here")
	}
	require.NoError(t, direct.Close())
	require.False(t, system.Resident(f, 0, size))
	warm := writeSource(t, t.TempDir(), content(1))
	g, err := os.Open(warm.Path)
	require.NoError(t, err)
	defer g.Close()
	if !system.Resident(g, 0, 1) {
		t.Skip("this kernel does not say what its page cache holds")
	}
	return s, f
}

// warm brings a range into the page cache, and nothing else.
func warm(t *testing.T, f *os.File, from, to int64) {
	exactly(f)
	_, err := f.ReadAt(make([]byte, to-from), from)
	require.NoError(t, err)
}

// looks compares what is seen of the page cache, some times: the kernel takes pages out of it whenever it needs memory.
func looks[T any](t *testing.T, want T, look func() T) {
	t.Helper()
	got := look()
	for try := 1; try < 5 && !assert.ObjectsAreEqual(want, got); try++ {
		got = look()
	}
	require.Equal(t, want, got)
}

// TestResident: what was just read lies in the page cache, what was dropped does not, and two pages of a MiB do not
// count.
func TestResident(t *testing.T) {
	const page, size = 4096, 1<<20 + 100
	s, f := openCold(t, size)
	require.EqualValues(t, page, os.Getpagesize(), "this test counts pages")
	want := map[string]bool{"what was read": true, "over a border": true, "the end": true, "more than there is": false,
		"one page of one": false, "three pages of 257": false, "two pages of 256": true}
	looks(t, want, func() map[string]bool {
		drop(f)
		warm(t, f, 3*page, size)
		return map[string]bool{
			"what was read": system.Resident(f, 3*page, size-3*page), "over a border": system.Resident(f, 4*page-1, 2),
			"the end": system.Resident(f, size-1, 1), "more than there is": system.Resident(f, 2*page, size+page),
			"one page of one": system.Resident(f, 2*page, page), "three pages of 257": system.Resident(f, 0, size),
			"two pages of 256": system.Resident(f, page, size-page),
		}
	})
	looks(t, [2]cached{{false, true}, {true, true}}, func() (seen [2]cached) {
		drop(f)
		warm(t, f, 3*page, size)
		seen[0] = lookup(f, s.Size)
		warm(t, f, 0, page)
		seen[1] = lookup(f, s.Size)
		return seen
	})
}

// TestPlanByWhatIsCached: a piece comes from the page cache if that held it when the file was opened, and still does.
func TestPlanByWhatIsCached(t *testing.T) {
	const size, piece = 4 * partBytes, partBytes / 2
	s, f := openCold(t, size)
	into := slabs(t, 1, piece+Slack).Slab(0)
	middle := []bool{false, false, true, true, true, true, false, false}
	want := map[string][]bool{"what it held": middle, "what came since does not count": middle,
		"what went does": make([]bool, 8)}
	looks(t, want, func() map[string][]bool {
		drop(f)
		warm(t, f, partBytes, 3*partBytes)
		r, err := Open(1, nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, r.Close()) }()
		fromCache := func() (pieces []bool) {
			for at := int64(0); at < size; at += piece {
				o := op{request: Request{Source: s, Offset: at, Length: piece, Into: into}}
				require.NoError(t, r.plan(&o))
				pieces = append(pieces, !o.direct)
			}
			return pieces
		}
		seen := map[string][]bool{"what it held": fromCache()}
		warm(t, f, 0, size)
		seen["what came since does not count"] = fromCache()
		drop(f)
		seen["what went does"] = fromCache()
		return seen
	})
}

// TestDirectStaysDirect: reading a file of which the cache holds a part brings little more of it there.
func TestDirectStaysDirect(t *testing.T) {
	const size, piece = 8 << 20, 1 << 20
	s, f := openCold(t, size)
	arena := slabs(t, 1, piece+Slack)
	rings(t, 1, func(t *testing.T, open func([]byte) *Ring) {
		looks(t, [2]bool{true, false}, func() [2]bool {
			drop(f)
			r := open(arena.Memory())
			defer func() { require.NoError(t, r.Close()) }()
			_, err := f.ReadAt(make([]byte, piece), 0) // the kernel reads on behind it
			require.NoError(t, err)
			out := make([]Completion, 1)
			for at := int64(0); at < size; at += piece {
				q := Request{Source: s, Offset: at, Length: piece, Into: arena.Slab(0)}
				require.NoError(t, r.Submit([]Request{q}))
				_, err := r.Wait(1, out)
				require.NoError(t, err)
				require.NoError(t, out[0].Err)
			}
			return [2]bool{r.files[s.Path].cached.has(0, piece), system.Resident(f, size-piece, piece)} // the beginning, the end
		})
	})
}
