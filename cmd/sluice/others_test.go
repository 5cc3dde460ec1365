package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/library"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/hub/hubtest"
)

// otherHome is a home folder in which other programs keep the embedded model.
func otherHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	write := func(path string, data []byte) {
		at := filepath.Join(home, filepath.FromSlash(path))
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o700))
		require.NoError(t, os.WriteFile(at, data, 0o400))
	}
	params := []byte(`{"num_predict": 3}`)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"layers":[
		{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":%d},
		{"mediaType":"application/vnd.ollama.image.params","digest":"sha256:%s","size":%d}]}`,
		hubtest.Digest(mini.GGUF), len(mini.GGUF), hubtest.Digest(params), len(params))
	write(".ollama/models/manifests/registry.ollama.ai/library/mini/1b", []byte(manifest))
	write(".ollama/models/manifests/registry.ollama.ai/library/torn/latest", []byte(`{"sche`))
	write(".ollama/models/blobs/sha256-"+hubtest.Digest(mini.GGUF), mini.GGUF)
	write(".ollama/models/blobs/sha256-"+hubtest.Digest(params), params)
	write(".lmstudio/models/Ann/Mini-GGUF/mini-Q8_0.gguf", mini.GGUF)
	repository := ".cache/huggingface/hub/models--Bob--Mini-GGUF/"
	write(repository+"blobs/0123", mini.GGUF)
	snapshot := filepath.Join(home, filepath.FromSlash(repository), "snapshots", "abc")
	require.NoError(t, os.MkdirAll(snapshot, 0o700))
	require.NoError(t, os.Symlink(filepath.Join("..", "..", "blobs", "0123"), filepath.Join(snapshot, "mini-Q8_0.gguf")))
	return home
}

// atHome has commands find a person's home folder, and an empty store.
func atHome(e *env.Env, home string) {
	e.Lookup = func(name string) (string, bool) {
		value, ok := map[string]string{"HOME": home, "OLLAMA_MODELS": filepath.Join(home, ".ollama", "models")}[name]
		return value, ok
	}
}

// TestOtherPrograms: models that other programs keep are listed, and -m takes their names as they are listed.
func TestOtherPrograms(t *testing.T) {
	home := otherHome(t)
	here := func(args ...string) outcome {
		e := envtest.NewEnv("", args...)
		atHome(e, home)
		code := run(e)
		return outcome{code, fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
	}
	o := here("list", "--all")
	require.Equal(t, exitDone, o.code, o.stderr)
	size := env.BinarySize(int64(len(mini.GGUF)))
	torn := filepath.Join(home, ".ollama/models/manifests/registry.ollama.ai/library/torn/latest")
	require.Equal(t, "name                         size      pulled  kept by\n"+
		"hf:Bob/Mini-GGUF:Q8_0        "+size+"  -       Hugging Face cache\n"+
		"lmstudio:Ann/Mini-GGUF:Q8_0  "+size+"  -       LM Studio\n", strings.Join(strings.SplitAfter(o.stdout, "\n")[:3], ""))
	require.Contains(t, o.stdout, torn+": the registry's answer is no manifest")
	require.Contains(t, here("list").stdout, "no models in ")
	o = here("list", "--all", "--json")
	var list []library.ModelRecord
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &list), o.stdout)
	require.Len(t, list, 4)
	complete := 0
	for _, m := range list {
		if !m.Complete {
			require.Equal(t, "ollama:torn", m.Name)
			continue
		}
		complete++
		require.Equal(t, int64(len(mini.GGUF)), m.Size)
		require.FileExists(t, m.Path)
		o = here("run", "-m", m.Name, "12 + 30")
		require.Equal(t, exitDone, o.code, o.stderr)
		want := "12 + 30 = 42.\n"
		if strings.HasPrefix(m.Name, "ollama:") {
			require.NotContains(t, o.stdout, want, "its parameters hold")
		} else {
			require.Equal(t, want, o.stdout)
		}
		require.Equal(t, exitDone, here("inspect", m.Name).code)
		require.Equal(t, exitDone, here("run", m.Name, "12 + 30").code, "the first word may be one")
	}
	require.Equal(t, 3, complete)

	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "-m", "ollama:none", "x"}, exitFailed, `"ollama:none" is no model that another program keeps here: sluice list --all shows those that are`},
		{[]string{"run", "-m", "ollama:torn", "x"}, exitFailed, "ollama:torn: " + torn + ": the registry's answer is no manifest"},
		{[]string{"run", "-m", "mini:1b", "x"}, exitFailed, "get it with sluice pull mini:1b, or use the one that is here (Ollama): -m ollama:mini:1b"},
		{[]string{"run", "-m", "Bob/Mini-GGUF", "x"}, exitFailed, "or use the one that is here (Hugging Face cache): -m hf:Bob/Mini-GGUF:Q8_0"},
		{[]string{"rm", "ollama:mini:1b"}, exitUsage, "another program keeps: -m takes it, nothing changes it"},
		{[]string{"pull", "hf:Bob/Mini-GGUF"}, exitUsage, "another program keeps: -m takes it, nothing changes it"},
	} {
		o := here(c.args...)
		require.Equal(t, c.code, o.code, "%v: %s", c.args, o.stderr)
		require.Contains(t, o.stderr, c.want, "%v", c.args)
	}
}

// TestServeOtherPrograms: a server serves them by the same names.
func TestServeOtherPrograms(t *testing.T) {
	home := otherHome(t)
	s := launchWith(t, func(e *env.Env) { atHome(e, home) }, "-m", "a=ollama:mini:1b", "-m", "b=lmstudio:Ann/Mini-GGUF", "--ctx", "256",
		"--log", "error")
	for _, name := range []string{"a", "b"} {
		status, said := s.asks(t, name)
		require.Equal(t, 200, status, said)
		require.Contains(t, said, `"content":"12`)
	}
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
}
