//go:build unix

package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sluice-ai/sluice/internal/system"
)

// Nothing that has no end, or waits for somebody, is opened to read.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	fifo, socket, regular := filepath.Join(dir, "fifo"), filepath.Join(dir, "socket"), filepath.Join(dir, "file")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	ln, err := net.Listen("unix", socket)
	require.NoError(t, err)
	defer ln.Close()
	require.NoError(t, os.WriteFile(regular, []byte("text"), 0o600))
	for path, want := range map[string]string{
		fifo: "is a pipe, want a regular file", socket: "is a socket, want a regular file", dir: "is a folder",
		"/dev/zero": "is a device", filepath.Join(dir, "none"): "no such file or directory",
	} {
		began := time.Now()
		_, _, err := Open(path)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), path)
		require.Less(t, time.Since(began), time.Minute, "nobody is waited for")
	}
	f, info, err := Open(regular)
	require.NoError(t, err)
	defer f.Close()
	require.EqualValues(t, 4, info.Size())
	data, err := ReadAll(f, 4)
	require.NoError(t, err)
	require.Equal(t, "text", string(data))
}

func TestReadAllIsBounded(t *testing.T) {
	_, err := ReadAll(endless{}, 1000)
	require.EqualError(t, err, "has more than 1000 bytes, which is the most that is read here")
	data, err := ReadAll(strings.NewReader("1234"), 4)
	require.NoError(t, err)
	require.Equal(t, "1234", string(data))
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// ways are files that have no name until they are complete, and those of systems that have no such thing.
func ways(t *testing.T, test func(t *testing.T, create func(path string, replace bool) (*File, error))) {
	t.Run("unnamed", func(t *testing.T) {
		test(t, func(path string, replace bool) (*File, error) { return Create(path, 0o644, replace) })
	})
	t.Run("named", func(t *testing.T) {
		none := func(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }
		test(t, func(path string, replace bool) (*File, error) { return create(path, 0o644, replace, none) })
	})
}

// A file is there when it is complete, and nothing of it before.
func TestCreate(t *testing.T) {
	ways(t, func(t *testing.T, create func(string, bool) (*File, error)) {
		dir := t.TempDir()
		path := filepath.Join(dir, "new")
		f, err := create(path, false)
		require.NoError(t, err)
		fmt.Fprint(f, "whole")
		require.NoFileExists(t, path)
		text, err := os.ReadFile(f.Meanwhile())
		require.NoError(t, err)
		require.Equal(t, "whole", string(text))
		require.NoError(t, f.Commit())
		require.NoError(t, f.Close())
		require.Equal(t, []string{"new: whole"}, contents(t, dir))
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o644), info.Mode().Perm()&^0o022)

		_, err = create(path, false)
		require.ErrorIs(t, err, ErrTaken)
		f, err = create(path, true)
		require.NoError(t, err)
		fmt.Fprint(f, "other")
		require.NoError(t, f.Close(), "given up")
		require.Equal(t, []string{"new: whole"}, contents(t, dir))
		f, err = create(path, true)
		require.NoError(t, err)
		fmt.Fprint(f, "other")
		require.NoError(t, f.Commit())
		require.NoError(t, f.Close())
		require.Equal(t, []string{"new: other"}, contents(t, dir))
	})
}

// What takes the name while the file grows is not replaced, and nothing is left.
func TestCreateLosesTheName(t *testing.T) {
	ways(t, func(t *testing.T, create func(string, bool) (*File, error)) {
		dir := t.TempDir()
		path := filepath.Join(dir, "new")
		f, err := create(path, false)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, []byte("theirs"), 0o600))
		require.ErrorIs(t, f.Commit(), ErrTaken)
		require.NoError(t, f.Close())
		require.Equal(t, []string{"new: theirs"}, contents(t, dir))
	})
}

