package actors

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/answerfiles"
	"github.com/sluice-ai/sluice/storage/kvfiles"
)

// tinyDrive is a small file system of its own, which can be full and read-only.
type tinyDrive struct{ path string }

// newDrive makes one of so many bytes. Only root may.
func newDrive(t *testing.T, size string) tinyDrive {
	d := tinyDrive{t.TempDir()}
	if err := syscall.Mount("tmpfs", d.path, "tmpfs", 0, "size="+size); err != nil {
		testref.Missing(t, "mount", "mounting a file system: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(d.path, syscall.MNT_DETACH)) })
	return d
}

// fill takes all room that is left; free gives it back.
func (d tinyDrive) fill(t *testing.T) (free func()) {
	path := filepath.Join(d.path, "full")
	f, err := os.Create(path)
	require.NoError(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())
	return func() { require.NoError(t, os.Remove(path)) }
}

func (d tinyDrive) readOnly(t *testing.T) (free func()) {
	require.NoError(t, syscall.Mount("", d.path, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	return func() { require.NoError(t, syscall.Mount("", d.path, "", syscall.MS_REMOUNT, "")) }
}

// faults are what becomes of a drive, and what the log says then.
var driveFaults = map[string]struct {
	begin func(tinyDrive, *testing.T) (end func())
	says  string
}{
	"full": {tinyDrive.fill, "no space left on device"}, "read-only": {tinyDrive.readOnly, "read-only file system"},
}

// On a drive that is full or read-only answers are the same, the log says why blocks are not kept, once, and what was
// written before is used.
func TestBlocksOnAFaultyDrive(t *testing.T) {
	all := ended(6)
	want := alone(t, startFixture(t, fixture, wide), all, 8)
	for name, fault := range driveFaults {
		t.Run(name, func(t *testing.T) {
			d, log := newDrive(t, "4m"), &logLines{}
			e := startFixture(t, fixture, func(c *Config) {
				keeping(t, c, filepath.Join(d.path, "kv"))
				c.Log = zerolog.New(log)
			})
			require.Equal(t, want[:1], alone(t, e, all[:1], 8))
			e.house.settle(e.tenant)
			end := fault.begin(d, t)
			require.Equal(t, want, alone(t, e, all, 8))
			together(t, e, all, want)
			shut(t, e)
			require.Equal(t, 1, log.count("cached prompts on disk cannot be written"), log.all.String())
			require.Positive(t, log.count(fault.says))
			end()
			next := startFixture(t, fixture, func(c *Config) { keeping(t, c, filepath.Join(d.path, "kv")) })
			found(t, next, all[:1], want[:1])
			require.Equal(t, want, alone(t, next, all, 8))
			shut(t, next)
		})
	}
}

// A session that cannot be written leaves the one that is there, which can be restored meanwhile; the error says why,
// and so does the log.
func TestSessionsOnAFaultyDrive(t *testing.T) {
	for name, fault := range driveFaults {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t) })
			all, slot, log := longPrompts(3), Slot{ID: 0}, &logLines{}
			d := newDrive(t, "4m")
			e := startFixture(t, fixture, func(c *Config) { wide(c); known(c) })
			s := saving(t, filepath.Join(d.path, "sessions"))
			s.log = zerolog.New(log)
			next := talked(t, e, all[0], slot)
			want := spelled(t, begin(t, e, ask(next, 8)))
			saved, err := s.Save(e, slot, "x")
			require.NoError(t, err)
			used := s.folder.Used()
			talked(t, e, all[1], slot)
			end := fault.begin(d, t)
			_, err = s.Save(e, slot, "x")
			require.ErrorContains(t, err, fault.says)
			require.Equal(t, 1, log.count("a session cannot be saved"))
			require.Positive(t, log.count(fault.says))
			require.Equal(t, used, s.folder.Used())
			again := startFixture(t, fixture, func(c *Config) { wide(c); known(c) })
			m, err := s.Restore(again, slot, "x")
			require.NoError(t, err)
			require.Equal(t, saved, m)
			require.Equal(t, want, spelled(t, begin(t, again, ask(next, 8))))
			end()
			_, err = s.Save(e, slot, "x")
			require.NoError(t, err, "it works again")
			shut(t, e)
			shut(t, again)
		})
	}
}

