package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestStoreMachine: after any sequence of pulls that end, fail or die, copies and removals, a store has exactly the
// models that it should, all their bytes, and nothing that no model or unfinished pull needs.
func TestStoreMachine(t *testing.T) {
	base, few := t.TempDir(), testing.Short()
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		if runs++; few && runs > 10 { // each waits for the disk some hundred times
			return
		}
		s, err := Open(filepath.Join(base, fmt.Sprint(runs)))
		require.NoError(rt, err)
		m := &machine{t: t, s: s, have: map[Name]*model{}, dead: map[Name]*model{}}
		rt.Repeat(map[string]func(*rapid.T){
			"pull": m.pull, "die": m.die, "abandon": m.abandon, "copy": m.copy, "remove": m.remove, "": m.check,
		})
		require.NoError(rt, os.RemoveAll(s.dir))
	})
}

// machine is what a store should be.
type machine struct {
	t    *testing.T
	s    *Store
	have map[Name]*model // by their names
	dead map[Name]*model // pulls whose process has ended
}

// some draws a model: few names and few files, so that they meet.
func (m *machine) some(t *rapid.T) (*model, Name) {
	name := rapid.SampledFrom([]string{"a/b:Q8_0", "a/b:Q4_K_M", "a/c:Q8_0", "small"}).Draw(t, "name")
	files := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x.gguf", "y.gguf", "z.gguf"}), 1, 2,
		func(s string) string { return s }).Draw(t, "files")
	x := invent(m.t, name, 100_000, files...)
	n, err := x.Named()
	require.NoError(t, err)
	return x, n
}

func (m *machine) pull(t *rapid.T) {
	x, name := m.some(t)
	p, err := x.bring(m.s)
	require.NoError(t, err)
	require.NoError(t, p.Commit(context.Background()))
	require.NoError(t, p.Close())
	m.have[name] = x
	delete(m.dead, name)
}

// die ends a pull as the end of its process does: locks are gone, files stay.
func (m *machine) die(t *rapid.T) {
	x, name := m.some(t)
	p, err := m.s.Begin(context.Background(), x.Manifest)
	require.NoError(t, err)
	for _, f := range x.Files[:rapid.IntRange(0, len(x.Files)).Draw(t, "begun")] {
		part, err := p.Partial(context.Background(), f, nil)
		require.NoError(t, err)
		if part == nil {
			continue
		}
		from, to := part.At(0)
		require.NoError(t, part.Write(x.data[f.Digest][from:to], from))
		require.NoError(t, part.Done(0))
		require.NoError(t, part.Close())
	}
	require.NoError(t, p.Close())
	m.dead[name] = x
}

func (m *machine) abandon(t *rapid.T) {
	x, name := m.some(t)
	p, err := x.bring(m.s)
	require.NoError(t, err)
	require.NoError(t, p.Abandon(context.Background()))
	require.NoError(t, p.Close())
	delete(m.dead, name)
}

func (m *machine) copy(t *rapid.T) {
	_, from := m.some(t)
	_, to := m.some(t)
	err := m.s.Copy(context.Background(), from, to, false)
	switch {
	case m.have[from] == nil:
		require.ErrorAs(t, err, new(*Absent))
	case m.have[to] != nil:
		require.ErrorContains(t, err, "is there already")
	default:
		require.NoError(t, err)
		m.have[to] = m.have[from]
	}
}

func (m *machine) remove(t *rapid.T) {
	_, name := m.some(t)
	_, err := m.s.Remove(context.Background(), name)
	if m.have[name] == nil && m.dead[name] == nil {
		require.ErrorAs(t, err, new(*Absent))
		return
	}
	require.NoError(t, err)
	delete(m.have, name)
	delete(m.dead, name)
}

func (m *machine) check(t *rapid.T) {
	list, err := m.s.List()
	require.NoError(t, err)
	require.Len(t, list, len(m.have))
	blobs, views, wanted := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, x := range m.dead {
		views[x.view()] = true
		for _, f := range x.Files {
			wanted[f.Digest.file()] = true
		}
	}
	for i := range list {
		x := m.have[list[i].Name]
		require.NotNil(t, x, list[i].Name)
		require.NoError(t, list[i].Damage)
		path, err := m.s.Path(&list[i])
		require.NoError(t, err)
		for _, f := range x.Files {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(path), f.Name))
			require.NoError(t, err)
			require.Equal(t, f.Digest, DigestOf(data))
			blobs[f.Digest.file()] = true
		}
		views[x.view()] = true
	}
	for _, name := range folder(t, m.s, blobsFolder) {
		require.True(t, blobs[name] || wanted[name], "%s is of no use", name)
	}
	require.Subset(t, folder(t, m.s, blobsFolder), slices.Collect(maps.Keys(blobs)))
	for _, name := range folder(t, m.s, viewsFolder) {
		require.True(t, views[name], "%s is of no use", name)
	}
	for _, name := range folder(t, m.s, partsFolder) {
		name = name[:len("sha256-")+64]
		require.True(t, wanted[name], "%s is of no use", name)
	}
	require.Len(t, folder(t, m.s, pullsFolder), len(m.dead))
}

func folder(t require.TestingT, s *Store, name string) (names []string) {
	entries, err := os.ReadDir(s.path(name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(t, err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
