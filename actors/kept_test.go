package actors

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/backend/compose"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/stages/kv"
	"github.com/sluice-ai/sluice/storage/kvfiles"
)

// keeping has blocks kept in a folder, and room on the device for hardly more than one of longPrompts.
func keeping(t *testing.T, c *Config, path string) {
	pressed(c)
	folder, err := kvfiles.Open(path, 256<<20, time.Now())
	require.NoError(t, err)
	c.KVHost, c.Kept = 0, Kept{Folder: folder, Weights: "fixture"}
}

// ended are prompts that end anywhere in a block, the first one with it.
func ended(prompts int) [][]int32 {
	all := longPrompts(prompts + 1)[:prompts]
	for i, p := range all {
		all[i] = slices.Concat(p[:whole(p)], p[:13*i%backend.BlockSize])
	}
	return all
}

// found asks for an answer to each prompt, and expects it, with nothing computed again.
func found(t *testing.T, e *Engine, all [][]int32, want []string) {
	t.Helper()
	for i, p := range all {
		s := begin(t, e, ask(p, 8))
		require.Equal(t, want[i], spelled(t, s))
		require.Equal(t, whole(p), s.Usage().Cached, "prompt %d", i)
	}
}

// keptAlike asks for answers twice in one process, and again in the next two.
func keptAlike(t *testing.T, name string, prompts int, edit func(*Config)) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all, path := ended(prompts), t.TempDir()
	want := alone(t, startFixture(t, name, func(c *Config) { wide(c); edit(c) }), all, 8)
	for process := range 3 {
		e := startFixture(t, name, func(c *Config) { edit(c); keeping(t, c, path) })
		if process == 0 {
			require.Equal(t, want, alone(t, e, all, 8))
			require.Positive(t, e.Snapshot().KV.Saved)
		}
		found(t, e, all, want)
		require.Positive(t, e.Snapshot().KV.Read)
		shut(t, e)
	}
}

// Laws Recompute and Survive: blocks that went to files and came back, in the same process or the next one, give the
// bits of those that never left memory, in every format of caches, of states too.
func TestRecomputeKeptBlocks(t *testing.T) {
	for _, test := range []struct {
		fixture string
		kv      backend.KV
	}{
		{fixture, backend.KVF16}, {fixture, backend.KVQ8}, {"gemma3", backend.KVF16}, {"gemma3", backendtest.Toy()},
		{"mamba2", backend.KVF32}, {"qwen3next", backend.KVF32},
	} {
		t.Run(test.fixture+" "+test.kv.String(), func(t *testing.T) {
			keptAlike(t, test.fixture, 6, func(c *Config) { caches(t, c, test.kv) })
		})
	}
}

// The same on a card without hardware, with room in the host's memory besides.
func TestRecomputeKeptBlocksOfACard(t *testing.T) {
	all, path := ended(5), t.TempDir()
	card := func(c *Config) {
		require.NoError(t, c.Device.Close())
		c.KV, c.Device = backend.KVF16, newCard(t)
	}
	want := alone(t, startFixture(t, fixture, func(c *Config) { wide(c); card(c) }), all, 8)
	for process := range 2 {
		e := startFixture(t, fixture, func(c *Config) { card(c); keeping(t, c, path); c.KVHost = 1 << 20 })
		if process == 0 {
			require.Equal(t, want, alone(t, e, all, 8))
		}
		found(t, e, all, want)
		require.Positive(t, e.Snapshot().KV.Saved+e.Snapshot().KV.Read)
		shut(t, e)
	}
}

// What was answered is in files soon, so that a process that is killed leaves it to the next one.
func TestKeptWithoutAnEnd(t *testing.T) {
	all, path := ended(1), t.TempDir()
	e := startFixture(t, fixture, func(c *Config) { keeping(t, c, path) })
	want := alone(t, e, all, 8)
	e.house.settle(e.tenant)
	next := startFixture(t, fixture, func(c *Config) { keeping(t, c, path) })
	s := begin(t, next, ask(all[0], 8))
	require.Equal(t, want[0], spelled(t, s))
	require.Equal(t, whole(all[0]), s.Usage().Cached, "the first one still runs")
}

// What differs in anything that a block's bytes depend on finds nothing: other weights, another type of cache, another
// salt.
func TestKeptIsToldApart(t *testing.T) {
	all, path := ended(1), t.TempDir()
	e := startFixture(t, fixture, func(c *Config) { keeping(t, c, path) })
	alone(t, e, all, 8)
	shut(t, e)
	for name, edit := range map[string]func(c *Config, r *Request){
		"the same": func(*Config, *Request) {},
		"weights":  func(c *Config, _ *Request) { c.Kept.Weights = "others" },
		"type":     func(c *Config, _ *Request) { c.KV = backend.KVF16 },
		"salt":     func(_ *Config, r *Request) { r.Salt = 3 },
	} {
		t.Run(name, func(t *testing.T) {
			r := ask(all[0], 8)
			e := startFixture(t, fixture, func(c *Config) { keeping(t, c, path); edit(c, &r) })
			s := begin(t, e, r)
			spelled(t, s)
			if name == "the same" {
				require.Equal(t, whole(all[0]), s.Usage().Cached)
			} else {
				require.Zero(t, s.Usage().Cached)
			}
		})
	}
}

// updated is a device whose driver is another one.
type updated struct{ backend.Device }

func (d updated) Traits() backend.Traits {
	t := d.Device.Traits()
	t.Driver += ", updated"
	return t
}

