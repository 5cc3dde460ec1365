package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice/storage/hub/hubtest"
	"github.com/sluice-ai/sluice/storage/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// content is a file's bytes, which differ in every part.
func content(seed string, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(data)
	return data
}

// fixture is a hub with models, an empty store, and a client that does not wait.
func fixture(t testing.TB) (*hubtest.Hub, *store.Store, *Client) {
	t.Helper()
	h := hubtest.New()
	t.Cleanup(h.Close)
	h.Repositories["Ann/Small-GGUF"] = map[string][]byte{
		"README.md":                         content("read me", 100),
		"small-Q8_0.gguf":                   content("q8", 3_000_000),
		"small-Q4_K_M.gguf":                 content("q4", 2_000_000),
		"F16/small-F16-00001-of-00003.gguf": content("f16-1", 700_000),
		"F16/small-F16-00002-of-00003.gguf": content("f16-2", 700_001),
		"F16/small-F16-00003-of-00003.gguf": content("f16-3", 5),
	}
	h.Repositories["Ann/Seeing-GGUF"] = map[string][]byte{"see-Q8_0.gguf": content("see", 5000),
		"mmproj-see-BF16.gguf": content("bf16", 900), "mmproj-see-F16.gguf": content("f16", 1000),
		"mmproj-see-F32.gguf": content("f32", 2000)}
	h.Repositories["Ann/Private"] = map[string][]byte{"private.gguf": content("private", 1000)}
	h.Private["Ann/Private"] = true
	h.Repositories["Ann/Tensors"] = map[string][]byte{"model.safetensors": content("x", 10)}
	h.Layers["library/small/1b"] = map[string][]byte{"model": content("o", 1_000_000), "template": []byte("{{ .Prompt }}"),
		"license": []byte("free"), "projector": content("p", 10)}
	h.Layers["ann/tuned/latest"] = map[string][]byte{"model": content("o", 1_000_000), "adapter": content("a", 10)}
	s, err := store.Open(filepath.Join(t.TempDir(), "store"))
	require.NoError(t, err)
	return h, s, &Client{Endpoint: h.URL, wait: func(context.Context, time.Duration) error { return nil }}
}

func named(t testing.TB, text string) store.Name {
	t.Helper()
	n, err := store.ParseName(text)
	require.NoError(t, err)
	return n
}

// same checks that the store has a file as the hub does.
func same(t testing.TB, s *store.Store, name string, want []byte) {
	t.Helper()
	path, err := s.Resolve(name)
	require.NoError(t, err)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, data), "%s has other bytes", path)
}

// files lists what is in a store, but for what is always there.
func files(t testing.TB, s *store.Store) (all []string) {
	t.Helper()
	_ = filepath.WalkDir(s.Dir(), func(path string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(s.Dir(), path); err == nil && !d.IsDir() && rel != "lock" && rel != "sluice-store" {
			all = append(all, filepath.ToSlash(rel))
		}
		return nil
	})
	return all
}

func TestPull(t *testing.T) {
	h, s, c := fixture(t)
	ctx, small := context.Background(), h.Repositories["Ann/Small-GGUF"]
	var last Progress
	c.Progress = func(p Progress) {
		require.LessOrEqual(t, p.Done, p.Total)
		last = p
	}
	got, err := c.Pull(ctx, s, named(t, "Ann/Small-GGUF"))
	require.NoError(t, err)
	require.Equal(t, "hf.co/Ann/Small-GGUF:Q4_K_M", got.Manifest.Name)
	require.Equal(t, hubtest.Commit, got.Manifest.Revision)
	require.Equal(t, h.URL+"/Ann/Small-GGUF", got.Manifest.Source)
	require.EqualValues(t, 2_000_000, got.Received)
	require.EqualValues(t, 2_000_000, h.Sent.Load(), "each byte once")
	require.Equal(t, Progress{Name: named(t, "Ann/Small-GGUF:Q4_K_M"), Digest: got.Manifest.Files[0].Digest,
		Done: 2_000_000, Total: 2_000_000}, last)
	same(t, s, "Ann/Small-GGUF", small["small-Q4_K_M.gguf"])

	got, err = c.Pull(ctx, s, named(t, "ann/small-gguf:q4_k_m"))
	require.ErrorContains(t, err, "answers 401", "a hub tells capitals apart, unless it redirects")
	require.Nil(t, got)
	got, err = c.Pull(ctx, s, named(t, "Ann/Small-GGUF:q4_k_m"))
	require.NoError(t, err)
	require.True(t, got.Fresh)
	require.EqualValues(t, 2_000_000, h.Sent.Load(), "nothing comes twice")

	got, err = c.Pull(ctx, s, named(t, "Ann/Small-GGUF:F16"))
	require.NoError(t, err)
	require.Len(t, got.Manifest.Files, 3, "all parts")
	same(t, s, "Ann/Small-GGUF:F16", small["F16/small-F16-00001-of-00003.gguf"])
	path, err := s.Resolve("Ann/Small-GGUF:F16")
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(path, "/small-F16-00001-of-00003.gguf"), path)
	data, err := os.ReadFile(strings.Replace(path, "00001-of", "00003-of", 1))
	require.NoError(t, err)
	require.Equal(t, small["F16/small-F16-00003-of-00003.gguf"], data)
	require.Zero(t, h.Leaked.Load())
}

