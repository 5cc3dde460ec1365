package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/mini"
)

// TestServeDescribes: models that are not loaded are described as they are when they run, by their files' headers, and
// anew if a file has changed.
func TestServeDescribes(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	small, err := os.ReadFile(filepath.Join("..", "..", "actors", "testdata", "qwen3.gguf"))
	require.NoError(t, err)
	write("a.gguf", mini.GGUF)
	write("b.gguf", mini.GGUF)
	write("bad.gguf", []byte("GGUF, but no more"))
	s := launchWith(t, func(e *env.Env) { e.Now = time.Now }, "--models", dir, "--ctx", "256", "--log", "error")
	type described struct {
		Name   string
		Size   int64
		Digest string
		When   time.Time `json:"modified_at"`
		Detail struct {
			Parameters string `json:"parameter_size"`
		} `json:"details"`
	}
	tags := func() map[string]described {
		var all struct{ Models []described }
		require.NoError(t, json.Unmarshal([]byte(s.good(t, "GET", "/api/tags", "")), &all))
		byName := map[string]described{}
		for _, m := range all.Models {
			byName[m.Name] = m
		}
		return byName
	}
	before, shown := tags(), s.good(t, "POST", "/api/show", `{"model":"a"}`)
	require.Equal(t, "26.2M", before["a"].Detail.Parameters)
	require.Positive(t, before["a"].Size)
	wrote, err := os.Stat(filepath.Join(dir, "a.gguf"))
	require.NoError(t, err)
	require.Equal(t, wrote.ModTime().UTC(), before["a"].When)
	require.Contains(t, shown, `"capabilities":["completion","tools","insert"]`)
	require.Contains(t, shown, `num_ctx                        256\n`)
	require.Contains(t, shown, "|im_start|")
	listed := s.good(t, "GET", "/v1/models/a", "")
	require.Contains(t, listed, fmt.Sprintf(`"status":{"value":"unloaded"},"capabilities":["completion","tools","insert"],"meta":{"architecture":"qwen3","n_vocab":8192,`+
		`"n_ctx_train":16384,"n_ctx":256,"n_params":26223872,"size":%d}}`, before["a"].Size))
	require.Equal(t, "unloaded", s.states(t)["a"], "it was not loaded for that")

	status, _ := s.asks(t, "a")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, before, tags(), "and is the same when it runs")
	require.Equal(t, shown, s.good(t, "POST", "/api/show", `{"model":"a"}`))

	require.Zero(t, before["bad"].Size)
	require.Contains(t, s.good(t, "POST", "/api/show", `{"model":"bad"}`), `"model_info":{},"capabilities":["completion"]`)
	require.NotContains(t, s.good(t, "GET", "/v1/models/bad", ""), "meta")
	write("bad.gguf", small)
	require.Eventually(t, func() bool { return tags()["bad"].Size > 0 }, patient, 50*time.Millisecond)
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}
