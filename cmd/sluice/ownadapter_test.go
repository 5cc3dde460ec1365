package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestCreateWithAdapters: a model that a Modelfile, or a client, makes of another one and adapters answers as PEFT
// does, also below a further adapter; one that does not fit is refused, and makes nothing.
func TestCreateWithAdapters(t *testing.T) {
	from := filepath.Join(testref.Dir(t), "multimodal", "lora_llama")
	work, dir := t.TempDir(), filepath.Join(t.TempDir(), "store")
	base, file := filepath.Join(from, "base"), filepath.Join(work, "Modelfile")
	made := filepath.Join(work, "b.gguf")
	require.Zero(t, sluice("", "convert", filepath.Join(from, "adapter_b"), "--base", base, "-o", made).code)
	require.NoError(t, os.WriteFile(filepath.Join(work, "mini.gguf"), mini.GGUF, 0o600))
	create := func(name, text string) outcome {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return here(dir, "create", name, "-f", file)
	}
	for name, text := range map[string]string{"base": "FROM " + base, "a": "FROM " + base + "\nADAPTER " + filepath.Join(from, "adapter_a"),
		"b": "FROM " + base + "\nadapter b.gguf"} {
		o := create(name, text+"\n")
		require.Equal(t, exitDone, o.code, o.stderr)
	}
	require.Contains(t, here(dir, "show", "a").stdout, "adapter-1.gguf")
	for text, want := range map[string]string{
		"FROM base\nADAPTER none.gguf\n":   "ADAPTER none.gguf: ",
		"FROM mini.gguf\nADAPTER b.gguf\n": "adapter-1.gguf: ",
		"FROM base\nADAPTER Modelfile\n":   "adapter-1.gguf: ",
	} {
		o := create("x", text)
		require.Equal(t, exitFailed, o.code, o.stderr)
		require.Contains(t, o.stderr, want)
	}

	var greedy map[string]json.RawMessage
	text, err := os.ReadFile(filepath.Join(from, "greedy.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &greedy))
	flags := []string{"-m", "a", "-m", "b", "-m", "base", "--device", "cpu", "--kv", "f32", "--lora", "again=" + made, "--log", "error"}
	s := launchWith(t, func(e *env.Env) {
		e.Lookup = func(name string) (string, bool) {
			value := map[string]string{"SLUICE_STORE": dir}[name]
			return value, value != ""
		}
	}, append(flags, "--allow-store")...)
	says := func(model string) (tokens []int) {
		var answer struct{ Tokens []int }
		require.NoError(t, json.Unmarshal([]byte(s.good(t, "POST", "/completion", fmt.Sprintf(
			`{"model":%q,"prompt":%s,"n_predict":12,"temperature":0,"return_tokens":true,"ignore_eos":true}`, model, greedy["prompt"]))),
			&answer))
		return answer.Tokens
	}
	want := func(name string) (tokens []int) {
		var one struct{ Tokens []int }
		require.NoError(t, json.Unmarshal(greedy[name], &one))
		return one.Tokens
	}
	data, err := os.ReadFile(made)
	require.NoError(t, err)
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
	status, _ := s.ask(t, "POST", "/api/blobs/"+digest, string(data))
	require.Equal(t, http.StatusCreated, status)
	s.good(t, "POST", "/api/create", `{"model":"sent","from":"base","adapters":{"b.gguf":"`+digest+`"}}`)
	s.good(t, "POST", "/api/create", `{"model":"both","from":"a","adapters":{"b.gguf":"`+digest+`"}}`)
	require.Equal(t, want("base"), says("base"))
	require.Equal(t, want("a"), says("a"))
	require.Equal(t, want("b"), says("b"))
	require.Equal(t, want("b"), says("sent"))
	require.Equal(t, want("b"), says("base+again"))
	both := says("both")
	require.NotEqual(t, want("a"), both)
	require.NotEqual(t, want("b"), both)
	require.Equal(t, both, says("a+again"), "what a request names changes a model with an adapter further")
	require.Equal(t, want("a"), says("a"), "which shares nothing with that")
	for body, said := range map[string]string{
		`{"b.safetensors":"` + digest + `"}`:                  "want a GGUF file",
		`{"b.gguf":"` + made + `"}`:                           "is no digest",
		`{"b.gguf":"sha256:` + fmt.Sprintf("%064d", 0) + `"}`: "upload it first",
		`[]`: `want an object such as {\"model.gguf\": \"sha256:...\"}`,
	} {
		status, text := s.ask(t, "POST", "/api/create", `{"stream":false,"model":"x","from":"base","adapters":`+body+`}`)
		require.Equal(t, http.StatusBadRequest, status, text)
		require.Contains(t, text, said)
	}
}