// A model that is no GGUF file comes with what is beside its weights, as a folder.
func TestPullFolder(t *testing.T) {
	h, s, c := fixture(t)
	c.Token = hubtest.Token
	h.Private["Ann/Folder"] = true
	repo := map[string][]byte{"model.safetensors": content("weights", 500_000), "config.json": []byte(`{"a": 1}`),
		"tokenizer.json": content("tokens", 200_000), "README.md": content("read me", 10)}
	h.Repositories["Ann/Folder"] = repo
	got, err := c.Pull(context.Background(), s, named(t, "Ann/Folder"))
	require.NoError(t, err)
	require.Equal(t, "hf.co/Ann/Folder:safetensors", got.Manifest.Name)
	require.True(t, got.Manifest.IsFolder())
	folder, err := s.Resolve("Ann/Folder")
	require.NoError(t, err)
	for name, want := range repo {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if name == "README.md" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, data)
	}
	got, err = c.Pull(context.Background(), s, named(t, "Ann/Folder"))
	require.NoError(t, err)
	require.True(t, got.Fresh)
	_, err = s.Remove(context.Background(), named(t, "Ann/Folder"))
	require.NoError(t, err)

	before := files(t, s)
	h.Change(func(s *hubtest.Settings) { s.Content[hubtest.Digest(repo["config.json"])] = []byte(`{"a": 2}`) })
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Folder"))
	require.ErrorContains(t, err, "config.json: what came has 8 bytes and the checksum")
	require.Equal(t, before, files(t, s))
}

// TestPullProjector: a model that sees comes with its tower in halves, beside its file.
func TestPullProjector(t *testing.T) {
	h, s, c := fixture(t)
	got, err := c.Pull(context.Background(), s, named(t, "Ann/Seeing-GGUF"))
	require.NoError(t, err)
	require.Len(t, got.Manifest.Files, 2)
	require.Equal(t, "hf.co/Ann/Seeing-GGUF:Q8_0", got.Manifest.Name)
	require.Equal(t, store.Projector, got.Manifest.Files[1].Role)
	path, err := s.Resolve("Ann/Seeing-GGUF")
	require.NoError(t, err)
	require.Equal(t, "see-Q8_0.gguf", filepath.Base(path))
	tower, err := os.ReadFile(filepath.Join(filepath.Dir(path), "mmproj-see-F16.gguf"))
	require.NoError(t, err)
	require.Equal(t, h.Repositories["Ann/Seeing-GGUF"]["mmproj-see-F16.gguf"], tower)
	again, err := c.Pull(context.Background(), s, named(t, "Ann/Seeing-GGUF"))
	require.NoError(t, err)
	require.True(t, again.Fresh)
}

