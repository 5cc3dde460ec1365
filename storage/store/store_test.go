package store

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/safefile"
)

// content is a file's bytes, which differ in every part.
func content(seed string, size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "%s %d\n", seed, i)
	}
	return b.Bytes()[:size]
}

// model is a manifest and what its files hold.
type model struct {
	Manifest
	data    map[Digest][]byte
	written *atomic.Int64 // bytes
}

// invent makes a model whose files hold their names, and more.
func invent(t testing.TB, name string, size int, files ...string) *model {
	t.Helper()
	n, err := ParseName(name)
	require.NoError(t, err)
	m := &model{Manifest{Name: n.tagged().Full(), Source: "https://hub.test", Revision: "r1",
		Pulled: time.Date(2026, 11, 23, 1, 2, 3, 0, time.UTC)}, map[Digest][]byte{}, new(atomic.Int64)}
	for _, f := range files {
		data := content(f, size)
		m.data[DigestOf(data)] = data
		m.Files = append(m.Files, File{Weights, f, int64(size), DigestOf(data)})
	}
	return m
}

// bring does a pull of what is missing, without Commit.
func (m *model) bring(s *Store) (*Pull, error) {
	ctx := context.Background()
	p, err := s.Begin(ctx, m.Manifest)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		part, err := p.Partial(ctx, f, nil)
		if err != nil {
			return p, err
		}
		if part == nil {
			continue
		}
		for i := part.Pieces() - 1; i >= 0; i-- {
			if from, to := part.At(i); !part.Has(i) {
				m.written.Add(to - from)
				if err := part.Write(m.data[f.Digest][from:to], from); err != nil {
					return p, err
				}
				if err := part.Done(i); err != nil {
					return p, err
				}
			}
		}
		if err := part.Commit(); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (m *model) pull(t testing.TB, s *Store) {
	t.Helper()
	p, err := m.bring(s)
	require.NoError(t, err)
	defer p.Close()
	require.NoError(t, p.Commit(context.Background()))
}

func open(t testing.TB) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "new", "store"))
	require.NoError(t, err)
	return s
}

// tree lists what is in a store, but for what is always there.
func tree(t testing.TB, s *Store) (all []string) {
	t.Helper()
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(s.dir, path); err == nil && !d.IsDir() && rel != lockFile && rel != markFile {
			all = append(all, filepath.ToSlash(rel))
		}
		return err
	})
	require.NoError(t, err)
	return all
}

func name(t testing.TB, text string) Name {
	t.Helper()
	n, err := ParseName(text)
	require.NoError(t, err)
	return n
}

func TestPullListResolveRemove(t *testing.T) {
	s, ctx := open(t), context.Background()
	list, err := s.List()
	require.NoError(t, err)
	require.Empty(t, list)
	require.NoDirExists(t, s.Dir(), "reading makes nothing")
	_, err = s.Resolve("Ann/Small-GGUF")
	require.EqualError(t, err, "Ann/Small-GGUF is not in the store ("+s.Dir()+"), which sluice list shows: get it with sluice pull Ann/Small-GGUF")

	q4 := invent(t, "Ann/Small-GGUF:Q4_K_M", 100, "small-Q4_K_M.gguf")
	split := invent(t, "Ann/Small-GGUF:Q8_0", 300_000, "small-Q8_0-00001-of-00002.gguf", "small-Q8_0-00002-of-00002.gguf")
	split.pull(t, s)
	q4.pull(t, s)
	for text, want := range map[string]string{
		"Ann/Small-GGUF":              "small-Q4_K_M.gguf",
		"hf.co/ann/small-gguf:q4_k_m": "small-Q4_K_M.gguf",
		"Ann/Small-GGUF:Q8_0":         "small-Q8_0-00001-of-00002.gguf",
	} {
		path, err := s.Resolve(text)
		require.NoError(t, err, text)
		require.Equal(t, want, filepath.Base(path), text)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, content(want, len(data)), data)
		require.FileExists(t, strings.Replace(path, "00001-of", "00002-of", 1), "parts lie side by side")
	}
	list, err = s.List()
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "Ann/Small-GGUF:Q4_K_M", list[0].Name.String())
	require.Equal(t, split.Files, list[1].Files)
	require.EqualValues(t, 600_000, list[1].Size())

	_, err = s.Remove(ctx, name(t, "Ann/Small-GGUF"))
	require.EqualError(t, err, "there are Ann/Small-GGUF:Q4_K_M and Ann/Small-GGUF:Q8_0: say which is to go")
	freed, err := s.Remove(ctx, name(t, "ann/small-gguf:q8_0"))
	require.NoError(t, err)
	require.EqualValues(t, 600_000, freed)
	freed, err = s.Remove(ctx, name(t, "Ann/Small-GGUF"))
	require.NoError(t, err)
	require.EqualValues(t, 100, freed)
	require.Empty(t, tree(t, s))
	_, err = s.Remove(ctx, name(t, "Ann/Small-GGUF"))
	require.ErrorAs(t, err, new(*Absent))
	entries, err := os.ReadDir(s.path(modelsFolder))
	require.NoError(t, err)
	require.Empty(t, entries, "empty folders go with the last name in them")
}