// A planted link is not followed: the file that it leads to stays as it is.
func TestCreateFollowsNoLink(t *testing.T) {
	ways(t, func(t *testing.T, create func(string, bool) (*File, error)) {
		dir := t.TempDir()
		path, victim := filepath.Join(dir, "new"), filepath.Join(dir, "victim")
		require.NoError(t, os.WriteFile(victim, []byte("theirs"), 0o600))
		for _, replace := range []bool{false, true} {
			require.NoError(t, os.Symlink(victim, path))
			f, err := create(path, replace)
			if replace {
				require.NoError(t, err)
				fmt.Fprint(f, "ours")
				require.NoError(t, f.Commit())
				require.NoError(t, f.Close())
				require.Equal(t, []string{"new: ours", "victim: theirs"}, contents(t, dir))
			} else {
				require.ErrorIs(t, err, ErrTaken)
			}
			require.NoError(t, os.Remove(path))
		}
		// Nor is one under the name that a file has while it grows.
		require.NoError(t, os.Symlink(victim, waiting(path)))
		f, err := create(path, true)
		if err == nil {
			err = errors.Join(f.Commit(), f.Close())
		}
		require.ErrorContains(t, err, "is in the way")
		text, err := os.ReadFile(victim)
		require.NoError(t, err)
		require.Equal(t, "theirs", string(text))
	})
}

// A file without a name takes a free one at once: what lies beside it is none of its business, nor left by a kill.
func TestCreateTakesItsNameAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new")
	if f, err := system.Unnamed(dir, 0o600); err != nil {
		t.Skipf("no unnamed files here: %v", err)
	} else {
		f.Close()
	}
	require.NoError(t, os.Symlink("nowhere", waiting(path)))
	require.NoError(t, Write(path, []byte("whole"), 0o600, false))
}

// What a killed run has left is removed by the next; what a running one holds is not.
func TestCreateAfterAKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new")
	require.NoError(t, os.WriteFile(waiting(path), []byte("half"), 0o600))
	none := func(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }
	f, err := create(path, 0o644, false, none)
	require.NoError(t, err)
	_, err = create(path, 0o644, false, none)
	require.ErrorIs(t, err, ErrBusy)
	fmt.Fprint(f, "whole")
	require.NoError(t, f.Commit())
	require.NoError(t, f.Close())
	require.Equal(t, []string{"new: whole"}, contents(t, dir))
}

func TestCreateStreams(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	_, err := Create(fifo, 0o644, false)
	require.ErrorContains(t, err, "is a pipe that takes nothing now")
	reader, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	require.NoError(t, err)
	defer reader.Close()
	require.NoError(t, Write(fifo, []byte("through"), 0o644, false))
	text, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, "through", string(text))

	require.NoError(t, Write(os.DevNull, []byte("nothing"), 0o644, false))
	for _, path := range []string{dir, "/dev/fd/999", filepath.Join(dir, "none", "x")} {
		require.Error(t, Write(path, nil, 0o644, true), path)
	}
	// What the shell appends to is not written from its beginning.
	name := filepath.Join(dir, "log")
	require.NoError(t, os.WriteFile(name, []byte("before "), 0o600))
	log, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	defer log.Close()
	require.NoError(t, Write(fmt.Sprintf("/dev/fd/%d", log.Fd()), []byte("after"), 0o644, false))
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "before after", string(text))
}

func TestGrowAndAppend(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	f, err := Grow(path)
	require.NoError(t, err)
	_, err = Grow(path)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, f.Close())
	require.NoError(t, os.Symlink(path, other))
	_, err = Grow(other)
	require.ErrorIs(t, err, unix.ELOOP)
	_, err = Append(other)
	require.ErrorIs(t, err, unix.ELOOP)
	require.NoError(t, os.Remove(other))
	require.NoError(t, os.Link(path, other))
	_, err = Grow(other)
	require.ErrorContains(t, err, "has 2 names")
	require.NoError(t, os.Remove(other))
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.ErrorIs(t, Publish(path, other, false), ErrTaken)
	require.ErrorIs(t, system.LinkNew(path, other), fs.ErrExist)
	require.NoError(t, Publish(path, other, true))
	require.NoError(t, system.LinkNew(other, path))
	require.Equal(t, []string{"a: "}, contents(t, dir))
}

func contents(t *testing.T, dir string) (all []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range list {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		all = append(all, f.Name()+": "+string(text))
	}
	return all
}
