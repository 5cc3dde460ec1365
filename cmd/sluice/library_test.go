package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/store"
)

// states asks a server which models are loaded.
func (s *serving) states(t *testing.T) map[string]string {
	t.Helper()
	r, err := http.Get(s.url + "/v1/models")
	require.NoError(t, err)
	defer r.Body.Close()
	var list struct {
		Data []struct {
			ID     string
			Status struct{ Value string }
		}
	}
	require.NoError(t, json.NewDecoder(r.Body).Decode(&list))
	all := map[string]string{}
	for _, m := range list.Data {
		all[m.ID] = m.Status.Value
	}
	return all
}

// asks has a model add up, and returns the status and what it said.
func (s *serving) asks(t *testing.T, model string) (int, string) {
	t.Helper()
	body := fmt.Sprintf(`{"model": %q, "temperature": 0, "messages": [{"role": "user", "content": "12 + 30"}]}`, model)
	r, err := http.Post(s.url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer r.Body.Close()
	said, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(said)
}

// TestServeFolder: models of a folder are loaded when they are asked for, by name and in the memory that there is.
func TestServeFolder(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	for _, name := range []string{"a.gguf", "b.gguf", "c.gguf"} {
		write(name, mini.GGUF)
	}
	write("bad.gguf", []byte("GGUF, but no more"))
	write("notes.txt", nil)
	write("mmproj-a.gguf", nil)
	ram := fmt.Sprintf("%dK", 5*len(mini.GGUF)/2>>10) // two of them fit
	s := launch(t, "--models", dir, "--ram", ram, "--ctx", "256", "--log", "error")
	absent := map[string]string{"a": "unloaded", "b": "unloaded", "c": "unloaded", "bad": "unloaded"}
	require.Equal(t, absent, s.states(t))

	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			name := string("abc"[i%3])
			status, said := s.asks(t, name)
			if status != http.StatusOK || !strings.Contains(said, "12 + 30 = 42.") || !strings.Contains(said, `"model":"`+name+`"`) {
				t.Errorf("%s: %d %s", name, status, said)
			}
		})
	}
	all.Wait()
	loaded := 0
	for _, state := range s.states(t) {
		if state == "loaded" {
			loaded++
		}
	}
	require.Equal(t, 2, loaded, "%v", s.states(t))

	status, said := s.asks(t, "bad")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, said, `"code":"model_failed"`)
	require.Contains(t, said, `the model \"bad\" cannot be loaded: its file is no model that can be run: the log says why`)
	for _, name := range []string{"../a", "a.gguf", filepath.Join(dir, "a.gguf"), "notes", "mmproj-a", "A"} {
		status, said := s.asks(t, name)
		require.Equal(t, http.StatusNotFound, status, "%s: %s", name, said)
	}
	status, _ = s.asks(t, "a")
	require.Equal(t, http.StatusOK, status, "it still answers")
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
	require.Contains(t, s.stderr.String(), "the model cannot be loaded")
	require.Contains(t, s.stderr.String(), filepath.Join(dir, "bad.gguf"))
}

// TestServeUnloadable: a server whose only model cannot be loaded says so of its health, until it can.
func TestServeUnloadable(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "only.gguf")
	require.NoError(t, os.WriteFile(path, []byte("root:x:0:0"), 0o600))
	s := launch(t, "--models", dir, "--ctx", "256", "--log", "error")
	health := func() (int, string) {
		r, err := http.Get(s.url + "/health")
		require.NoError(t, err)
		defer r.Body.Close()
		said, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		return r.StatusCode, string(said)
	}
	status, said := health()
	require.Equal(t, http.StatusOK, status, said)
	for range 2 {
		status, said = s.asks(t, "only")
		require.Equal(t, http.StatusServiceUnavailable, status, said)
		require.NotContains(t, said, "root")
		require.NotContains(t, said, dir)
		status, said = health()
		require.Equal(t, http.StatusServiceUnavailable, status, said)
		require.Contains(t, said, `"code":"model_failed"`)
		require.NotContains(t, said, "root")
	}
	require.NoError(t, os.WriteFile(path, mini.GGUF, 0o600))
	status, said = s.asks(t, "only")
	require.Equal(t, http.StatusOK, status, said)
	status, said = health()
	require.Equal(t, http.StatusOK, status, said)
}