func TestCopySharesFiles(t *testing.T) {
	s, ctx := open(t), context.Background()
	m := invent(t, "llama3.2:1b", 1000, "llama3.2-1b.gguf")
	m.pull(t, s)
	before := tree(t, s)
	require.NoError(t, s.Copy(ctx, name(t, "llama3.2:1b"), name(t, "mine"), false))
	require.Len(t, tree(t, s), len(before)+1, "one manifest more, and nothing else")
	require.ErrorContains(t, s.Copy(ctx, name(t, "llama3.2:1b"), name(t, "mine"), false), "mine is there already: sluice rm mine")
	require.ErrorContains(t, s.Copy(ctx, name(t, "llama3.2:1b"), name(t, "Mine"), false), "mine is there already")
	require.NoError(t, s.Copy(ctx, name(t, "llama3.2:1b"), name(t, "MINE"), true), "it replaces the one of that name")
	require.Len(t, tree(t, s), len(before)+1)
	require.ErrorAs(t, s.Copy(ctx, name(t, "none"), name(t, "other"), false), new(*Absent))

	freed, err := s.Remove(ctx, name(t, "llama3.2:1b"))
	require.NoError(t, err)
	require.Zero(t, freed)
	path, err := s.Resolve("mine")
	require.NoError(t, err)
	require.FileExists(t, path)
	freed, err = s.Remove(ctx, name(t, "mine:latest"))
	require.NoError(t, err)
	require.EqualValues(t, 1000, freed)
	require.Empty(t, tree(t, s))
}