// An answer whose drive is full is computed on; what was written of it before is whole, the log says why, and the next
// answer is kept once there is room.
func TestAnswersOnAFullDrive(t *testing.T) {
	d, log := newDrive(t, "256k"), &logLines{}
	folder, err := answerfiles.OpenFolder(filepath.Join(d.path, "answers"), 1<<20, time.Now())
	require.NoError(t, err)
	t.Cleanup(folder.Close)
	a := KeepAnswers(folder, zerolog.New(log))
	x := a.Begin(&AnswerAsked{ID: "1", Owner: "k", Body: strings.Repeat("b", 100)})
	require.NotNil(t, x)
	draw := func(from, to int32) {
		for id := from; id < to; id++ {
			x.Token(&AnswerToken{ID: id})
		}
		x.write()
	}
	draw(0, 10)
	free := d.fill(t)
	draw(10, 5010) // more than what is left of the file's last page
	require.Nil(t, a.Begin(&AnswerAsked{ID: "2", Owner: "k", Body: strings.Repeat("b", 9000)}))
	require.Equal(t, 1, log.count("answers cannot be kept on disk"), log.all.String())
	require.Equal(t, 1, log.count("no space left on device"))
	past := a.Find("k", "1")
	require.NotNil(t, past)
	require.GreaterOrEqual(t, len(past.Tokens), 10)
	for i, token := range past.Tokens {
		require.EqualValues(t, i, token.ID)
	}
	free()
	y := a.Begin(&AnswerAsked{ID: "3", Owner: "k"})
	require.NotNil(t, y)
	require.Equal(t, 1, log.count("answers are kept on disk again"))
	x.End(AnswerLeft)
	y.End(AnswerDone)
	a.Close()
}

// A file of blocks that cannot be read, since its drive says so, is computed again.
func TestUnreadableBlocks(t *testing.T) {
	all, path := ended(2), t.TempDir()
	want := alone(t, startFixture(t, fixture, wide), all, 8)
	e := startFixture(t, fixture, func(c *Config) { keeping(t, c, path) })
	alone(t, e, all, 8)
	shut(t, e)
	next := startFixture(t, fixture, func(c *Config) { keeping(t, c, path) })
	replaced := 0
	eachFile(t, path, func(path string) {
		if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
			return // the engine removes files that it has no use for
		}
		require.NoError(t, os.Symlink("/proc/self/mem", path)) // reads fail there with EIO
		replaced++
	})
	require.Positive(t, replaced)
	_, err := os.ReadFile("/proc/self/mem")
	require.True(t, errors.Is(err, syscall.EIO), "%v", err)
	require.Equal(t, want, alone(t, next, all, 8))
	shut(t, next)
	_, err = kvfiles.Open(path, 1<<20, time.Now())
	require.NoError(t, err)
}