// TestServeTheStore: without a model that is named, what was pulled is served; what is named is served alone.
func TestServeTheStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	kept, err := store.Open(dir)
	require.NoError(t, err)
	in := func(e *env.Env) { e.Lookup = envtest.InStore(dir).Lookup }
	s := launchWith(t, in, "--ctx", "256")
	require.Equal(t, map[string]string{"Sluice-Mini-Dense": "loaded"}, s.states(t), "the store is empty")
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
	envtest.KeepMini(t, kept, "ollama.com/library/mine:latest")
	s = launchWith(t, in, "--ctx", "256")
	require.Equal(t, map[string]string{"mine": "unloaded"}, s.states(t))
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
	s = launchWith(t, in, "--ctx", "256", "--name", "toy")
	require.Equal(t, map[string]string{"toy": "loaded"}, s.states(t))
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}

// TestNamesOfAnyBytes: names of files need not be UTF-8, but those of models are, so that clients can write them and
// metrics have them: an invalid label ends the process.
func TestNamesOfAnyBytes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"na\xffme.gguf", "plain.gguf"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), mini.GGUF, 0o600))
	}
	s := launch(t, "--models", dir, "-m", "gi\xfeven="+filepath.Join(dir, "plain.gguf"), "--ctx", "256", "--log", "error")
	for _, name := range []string{"na\uFFFDme", "gi\uFFFDven"} {
		status, said := s.asks(t, name)
		require.Equal(t, http.StatusOK, status, said)
	}
	answer, err := http.Get(s.url + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, answer.StatusCode)
	require.Contains(t, string(text), "sluice_model_loaded{model=\"na\uFFFDme\"} 1")
}

// TestServeUnloads: keep_alive 0, llama-server's path and sluice stop unload a model, none loads it first, and who asks
// next has it loaded again.
func TestServeUnloads(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.gguf", "b.gguf"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), mini.GGUF, 0o600))
	}
	s := launch(t, "--models", dir, "--ctx", "256", "--log", "info")
	post := func(path, body string) string {
		answer, err := http.Post(s.url+path, "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s", text)
		return string(text)
	}
	gone := func(names ...string) {
		require.Eventually(t, func() bool {
			is := s.states(t)
			return !slices.ContainsFunc(names, func(name string) bool { return is[name] != "unloaded" })
		}, patient, 10*time.Millisecond)
	}
	require.Contains(t, post("/api/generate", `{"model":"b","keep_alive":0}`), `"done_reason":"unload"`)
	require.Contains(t, post("/api/chat", `{"model":"b:latest","messages":[],"keep_alive":"0s"}`), `"done_reason":"unload"`)
	require.NotContains(t, s.stderr.String(), "loaded", "a model that is not there is not loaded to be unloaded")
	for _, unload := range []func(){
		func() { post("/api/generate", `{"model":"a","keep_alive":0}`) },
		func() { require.Contains(t, post("/models/unload", `{"model":"a"}`), `{"success":true}`) },
		func() {
			o := sluice("", "stop", "a", "--addr", strings.TrimPrefix(s.url, "http://"))
			require.Equal(t, exitDone, o.code, o.stderr)
		},
	} {
		require.Contains(t, post("/models/load", `{"model":"a"}`), `{"success":true}`)
		require.Equal(t, "loaded", s.states(t)["a"])
		unload()
		gone("a")
	}
	said := post("/api/generate", `{"model":"a","prompt":"12 + 30","stream":false,"options":{"num_predict":3},"keep_alive":0}`)
	require.Contains(t, said, `"done_reason":"length"`)
	gone("a", "b")
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}

// TestServeKeepAlive: a model that nobody asks for leaves, and comes back.
func TestServeKeepAlive(t *testing.T) {
	s := launch(t, "--keep-alive", "50ms", "--ctx", "256")
	require.Eventually(t, func() bool { return s.states(t)["Sluice-Mini-Dense"] == "unloaded" }, patient, 10*time.Millisecond)
	status, said := s.asks(t, "whatever")
	require.Equal(t, http.StatusOK, status, said)
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}