// What a pull has brought is kept when its process ends, and the next one goes on with it.
func TestPullGoesOn(t *testing.T) {
	s, ctx := open(t), context.Background()
	m := invent(t, "a/b:Q8_0", 1_000_000, "b.gguf")
	p, err := s.Begin(ctx, m.Manifest)
	require.NoError(t, err)
	part, err := p.Partial(ctx, m.Files[0], nil)
	require.NoError(t, err)
	require.Equal(t, 16, part.Pieces())
	from, to := part.At(3)
	require.NoError(t, part.Write(m.data[m.Files[0].Digest][from:to], from))
	require.NoError(t, part.Done(3))
	require.NoError(t, part.Done(3), "twice is once")
	require.ErrorContains(t, part.Commit(), "piece 0 of 16 is missing")
	require.NoError(t, p.Close())

	unfinished, err := s.Unfinished()
	require.NoError(t, err)
	require.Len(t, unfinished, 1)
	require.Equal(t, to-from, s.Arrived(&unfinished[0].Manifest))
	_, err = s.Resolve("a/b")
	require.ErrorAs(t, err, new(*Absent))

	p, err = s.Begin(ctx, m.Manifest)
	require.NoError(t, err)
	part, err = p.Partial(ctx, m.Files[0], nil)
	require.NoError(t, err)
	for i := range part.Pieces() {
		require.Equal(t, i == 3, part.Has(i), i)
	}
	require.Error(t, part.Write([]byte("xx"), 999_999), "past the end")
	require.NoError(t, part.Close())
	require.NoError(t, p.Close())
	m.pull(t, s)
	unfinished, err = s.Unfinished()
	require.NoError(t, err)
	require.Empty(t, unfinished)
	require.Len(t, tree(t, s), 3, "blob, manifest, link: %v", tree(t, s))

	// One that is not wanted any more goes as models do.
	other := invent(t, "a/c:Q8_0", 1_000_000, "c.gguf")
	p, err = s.Begin(ctx, other.Manifest)
	require.NoError(t, err)
	_, err = p.Partial(ctx, other.Files[0], nil)
	require.NoError(t, err)
	_, err = s.Remove(ctx, name(t, "a/c"))
	require.EqualError(t, err, "a/c:Q8_0 is being pulled: stop that first")
	require.NoError(t, p.Close())
	_, err = s.Remove(ctx, name(t, "a/c"))
	require.NoError(t, err)
	require.Len(t, tree(t, s), 3)

	// What a process leaves that is killed just before it has ended goes with the next change.
	require.NoError(t, os.WriteFile(s.path(partsFolder, m.Files[0].Digest.file()+piecesSuffix), nil, 0o644))
	require.NoError(t, s.Copy(ctx, name(t, "a/b"), name(t, "again"), false))
	_, err = s.Remove(ctx, name(t, "again"))
	require.NoError(t, err)
	require.Len(t, tree(t, s), 3)
}

// A file that is not what it should be leaves nothing, and hurts nobody.
func TestWrongContent(t *testing.T) {
	s := open(t)
	good := invent(t, "a/good:Q8_0", 5000, "good.gguf")
	good.pull(t, s)
	before := tree(t, s)
	bad := invent(t, "a/bad:Q8_0", 5000, "bad.gguf")
	bad.data[bad.Files[0].Digest] = content("other", 5000)
	p, err := bad.bring(s)
	require.ErrorAs(t, err, new(*WrongContent))
	require.ErrorContains(t, err, "want "+string(bad.Files[0].Digest))
	require.Error(t, p.Commit(context.Background()))
	require.NoError(t, p.Abandon(context.Background()))
	require.NoError(t, p.Close())
	require.Equal(t, before, tree(t, s))
}

// A new revision replaces the old one, and its files.
func TestPullReplaces(t *testing.T) {
	s := open(t)
	invent(t, "a/b:Q8_0", 5000, "old.gguf").pull(t, s)
	invent(t, "a/b:Q8_0", 6000, "new.gguf").pull(t, s)
	path, err := s.Resolve("a/b")
	require.NoError(t, err)
	require.Equal(t, "new.gguf", filepath.Base(path))
	require.Len(t, tree(t, s), 3, "%v", tree(t, s))
}

// Pulls of one file at once bring it once, and removing others meanwhile takes nothing from them.
func TestPullsAtOnce(t *testing.T) {
	s := open(t)
	m := invent(t, "a/b:Q8_0", 3_000_000, "b.gguf")
	again := invent(t, "a/c:Q8_0", 3_000_000, "b.gguf")
	small := invent(t, "a/d:Q8_0", 10, "d.gguf")
	var wg sync.WaitGroup
	again.written = m.written
	for _, m := range []*model{m, m, again} {
		wg.Go(func() {
			p, err := m.bring(s)
			if err == nil {
				err = p.Commit(context.Background())
			}
			if err != nil {
				t.Error(err)
				return
			}
			p.Close()
		})
	}
	for range 5 {
		small.pull(t, s)
		_, err := s.Remove(context.Background(), name(t, "a/d"))
		require.NoError(t, err)
	}
	wg.Wait()
	require.EqualValues(t, 3_000_000, m.written.Load(), "each byte once")
	require.Len(t, tree(t, s), 4, "one blob, two manifests, one link: %v", tree(t, s))
}