// Types of caches whose blocks are equally large, and drivers, are told apart by name alone.
func TestKindOfKept(t *testing.T) {
	kind := func(kv backend.KV, d backend.Device) string {
		e := startFixture(t, fixture, func(c *Config) { c.KV = kv })
		return e.spec.kind(d)
	}
	d := newDevice(t)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	usual := kind(backend.KVF16, d)
	require.Equal(t, usual, kind(backend.KVF16, d))
	require.NotEqual(t, usual, kind(backend.KVQ8, d))
	require.NotEqual(t, usual, kind(backend.KVF16, updated{d}))
	require.NotEqual(t, kind(backend.KVF16, compose.New(d, d)), kind(backend.KVF16, compose.New(updated{d}, d)))
}

// logLines is a log that a test reads.
type logLines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.all.String(), text)
}

// eachFile calls f for the files of blocks.
func eachFile(t *testing.T, path string, f func(path string)) {
	require.NoError(t, filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			f(path)
		}
		return err
	}))
}

// Whatever becomes of the folder, answers are the same, and the log has a line.
func TestFaultsOfTheFolder(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	all := ended(6)
	want := alone(t, startFixture(t, fixture, wide), all, 8)
	edit := func(change func(b []byte) []byte) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			eachFile(t, path, func(path string) {
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, change(b), 0o600))
			})
		}
	}
	for name, fault := range map[string]func(t *testing.T, path string){
		"bits":      edit(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }),
		"truncated": edit(func(b []byte) []byte { return b[:len(b)-5] }),
		"empty":     edit(func([]byte) []byte { return nil }),
		"removed":   func(t *testing.T, path string) { require.NoError(t, os.RemoveAll(path)) },
		"no folder": func(t *testing.T, path string) {
			require.NoError(t, os.RemoveAll(path))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		},
		"folders": func(t *testing.T, path string) {
			eachFile(t, path, func(path string) {
				require.NoError(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, log := filepath.Join(t.TempDir(), "kv"), &logLines{}
			e := startFixture(t, fixture, func(c *Config) { keeping(t, c, path); c.Log = zerolog.New(log) })
			require.Equal(t, want, alone(t, e, all, 8))
			e.house.settle(e.tenant)
			fault(t, path)
			for range 2 {
				require.Equal(t, want, alone(t, e, all, 8))
			}
			together(t, e, all, want)
			require.Positive(t, log.count("answers go on without them"))
			require.LessOrEqual(t, log.count("answers go on without them"), 1+log.count("again"), log.all.String())
			shut(t, e)
			next := startFixture(t, fixture, func(c *Config) {
				if name == "no folder" {
					require.NoError(t, os.Remove(path))
				}
				keeping(t, c, path)
			})
			require.Equal(t, want, alone(t, next, all, 8))
			shut(t, next)
		})
	}
}

// A folder that is too small has what fits, and never more.
func TestSmallFolder(t *testing.T) {
	all, path := ended(6), t.TempDir()
	want := alone(t, startFixture(t, fixture, wide), all, 8)
	e := startFixture(t, fixture, func(c *Config) {
		keeping(t, c, path)
		folder, err := kvfiles.Open(path, 200<<10, time.Now())
		require.NoError(t, err)
		c.Kept.Folder = folder
	})
	for range 3 {
		require.Equal(t, want, alone(t, e, all, 8))
	}
	require.Positive(t, e.Snapshot().KV.Saved)
	require.LessOrEqual(t, e.spec.kept.Folder.Used(), int64(200<<10))
	shut(t, e)
	total := int64(0)
	eachFile(t, path, func(path string) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		total += info.Size()
	})
	require.LessOrEqual(t, total, int64(200<<10))
	require.Positive(t, total)
}

// Files outlive every actor: what they hold is found by the next generation, whoever died.
func TestFilesOutliveActors(t *testing.T) {
	all := ended(6)
	want := alone(t, startFixture(t, fixture, wide), all, 8)
	for _, victim := range []string{"device", "scheduler", "sampler", "mover", "kv"} {
		t.Run(victim, func(t *testing.T) {
			path := t.TempDir()
			e := startFixture(t, fixture, func(c *Config) { keeping(t, c, path) })
			require.Equal(t, want, alone(t, e, all, 8))
			e.house.settle(e.tenant)
			e.crash(victim)
			require.Eventually(t, func() bool { return e.Snapshot().KV.Cached == 0 }, patient, time.Millisecond)
			require.Equal(t, want, alone(t, e, all, 8))
			found(t, e, all, want)
		})
	}
}

// Law Survive, with everything at once, while blocks go to files and come back.
func TestSurviveChaosOfFiles(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	path := t.TempDir()
	survive(t, fixture, slices.Concat(ofModel, ofHouse), func(c *Config) {
		folder, err := kvfiles.Open(path, 64<<20, time.Now())
		require.NoError(t, err)
		c.Kept = Kept{Folder: folder, Weights: "fixture"}
	})
}

// After a write failed, the device is not asked for copies for a while.
func TestNothingIsCopiedForAFolderThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &cacheMemory{kept: kept{log: zerolog.Nop()}}
		m := &move{all: []kv.Move{{To: kv.Disk, Text: &kv.Text{}}}}
		require.ErrorIs(t, x.move(m), errNotCompiled, "it asks the device")
		x.kept.tell(true, []error{nil, fs.ErrPermission})
		require.NoError(t, x.move(m))
		require.Equal(t, []error{fs.ErrPermission}, m.files)
		time.Sleep(unfitFor)
		require.ErrorIs(t, x.move(m), errNotCompiled)
		x.kept.tell(true, []error{kvfiles.ErrFull})
		require.ErrorIs(t, x.move(m), errNotCompiled, "others have the room")
	})
}