func TestPullFromOllama(t *testing.T) {
	h, s, c := fixture(t)
	c.Token = hubtest.Token
	got, err := c.Pull(context.Background(), s, named(t, "small:1b"))
	require.NoError(t, err)
	require.Equal(t, "ollama.com/library/small:1b", got.Manifest.Name)
	names := map[store.Role]string{}
	for _, f := range got.Manifest.Files {
		names[f.Role] = f.Name
	}
	require.Equal(t, map[store.Role]string{store.Weights: "small-1b.gguf", store.Projector: "mmproj-small-1b.gguf",
		store.Template: "template", store.License: "license"}, names)
	same(t, s, "small:1b", h.Layers["library/small/1b"]["model"])
	got, err = c.Pull(context.Background(), s, named(t, "small:1b"))
	require.NoError(t, err)
	require.True(t, got.Fresh)
	_, err = c.Pull(context.Background(), s, named(t, "small"))
	require.ErrorContains(t, err, "small: "+h.URL+"/v2/library/small/manifests/latest answers 404 Not Found: manifest unknown: "+
		"the registry has no such model")
	got, err = c.Pull(context.Background(), s, named(t, "ollama.com/ann/tuned"))
	require.NoError(t, err)
	require.Len(t, got.Manifest.Adapters(), 1)
	require.Equal(t, "adapter.gguf", got.Manifest.Adapters()[0].Name)
	paths, err := s.Paths(&got.Manifest, store.Adapter)
	require.NoError(t, err)
	data, err := os.ReadFile(paths[0])
	require.NoError(t, err)
	require.Equal(t, h.Layers["ann/tuned/latest"]["adapter"], data)
}

// What a server sends in place of the right file is an error, whatever it is.
func TestPullRefuses(t *testing.T) {
	digest := func(h *hubtest.Hub) string {
		return hubtest.Digest(h.Repositories["Ann/Small-GGUF"]["small-Q4_K_M.gguf"])
	}
	for _, c := range []struct {
		name, model string
		edit        func(h *hubtest.Hub)
		want        string
	}{
		{"longer", "Ann/Small-GGUF", func(h *hubtest.Hub) { h.Content[digest(h)] = content("x", 2_000_001) },
			"/2000001\", want bytes from "},
		{"longer, without ranges", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.NoRanges, h.NoLength, h.Content[digest(h)] = true, true, content("x", 2_000_001)
		}, "sends more than the 2000000 bytes of the file"},
		{"another length", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.NoRanges, h.Content[digest(h)] = true, content("x", 2_000_001)
		}, "sends 2000001 bytes with status 200, want all 2000000"},
		{"shorter, without ranges", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.NoRanges, h.NoLength, h.Content[digest(h)] = true, true, content("x", 1_999_999)
		}, "the connection ended at byte 1999999 of 2000000"},
		{"another file", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.Alter = func(_, doc string) string { return strings.ReplaceAll(doc, digest(h), strings.Repeat("ab", 32)) }
		}, "the hub has another file of that name now"},
		{"another size", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.Alter = func(_, doc string) string { return strings.ReplaceAll(doc, ":2000000", ":2000001") }
		}, "the hub has 2000000 bytes of it now, want 2000001"},
		{"no checksum", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.Alter = func(_, doc string) string { return strings.ReplaceAll(doc, `"lfs"`, `"none"`) }
		}, "the hub gives no checksum of it"},
		{"huge", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.Alter = func(_, doc string) string { return strings.ReplaceAll(doc, ":2000000", ":17592186044416") }
		}, "it takes 16384.0 GiB"},
		{"no end", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.Alter = func(string, string) string { return strings.Repeat(" ", mostAnswer+1) }
		}, "sends more than 16777216 bytes"},
		{"no JSON", "Ann/Small-GGUF", func(h *hubtest.Hub) { h.Alter = func(string, string) string { return "<html>" } },
			"the hub's answer is not what its API says"},
		{"a path", "Ann/Small-GGUF", func(h *hubtest.Hub) {
			h.Alter = func(_, doc string) string {
				return strings.ReplaceAll(doc, `"small-Q4_K_M.gguf"`, `"../small-Q4_K_M.gguf"`)
			}
		}, `"../small-Q4_K_M.gguf" is no path of a file`},
		{"hidden", "Ann/Small-GGUF:.x", func(*hubtest.Hub) {}, ""},
		{"no GGUF", "Ann/Tensors", func(*hubtest.Hub) {}, "there is no GGUF file among its 1 files"},
		{"none", "Ann/None", func(*hubtest.Hub) {}, "there is no such model, or it wants to know who asks"},
		{"private", "Ann/Private", func(*hubtest.Hub) {}, "give it by HF_TOKEN"},
		{"quantisation", "Ann/Small-GGUF:Q2_K", func(*hubtest.Hub) {}, "there is no Q2_K: there are "},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, s, client := fixture(t)
			c.edit(h)
			n, err := store.ParseName(c.model)
			if c.want == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			_, err = client.Pull(context.Background(), s, n)
			require.ErrorContains(t, err, c.want)
			_, err = s.Resolve(c.model)
			require.Error(t, err)
		})
	}
}