// An answer whose folder is read-only, or removed, while it is computed goes on; the log says why it is not kept, once,
// and the next one is kept when the folder is there again. What is read is a part of what was drawn, or nothing.
func TestAnswersOnAFaultyDrive(t *testing.T) {
	faults := map[string]struct {
		begin func(tinyDrive, *testing.T) (end func())
		says  string
	}{
		"read-only": {func(d tinyDrive, t *testing.T) func() { // the drive itself is busy: the server's lock is open
			found, err := filepath.Glob(filepath.Join(d.path, "answers", strings.Repeat("?", 32)))
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.NoError(t, syscall.Mount(found[0], found[0], "", syscall.MS_BIND, ""))
			require.NoError(t, syscall.Mount("", found[0], "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
			return func() { require.NoError(t, syscall.Unmount(found[0], syscall.MNT_DETACH)) }
		}, "read-only file system"},
		"removed": {func(d tinyDrive, t *testing.T) func() {
			require.NoError(t, os.RemoveAll(filepath.Join(d.path, "answers")))
			return func() {}
		}, "no such file or directory"},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { goleak.VerifyNone(t) })
			d, log := newDrive(t, "256k"), &logLines{}
			folder, err := answerfiles.OpenFolder(filepath.Join(d.path, "answers"), 1<<20, time.Now())
			require.NoError(t, err)
			a := KeepAnswers(folder, zerolog.New(log))
			x := a.Begin(&AnswerAsked{ID: "1", Owner: "k"})
			require.NotNil(t, x)
			x.Token(&AnswerToken{ID: 0})
			x.write()
			end := fault.begin(d, t)
			for id := range int32(3) {
				x.Token(&AnswerToken{ID: 1 + id})
				x.write()
			}
			if y := a.Begin(&AnswerAsked{ID: "2", Owner: "k"}); name == "read-only" {
				require.Nil(t, y)
			} else { // the folder is made again
				y.End(AnswerDone)
			}
			require.Equal(t, 1, log.count("answers cannot be kept on disk"), log.all.String())
			require.Equal(t, 1, log.count(fault.says))
			if past := a.Find("k", "1"); past != nil {
				require.Len(t, past.Tokens, 1)
			} else {
				require.Equal(t, "removed", name)
			}
			end()
			z := a.Begin(&AnswerAsked{ID: "3", Owner: "k"})
			require.NotNil(t, z)
			require.Equal(t, 1, log.count("answers are kept on disk again"))
			x.End(AnswerLeft)
			z.End(AnswerDone)
			require.NotNil(t, a.Find("k", "3"))
			a.Close()
			folder.Close()
		})
	}
}

// An answer whose file cannot be read is as if it had not been kept; the log says why.
func TestUnreadableAnswers(t *testing.T) {
	log := &logLines{}
	folder, err := answerfiles.OpenFolder(t.TempDir(), 1<<20, time.Now())
	require.NoError(t, err)
	t.Cleanup(folder.Close)
	a := KeepAnswers(folder, zerolog.New(log))
	t.Cleanup(a.Close)
	a.Begin(&AnswerAsked{ID: "1", Owner: "k"}).End(AnswerOpen)
	eachFile(t, folder.Path(), func(path string) {
		if strings.HasSuffix(path, ".open") {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink("/proc/self/mem", path))
		}
	})
	require.Nil(t, a.Find("k", "1"))
	require.Equal(t, 1, log.count("an answer on disk cannot be read"), log.all.String())
	require.Empty(t, a.Unfinished(10))
	require.Equal(t, 1, log.count("files in the folder of answers are ignored"))
	require.NotNil(t, a.Begin(&AnswerAsked{ID: "1", Owner: "k"}))
}

// Blocks are copied to the device while others are still read: of one file nothing comes, as of a drive that stands
// still, and the others are copied meanwhile. Then the answer is the same.
func TestBlocksAreCopiedWhileOthersAreRead(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all, path := ended(1), t.TempDir()
	all[0] = append(slices.Clip(all[0]), 1) // so that all its whole blocks are read
	e := startFixture(t, fixture, func(c *Config) { keeping(t, c, path) })
	want := alone(t, e, all, 8)
	shut(t, e)
	d := &carried{}
	next := startFixture(t, fixture, func(c *Config) {
		keeping(t, c, path)
		d.Device = c.Device
		c.Device = d
	})
	require.NoError(t, next.transfer(&transfer{do: forget}), "what there are files of is known before it is done")
	slow := ""
	eachFile(t, path, func(path string) { slow = path })
	require.NoError(t, os.Remove(slow))
	require.NoError(t, syscall.Mkfifo(slow, 0o600))
	s := begin(t, next, ask(all[0], 8))
	assert.Eventually(t, func() bool { return len(d.take()) > 0 }, patient, time.Millisecond)
	var writer int
	require.Eventually(t, func() (read bool) {
		var err error
		writer, err = syscall.Open(slow, syscall.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	}, patient, time.Millisecond, "the file is read")
	require.NoError(t, syscall.Close(writer))
	require.Equal(t, want[0], spelled(t, s))
	shut(t, next)
}
