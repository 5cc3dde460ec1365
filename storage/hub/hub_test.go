package hub

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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

func TestProjector(t *testing.T) {
	for want, paths := range map[string][]string{
		"":                    {"a.gguf", "mmproj.txt", "x-mmproj-F16.gguf"},
		"mmproj.gguf":         {"mmproj.gguf"},
		"mmproj-BF16.gguf":    {"mmproj.gguf", "mmproj-Q8_0.gguf", "mmproj-BF16.gguf"},
		"d/mmproj-x-f16.gguf": {"mmproj-F32.gguf", "mmproj-BF16.gguf", "d/mmproj-x-f16.gguf"},
	} {
		require.Equal(t, want, Projector(paths))
	}
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
	for text, want := range map[string]string{
		"small":                "small: " + h.URL + "/v2/library/small/manifests/latest answers 404 Not Found: manifest unknown: the registry has no such model",
		"ollama.com/ann/tuned": "it is made of another model and an adapter, which sluice cannot apply",
	} {
		_, err := c.Pull(context.Background(), s, named(t, text))
		require.ErrorContains(t, err, want)
	}
}

// TestPullCutTenTimes: connections break at random, and the pull ends at random, ten times each; what has come is kept.
func TestPullCutTenTimes(t *testing.T) {
	for _, ranges := range []bool{true, false} {
		h, s, c := fixture(t)
		h.NoRanges, h.Uses = !ranges, 7
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		var mu sync.Mutex
		cuts := 10
		h.Cut = func(length int64) int64 {
			mu.Lock()
			defer mu.Unlock()
			if cuts == 0 || random.IntN(3) > 0 {
				return -1
			}
			cuts--
			return random.Int64N(length)
		}
		const size = 3_000_000
		if !ranges {
			h.Cut = nil // each would begin again
		}
		kept := int64(0)
		for range 10 {
			ctx, cancel := context.WithCancel(context.Background())
			mu.Lock()
			stop, begun := random.Int64N(size/10), int64(-1)
			mu.Unlock()
			c.Progress = func(p Progress) {
				if begun < 0 {
					begun = p.Done
				}
				if p.Done >= begun+stop {
					cancel()
				}
			}
			_, err := c.Pull(ctx, s, named(t, "Ann/Small-GGUF:Q8_0"))
			if err != nil {
				require.ErrorIs(t, err, context.Canceled)
			}
			cancel()
			now := arrived(t, s)
			require.GreaterOrEqual(t, now, kept, "what has come is kept")
			kept = now
		}
		c.Progress = nil
		got, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
		require.NoError(t, err)
		same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])
		require.Len(t, files(t, s), 3, "%v", files(t, s))
		if ranges && !got.Fresh {
			require.Positive(t, kept)
			require.EqualValues(t, size-kept, got.Received, "and does not come again")
		}
	}
}

// arrived is how much is there of the only model, complete or not.
func arrived(t testing.TB, s *store.Store) int64 {
	t.Helper()
	all, err := s.List()
	require.NoError(t, err)
	unfinished, err := s.Unfinished()
	require.NoError(t, err)
	all = append(all, unfinished...)
	require.NotEmpty(t, all)
	return s.Arrived(&all[0].Manifest)
}

// Connections that break lose nothing within one pull.
func TestPullGoesOnWhereConnectionsBroke(t *testing.T) {
	h, s, c := fixture(t)
	n := 0
	var mu sync.Mutex
	h.Cut = func(length int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		if n++; n > 10 {
			return -1
		}
		return length / 3
	}
	got, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.NoError(t, err)
	require.EqualValues(t, 3_000_000, got.Received)
	same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])

	h.Change(func(s *hubtest.Settings) { s.Cut = func(int64) int64 { return 0 } })
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q4_K_M"))
	require.ErrorContains(t, err, "the connection ended at byte", "a hub that sends nothing is given up")
}

// TestPullThatGoesOnIsNotGivenUp: a hub that breaks every connection off, but sends something on each, is asked more
// often in a row than one that sends nothing.
func TestPullThatGoesOnIsNotGivenUp(t *testing.T) {
	h, s, c := fixture(t)
	h.Cut = func(length int64) int64 {
		if length < 10_000 {
			return -1
		}
		return length / 3
	}
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.NoError(t, err)
	require.Greater(t, h.Requests.Load(), int64(2*tries*connections), "interruptions")
	same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])
}

