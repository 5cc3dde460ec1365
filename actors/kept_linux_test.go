package actors

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/kvfiles"
)

// A file goes straight to where its block lies, if that is the program's memory, and the model is not closed while it
// is read. Of a file whose end turns out to be wrong nothing stays there.
func TestFilesAreReadInPlace(t *testing.T) {
	for _, test := range []struct {
		name   string
		change byte // of the last byte
		err    error
	}{{"whole", 0, nil}, {"broken", 1, kvfiles.ErrBroken}} {
		t.Run(test.name, func(t *testing.T) {
			path := t.TempDir()
			folder, err := kvfiles.Open(path, 1<<20, time.Now())
			require.NoError(t, err)
			x := &cacheMemory{rooms: []kv.Class{{Blocks: 2, Disk: 2}},
				kept: kept{shelf: folder.Shelf("areas"), log: zerolog.Nop()}}
			t.Cleanup(func() { require.NoError(t, x.free()) })
			areas := backend.Areas{{{Memory: make([]byte, 2*100), Each: 100}, {Memory: make([]byte, 2*7), Each: 7}}}
			x.open(areas)
			text, content := &kv.Text{}, bytes.Repeat([]byte{255}, 107)
			require.NoError(t, x.kept.shelf.Write(kvfiles.Header{}, content))
			var name string
			eachFile(t, path, func(path string) { name = path })
			file, err := os.ReadFile(name)
			require.NoError(t, err)
			file[len(file)-1] += test.change
			require.NoError(t, os.Remove(name))
			require.NoError(t, unix.Mkfifo(name, 0o600))

			m := &move{all: []kv.Move{{From: kv.Disk, To: kv.Device, Into: 1, Text: text}}}
			moved := make(chan error)
			go func() { moved <- x.move(m) }()
			drive, err := os.OpenFile(name, os.O_WRONLY, 0) // the mover has opened it, too, and has nothing to read yet
			require.NoError(t, err)
			require.False(t, x.mu.TryLock(), "the model could be closed")
			_, err = drive.Write(file)
			require.NoError(t, err)
			require.NoError(t, drive.Close())
			require.NoError(t, <-moved)

			want := content
			if require.ErrorIs(t, m.files[0], test.err); test.err != nil {
				want = make([]byte, len(content))
			}
			require.Equal(t, want[:100], areas[0][0].Memory[100:])
			require.Equal(t, want[100:], areas[0][1].Memory[7:])
			require.Equal(t, make([]byte, 107), append(areas[0][0].Memory[:100:100], areas[0][1].Memory[:7]...), "the other block")
			require.Nil(t, x.kept.staging)
			_ = os.Remove(name) // it may be gone
			part, err := x.stage(m, 0)
			require.NoError(t, err)
			x.close()
			x.open(areas)
			require.ErrorIs(t, x.filePart(m, 0, part), errNotCompiled, "the block is another model's now")
		})
	}
}