func TestPartialWaitsAndGivesUp(t *testing.T) {
	s, ctx := open(t), context.Background()
	m := invent(t, "a/b:Q8_0", 1000, "b.gguf")
	p, err := s.Begin(ctx, m.Manifest)
	require.NoError(t, err)
	defer p.Close()
	part, err := p.Partial(ctx, m.Files[0], nil)
	require.NoError(t, err)
	stopped, stop := context.WithCancel(ctx)
	stop()
	_, err = p.Partial(stopped, m.Files[0], nil)
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, part.Close())
}

// A folder that is not a store stays as it is.
func TestOpenRefusesOtherFolders(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, blobsFolder), 0o755))
	_, err := Open(dir)
	require.ErrorContains(t, err, "is no store of models, and not empty: name another folder by SLUICE_STORE")
	require.NoError(t, os.WriteFile(filepath.Join(dir, markFile), []byte("sluice store 2\n"), 0o600))
	_, err = Open(dir)
	require.ErrorContains(t, err, `says "sluice store 2\n", want "sluice store 1\n": the store belongs to another version`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, markFile), []byte(markText), 0o600))
	_, err = Open(dir)
	require.NoError(t, err)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = Open(file)
	require.Error(t, err)
}

// A manifest that cannot be read is shown, can be removed, and nothing is thrown away before.
func TestDamagedManifest(t *testing.T) {
	s, ctx := open(t), context.Background()
	invent(t, "a/b:Q8_0", 1000, "b.gguf").pull(t, s)
	invent(t, "a/c:Q8_0", 1000, "c.gguf").pull(t, s)
	require.NoError(t, safefile.Write(s.manifestAt(name(t, "a/b:Q8_0")), []byte(`{"version": 1}`), 0o644, true))
	list, err := s.List()
	require.NoError(t, err)
	require.ErrorContains(t, list[0].Damage, "sluice rm a/b:Q8_0, and pull it again")
	_, err = s.Resolve("a/b")
	require.EqualError(t, err, list[0].Damage.Error())
	_, err = s.Remove(ctx, name(t, "a/c"))
	require.ErrorContains(t, err, "sluice rm a/b:Q8_0")
	require.FileExists(t, s.blob(DigestOf(content("b.gguf", 1000))))
	_, err = s.Remove(ctx, name(t, "a/b"))
	require.NoError(t, err)
	require.Empty(t, tree(t, s))
}

// Files that are gone or cut are noticed by their size, and the next pull mends them.
func TestResolveNoticesMissingFiles(t *testing.T) {
	s := open(t)
	m := invent(t, "a/b:Q8_0", 1000, "b.gguf")
	m.pull(t, s)
	blob := s.blob(m.Files[0].Digest)
	require.NoError(t, os.Chmod(blob, 0o644))
	require.NoError(t, os.Truncate(blob, 10))
	_, err := s.Resolve("a/b")
	require.ErrorContains(t, err, "has 10 bytes, want 1000: sluice pull a/b:Q8_0 mends it")
	require.NoError(t, os.Remove(blob))
	_, err = s.Resolve("a/b")
	require.ErrorContains(t, err, "is gone: sluice pull a/b:Q8_0 mends it")
	m.pull(t, s)
	path, err := s.Resolve("a/b")
	require.NoError(t, err)
	require.NoError(t, os.Remove(path), "the link alone")
	_, err = s.Resolve("a/b")
	require.ErrorContains(t, err, "is gone: sluice pull a/b:Q8_0 mends it")
	m.pull(t, s)
	_, err = s.Resolve("a/b")
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(filepath.Dir(path)))
	m.pull(t, s)
	_, err = s.Resolve("a/b")
	require.NoError(t, err)
}

func TestNoRoomSays(t *testing.T) {
	require.EqualError(t, &NoRoom{Needed: 9 << 29, Free: 300 << 10, Store: "/s"}, "it takes 4.5 GiB, and /s has room for 0.3 MiB: "+
		"make room (sluice list, sluice rm), or name a folder on another disk by SLUICE_STORE")
}