// Two pulls of one model, and of others with the same file, fetch each byte once.
func TestPullsAtOnce(t *testing.T) {
	h, s, c := fixture(t)
	h.Slow = 2 * time.Millisecond
	h.Repositories["Bob/Again"] = map[string][]byte{"x.gguf": h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"]}
	var wg sync.WaitGroup
	for _, name := range []string{"Ann/Small-GGUF:Q8_0", "Ann/Small-GGUF:Q8_0", "Bob/Again"} {
		wg.Go(func() {
			own := *c
			if _, err := own.Pull(context.Background(), s, named(t, name)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 3_000_000, h.Sent.Load())
	require.Len(t, files(t, s), 5, "one blob, two names, two links: %v", files(t, s))
}

func TestWrongChecksum(t *testing.T) {
	h, s, c := fixture(t)
	small := h.Repositories["Ann/Small-GGUF"]
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q4_K_M"))
	require.NoError(t, err)
	before := files(t, s)
	wrong := bytes.Clone(small["F16/small-F16-00002-of-00003.gguf"])
	wrong[500_000] ^= 1
	h.Change(func(s *hubtest.Settings) {
		s.Content[hubtest.Digest(small["F16/small-F16-00002-of-00003.gguf"])] = wrong
	})
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:F16"))
	require.ErrorAs(t, err, new(*store.WrongContent))
	require.ErrorContains(t, err, "small-F16-00002-of-00003.gguf: what came has the checksum sha256:"+hubtest.Digest(wrong))
	require.Equal(t, before, files(t, s), "nothing is left")
	h.Change(func(s *hubtest.Settings) { clear(s.Content) })
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:F16"))
	require.NoError(t, err)
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

func TestToken(t *testing.T) {
	h, s, c := fixture(t)
	c.Token = hubtest.Token
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.NoError(t, err)
	require.Zero(t, h.Leaked.Load(), "the server of the files got the token")
	_, err = c.Pull(context.Background(), s, named(t, "Ann/None"))
	require.ErrorContains(t, err, "answers 404 Not Found: Repository not found: there is no such model: check the name")
	c.Token = "hf_wrong"
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.ErrorContains(t, err, "(HF_TOKEN's, or that of hf auth login) may not read it: ask for access at "+h.URL+"/Ann/Private")
	require.NotContains(t, err.Error(), "hf_wrong")
	c.Endpoint = "http://192.0.2.1"
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.ErrorContains(t, err, "is not secure, and anybody on the way could read the token")
}

// The token of the Hub's own login goes to huggingface.co, and nowhere else; one that was given goes first.
func TestLogin(t *testing.T) {
	for _, c := range []struct{ endpoint, token, want string }{
		{"", "", "login"}, {"https://huggingface.co/", "", "login"}, {"", "given", "given"},
		{"https://hf-mirror.example", "", ""}, {"http://huggingface.co", "", ""}, {"https://huggingface.co/mirror", "", ""},
		{"https://huggingface.co:444", "", ""}, {"https://mirror.example", "given", "given"},
	} {
		client := &Client{Endpoint: c.endpoint, Token: c.token, Login: "login"}
		base, err := client.endpoint(named(t, "Ann/X"))
		require.NoError(t, err)
		require.Equal(t, c.want, client.tokenFor(base), c.endpoint)
	}
	h, s, c := fixture(t)
	c.Login = hubtest.Token
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Private"))
	require.ErrorContains(t, err, "answers 401", "this hub is not huggingface.co")
	require.Zero(t, h.Leaked.Load())
}

// TestGated: a hub that tells of a model and refuses its files says so at the files. Nothing is left then.
func TestGated(t *testing.T) {
	h, s, c := fixture(t)
	h.Fault = func(r *http.Request) int {
		if strings.Contains(r.URL.Path, "/resolve/") {
			return http.StatusUnauthorized
		}
		return 0
	}
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF"))
	require.ErrorContains(t, err, "accept its conditions at "+h.URL+"/Ann/Small-GGUF, make a token at "+
		"https://huggingface.co/settings/tokens, and give it by HF_TOKEN or hf auth login")
	require.Empty(t, files(t, s))
}

func TestRedirects(t *testing.T) {
	for _, c := range []struct{ from, location, want string }{
		{"https://hub.test/a/b", "/c", "https://hub.test/c"},
		{"https://hub.test/a/b", "https://files.test/c?signature=1", "https://files.test/c?signature=1"},
		{"http://hub.test/a", "https://files.test/c", "https://files.test/c"},
		{"http://hub.test/a", "http://files.test/c", "http://files.test/c"},
		{"https://hub.test/a", "http://files.test/c?signature=1", "https://hub.test/a redirects to http://files.test/c, which is not secure"},
		{"https://hub.test/a", "file:///etc/passwd", "which is no address"},
		{"https://hub.test/a", "ftp://files.test/c", "which is not secure"},
		{"https://hub.test/a?token=x", "", `https://hub.test/a redirects to "", which is no address`},
		{"https://hub.test/a", "https://[", "which is no address"},
		{"http://hub.test/a", "http://me:secret@files.test/c", "redirects to http://files.test/c with a user's name, which is not passed on"},
	} {
		from, err := url.Parse(c.from)
		require.NoError(t, err)
		to, err := next(from, c.location)
		if err != nil {
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "=", "what may be secret")
			require.NotContains(t, err.Error(), "secret")
			continue
		}
		require.Equal(t, c.want, to.String())
	}
	ring := httptest.NewServer(http.RedirectHandler("/again", http.StatusFound))
	defer ring.Close()
	_, s, c := fixture(t)
	c.Endpoint = ring.URL
	_, err := c.Pull(context.Background(), s, named(t, "a/b"))
	require.ErrorContains(t, err, "redirects lead to redirects, more than 10 times")
}

// Addresses of files that expire are asked for again.
func TestExpiredAddresses(t *testing.T) {
	h, s, c := fixture(t)
	h.Uses = 1
	got, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.NoError(t, err)
	require.EqualValues(t, 3_000_000, got.Received)
	same(t, s, "Ann/Small-GGUF:Q8_0", h.Repositories["Ann/Small-GGUF"]["small-Q8_0.gguf"])
}

// A connection on which nothing comes is given up, and another one tried.
func TestStalledServer(t *testing.T) {
	h, s, c := fixture(t)
	var stalled atomic.Int64
	h.Stall = func() bool { return stalled.Add(1) <= 3 }
	c.patience = 500 * time.Millisecond
	_, err := c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF"))
	require.NoError(t, err)
	h.Change(func(s *hubtest.Settings) { s.Stall = func() bool { return true } })
	c.patience = time.Millisecond
	_, err = c.Pull(context.Background(), s, named(t, "Ann/Small-GGUF:Q8_0"))
	require.ErrorContains(t, err, "nothing has come for 1ms")
}

// TestSilentHub: a hub that begins its description of a model and says no more is given up, as one that never answers
// and one that trickles are.
func TestSilentHub(t *testing.T) {
	for how, serve := range map[string]func(http.ResponseWriter, *http.Request){
		"nothing": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"some": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"siblings": [`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"a trickle": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(time.Millisecond)
			}
		},
	} {
		hub := httptest.NewServer(http.HandlerFunc(serve))
		_, s, c := fixture(t)
		c.Endpoint, c.patience = hub.URL, 20*time.Millisecond
		c.wait = func(context.Context, time.Duration) error { return nil }
		_, err := c.Pull(context.Background(), s, named(t, "a/b"))
		hub.Close()
		if how == "a trickle" { // which a busy machine may stop for a while
			require.Regexp(t, "the answer is not there after 200ms|nothing has come for 20ms", err)
			continue
		}
		require.ErrorContains(t, err, "nothing has come for 20ms", how)
	}
}

// A hub that is busy is asked again, as late as it says; one that stays busy is given up.
func TestBusyHub(t *testing.T) {
	h, s, c := fixture(t)
	var waited []time.Duration
	c.wait = func(_ context.Context, d time.Duration) error {
		waited = append(waited, d)
		return nil
	}
	left := 3
	h.Fault = func(*http.Request) int {
		if left--; left >= 0 {
			return []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable}[left]
		}
		return 0
	}
	var told []Wait
	c.Waits = func(w Wait) { told = append(told, w) }
	_, err := c.Pull(context.Background(), s, named(t, "small:1b"))
	require.NoError(t, err)
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, waited)
	host := strings.TrimPrefix(h.URL, "http://")
	require.Equal(t, []Wait{{Host: host}, {host, "answers 503 Service Unavailable", time.Second, 2, tries},
		{host, "answers 502 Bad Gateway", 2 * time.Second, 3, tries},
		{host, "answers 429 Too Many Requests", 4 * time.Second, 4, tries}}, told)
	c.Waits = nil
	h.Change(func(s *hubtest.Settings) {
		s.Fault = func(*http.Request) int { return http.StatusServiceUnavailable }
	})
	asked := h.Asked.Load()
	_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
	require.ErrorContains(t, err, "answers 503 Service Unavailable: told to fail")
	require.EqualValues(t, tries, h.Asked.Load()-asked)
	h.Change(func(s *hubtest.Settings) { s.Fault = func(*http.Request) int { return http.StatusNotImplemented } })
	asked = h.Asked.Load()
	_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
	require.ErrorContains(t, err, "answers 501 Not Implemented: told to fail")
	require.EqualValues(t, 1, h.Asked.Load()-asked, "a hub that cannot do it is not asked again")

	c.Endpoint = "http://127.0.0.1:1"
	_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
	require.ErrorContains(t, err, "http://127.0.0.1:1/v2/library/small/manifests/1b: ")
	for _, endpoint := range []string{"hub", "ftp://hub", "https://", "https://user@hub", "https://hub?x=y", ":"} {
		c.Endpoint = endpoint
		_, err = c.Pull(context.Background(), s, named(t, "small:1b"))
		require.ErrorContains(t, err, "is no address of a hub")
	}
}
