package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestLoras: adapters of a folder are asked for by name, loaded under others, unloaded and applied to all, and answers
// are PEFT's.
func TestLoras(t *testing.T) {
	from, folder := filepath.Join(testref.Dir(t), "multimodal", "lora_llama"), t.TempDir()
	base := filepath.Join(from, "base")
	require.NoError(t, os.CopyFS(filepath.Join(folder, "a"), os.DirFS(filepath.Join(from, "adapter_a"))))
	require.Zero(t, sluice("", "convert", filepath.Join(from, "adapter_b"), "--base", base, "-o", filepath.Join(folder, "b.gguf")).code)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notes.txt"), []byte("x"), 0o600))
	var greedy map[string]json.RawMessage
	text, err := os.ReadFile(filepath.Join(from, "greedy.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &greedy))
	want := func(name string) (tokens []int) {
		var one struct{ Tokens []int }
		require.NoError(t, json.Unmarshal(greedy[name], &one))
		return one.Tokens
	}
	flags := []string{"-m", "base=" + base, "--device", "cpu", "--kv", "f32", "--loras", folder, "--log", "error"}
	kept := t.TempDir()
	s := launchWith(t, func(e *env.Env) {
		e.Lookup = func(name string) (string, bool) {
			value := map[string]string{"SLUICE_STORE": kept}[name]
			return value, value != ""
		}
	}, append(flags, "--allow-store")...)
	says := func(s *serving, model string) []int {
		var answer struct{ Tokens []int }
		require.NoError(t, json.Unmarshal([]byte(s.good(t, "POST", "/completion", fmt.Sprintf(
			`{"model":%q,"prompt":%s,"n_predict":12,"temperature":0,"return_tokens":true,"ignore_eos":true}`, model, greedy["prompt"]))),
			&answer))
		return answer.Tokens
	}
	require.Equal(t, want("base"), says(s, "base"))
	require.Equal(t, want("a"), says(s, "a"))
	require.Equal(t, want("b"), says(s, "base+b"))
	const load, unload = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
	s.good(t, "POST", load, `{"lora_name":"again","lora_path":"b"}`)
	require.Equal(t, want("b"), says(s, "again"))
	s.good(t, "POST", "/lora-adapters", `[{"id":0,"scale":1}]`)
	require.Equal(t, want("a"), says(s, "base"))
	require.JSONEq(t, `[{"id":0,"name":"a","path":"a","scale":1},{"id":1,"name":"b","path":"b","scale":0},`+
		`{"id":2,"name":"again","path":"again","scale":0}]`, s.good(t, "GET", "/lora-adapters", ""))
	s.good(t, "POST", "/lora-adapters", `[]`)
	require.Equal(t, want("base"), says(s, "base"))
	s.good(t, "POST", unload, `{"lora_name":"again"}`)
	for _, c := range []struct {
		path, body string
		status     int
		said       string
	}{
		{unload, `{"lora_name":"again"}`, 404, "there is no adapter called"},
		{unload, `{}`, 400, "is no name of an adapter"},
		{load, `{"lora_name":"x/y","lora_path":"a"}`, 400, "is no name of an adapter"},
		{load, `{"lora_name":"a","lora_path":"a"}`, 400, "already: unload it first"},
		{load, `{"lora_name":"x","lora_path":"../a"}`, 400, "is no name of a file or folder"},
		{load, `{"lora_name":"x","lora_path":"` + filepath.Join(folder, "a") + `"}`, 400, "is no name of a file or folder"},
		{load, `{"lora_name":"x","lora_path":".."}`, 400, "is no name of a file or folder"},
		{load, `{"lora_name":"x"}`, 400, "is no name of a file or folder"},
		{load, `{"lora_name":"x","lora_path":"notes.txt"}`, 400, "there is no adapter"},
		{"/lora-adapters", `[{"id":9}]`, 400, "there is no adapter of id 9"},
		{"/lora-adapters", `{"id":0}`, 400, "want a list such as"},
	} {
		status, body := s.ask(t, "POST", c.path, c.body)
		require.Equal(t, c.status, status, "%s: %s", c.body, body)
		require.Contains(t, body, c.said, c.body)
		require.NotContains(t, body, "/multimodal/", "no folders of the machine")
	}
	closed := launch(t, flags...)
	require.Equal(t, want("a"), says(closed, "a"))
	for _, path := range []string{load, unload, "/lora-adapters"} {
		status, body := closed.ask(t, "POST", path, `[]`)
		require.Equal(t, 403, status)
		require.Contains(t, body, "--allow-store")
	}
}
