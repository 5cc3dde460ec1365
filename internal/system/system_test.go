package system

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestMemory: areas are zero, begin at pages, and are given back; a few pages can be locked.
func TestMemory(t *testing.T) {
	const size = 3<<20 + 5
	area, err := MapMemory(size)
	require.NoError(t, err)
	require.Len(t, area, size)
	require.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(area)))%uintptr(os.Getpagesize()))
	require.Equal(t, make([]byte, size), area)
	if err := PopulateMemory(area); runtime.GOOS == "linux" {
		require.NoError(t, err)
	}
	area[size-1] = 1
	require.NoError(t, LockMemory(area[:os.Getpagesize()]))
	require.NoError(t, UnmapMemory(area))
}

func TestAvailableMemory(t *testing.T) {
	free, known := AvailableMemory()
	all, knownToo := InstalledMemory()
	require.Equal(t, known, knownToo)
	require.Equal(t, runtime.GOOS == "windows" || runtime.GOOS == "darwin", known)
	if known {
		require.Positive(t, free)
		require.Less(t, free, all)
	}
}

// write makes a file of n bytes, each of which depends on its place.
func write(t *testing.T, n int) (path string, content []byte) {
	content = make([]byte, n)
	for i := range content {
		content[i] = byte(i ^ i>>8 ^ i>>16)
	}
	path = filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, content, 0o600))
	return path, content
}

func TestMapFile(t *testing.T) {
	path, content := write(t, 100_001)
	f, err := os.Open(path)
	require.NoError(t, err)
	mapped, err := MapFile(f, len(content))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.True(t, bytes.Equal(content, mapped))
	require.NoError(t, UnmapFile(mapped))
}

// TestReadAt: reads of one file that are under way together give their own bytes, past the page cache and through it;
// the end of the file is a short read.
func TestReadAt(t *testing.T) {
	const piece, pieces = 1 << 16, 32
	path, content := write(t, piece*pieces+100)
	plain, err := os.Open(path)
	require.NoError(t, err)
	defer plain.Close()
	files := map[string]*os.File{"plain": plain}
	if direct, block := OpenDirect(path); direct != nil {
		defer direct.Close()
		require.Zero(t, piece%block)
		files["direct"] = direct
	} else {
		require.Contains(t, []string{"linux", "freebsd"}, runtime.GOOS, "on others every file has direct reads")
	}
	for name, f := range files {
		area, err := MapMemory(piece * (pieces + 1))
		require.NoError(t, err)
		var reads sync.WaitGroup
		counts := make([]int, pieces+1)
		for i := range counts {
			reads.Go(func() {
				n, err := ReadAt(f, area[i*piece:][:piece], int64(i*piece))
				if err == nil {
					counts[i] = n
				}
			})
		}
		reads.Wait()
		require.Equal(t, 100, counts[pieces], name)
		require.True(t, bytes.Equal(content, area[:len(content)]), name)
		n, err := ReadAt(f, area[:piece], 2*piece*pieces)
		require.NoError(t, err, name)
		require.Zero(t, n, name)
		require.NoError(t, UnmapMemory(area))
	}
}

func TestLockFile(t *testing.T) {
	path, content := write(t, 10)
	first, err := OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	second, err := OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer second.Close()
	require.NoError(t, LockFile(first))
	require.ErrorIs(t, LockFile(second), ErrLocked)
	text, err := os.ReadFile(path)
	require.NoError(t, err, "who takes no lock can read")
	require.Equal(t, content, text)
	require.NoError(t, first.Close())
	require.NoError(t, LockFile(second))
}

// TestOpenFile: files that are open can be renamed and removed, and flags mean what os.OpenFile says.
func TestOpenFile(t *testing.T) {
	folder := t.TempDir()
	a, b := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	_, err := OpenFile(a, os.O_RDWR, 0)
	require.ErrorIs(t, err, fs.ErrNotExist)
	f, err := OpenFile(a, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	require.NoError(t, err)
	_, err = OpenFile(a, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	require.ErrorIs(t, err, fs.ErrExist)
	_, err = f.WriteString("text")
	require.NoError(t, err)
	require.NoError(t, RenameNew(a, b))
	require.NoError(t, os.WriteFile(a, nil, 0o600))
	require.ErrorIs(t, RenameNew(a, b), fs.ErrExist)
	require.NoError(t, os.Remove(b))
	require.NoError(t, f.Close())
	require.NoError(t, SyncFolder(folder))

	require.NoError(t, os.WriteFile(a, []byte("text"), 0o600))
	end, err := OpenFile(a, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = end.WriteString("more")
	require.NoError(t, err)
	require.NoError(t, end.Close())
	none, err := OpenFile(a, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	require.NoError(t, err)
	info, err := none.Stat()
	require.NoError(t, err)
	require.Zero(t, info.Size())
	require.NoError(t, none.Close())
	opened, err := OpenFile(folder, os.O_RDONLY, 0)
	require.NoError(t, err)
	info, err = opened.Stat()
	require.NoError(t, err)
	require.True(t, info.IsDir())
	require.NoError(t, opened.Close())
}

// TestLinkTo: a link has its file's content, and is known.
func TestLinkTo(t *testing.T) {
	path, content := write(t, 10)
	link := filepath.Join(filepath.Dir(path), "folder", "link")
	require.NoError(t, os.Mkdir(filepath.Dir(link), 0o700))
	target := filepath.Join("..", filepath.Base(path))
	require.False(t, LinksTo(link, target))
	require.NoError(t, LinkTo(target, link))
	require.True(t, LinksTo(link, target))
	require.False(t, LinksTo(link, filepath.Join("..", "other")))
	text, err := os.ReadFile(link)
	require.NoError(t, err)
	require.Equal(t, content, text)
}

func TestLimits(t *testing.T) {
	room, err := Room(t.TempDir())
	require.NoError(t, err)
	require.Positive(t, room)
	require.Positive(t, MostFiles())
	_, err = MostLocked()
	require.NoError(t, err)
	require.LessOrEqual(t, Cores(), runtime.NumCPU())
	require.Positive(t, Cores())
	runtime.LockOSThread()
	Settle() // the thread ends with the test's goroutine, which stays on it
	Yield()
}

// TestReadable: a pipe with data or without a writer is readable, an idle one is not, and that takes its time.
func TestReadable(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	const wait = 50 * time.Millisecond
	began := time.Now()
	require.False(t, Readable(r, wait))
	require.GreaterOrEqual(t, time.Since(began), wait)
	_, err = w.WriteString("x")
	require.NoError(t, err)
	require.True(t, Readable(r, wait))
	_, err = r.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.True(t, Readable(r, wait))
}
