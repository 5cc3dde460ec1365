package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/weights"
	"github.com/sluice-ai/sluice/stages/model/synth"
)

// smallSynth is the smallest file of a known shape.
func smallSynth(path string, more ...string) []string {
	return append([]string{"synth", "--shape", "qwen3-0.6b", "--layers", "1", "--vocab", "8192", "-o", path}, more...)
}

// TestSynth: the file is complete, the same for the same seed, and it runs.
func TestSynth(t *testing.T) {
	dir := t.TempDir()
	path, again := filepath.Join(dir, "a.gguf"), filepath.Join(dir, "b.gguf")
	o := sluice("", smallSynth(path)...)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, path+": 24.1 M parameters in 16.0 MiB\n", o.stdout)
	require.Equal(t, exitDone, sluice("", smallSynth(again)...).code)
	require.Equal(t, read(t, path), read(t, again))
	require.Equal(t, exitDone, sluice("", smallSynth(again, "--seed", "2", "--force")...).code)
	require.NotEqual(t, read(t, path), read(t, again))

	o = sluice("", "run", "-m", path, "--temp", "0", "-n", "4", "Hello")
	require.Equal(t, exitDone, o.code, o.stderr)

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing half written is left")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

func TestSynthConfig(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tiny-llama")
	require.NoError(t, os.Mkdir(dir, 0o755))
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
		"num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 10000, "max_position_embeddings": 256}`), 0o644))
	path := filepath.Join(dir, "m.gguf")
	o := sluice("", "synth", "--config", config, "--quant", "Q8_0", "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	o = sluice("", "inspect", "--json", path)
	var s weights.Summary
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &s))
	require.Equal(t, "tiny-llama (random weights)", s.Name)
	require.Equal(t, 10000, s.Vocabulary.Tokens)

	o = sluice("", "synth", "--config", path, "-o", path+"2")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "not a model's config.json")
	o = sluice("", "synth", "--shape", "qwen3-0.6b", "--vocab", "10", "-o", path+"2")
	require.Contains(t, o.stderr, "a vocabulary of 10 tokens is too small, want at least 8192")
	require.NoFileExists(t, path+"2")
}

// TestSynthTiny: a tiny file of a mixture runs, and its kind of layers is that of the large one.
func TestSynthTiny(t *testing.T) {
	for _, shape := range []string{"llama-4-scout", "qwen3.5-397b-a17b"} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		o := sluice("", "synth", "--shape", shape, "--tiny", "--quant", "F16", "-o", path)
		require.Equal(t, exitDone, o.code, o.stderr)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(16<<20), shape)
		o = sluice("", "run", "-m", path, "--temp", "0", "-n", "4", "Hello")
		require.Equal(t, exitDone, o.code, o.stderr)
		require.NotEmpty(t, o.stdout)
	}
}

// TestSynthHollow: the largest shapes are planned from a header, without their size on the disk.
func TestSynthHollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	o := sluice("", "synth", "--shape", "llama-4-scout", "--hollow", "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, path+": 107.77 B parameters in 60.9 GiB\n", o.stdout)
	o = planFile(t, path, "--ram", "12G", "--json")
	require.Equal(t, exitDone, o.code, o.stderr)
	var plan struct {
		Streamed float64 `json:"streamed_bytes_per_token"`
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &plan))
	require.InDelta(t, 4e9, plan.Streamed, 1e9, "an expert of each layer, and some of the rest")
	o = sluice("", "run", "-m", path, "Hello")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "is an outline without weights (synth --hollow), which plan and inspect read")
	o = sluice("", "synth", "--shape", "llama-4-scout", "--hollow", "-o", "/dev/stdout")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "--hollow: /dev/stdout is a pipe or a device, and only a file has a hole")
}

func TestSynthUsage(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"model_type": "llama"}`), 0o644))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--shape", "qwen3-0.6b"}, exitUsage, "want -o FILE, and one of"},
		{[]string{"--list", "--shape", "qwen3-0.6b"}, exitUsage, "--list shows all shapes and writes nothing: leave out"},
		{smallSynth(dir)[1:], exitUsage, dir + " is a folder: name a file in it"},
		{smallSynth(filepath.Join(dir, "none", "m.gguf"))[1:], exitFailed, "m.gguf: no such file or directory"},
		{smallSynth("m.gguf", "--layers=-5")[1:], exitUsage, "--layers is -5: want 0 to 1024"},
		{smallSynth("m.gguf", "--vocab=-5")[1:], exitUsage, "--vocab is -5: want 0 to 2097152"},
		{[]string{"--config", config, "-o", config}, exitUsage, "config.json is a file that is read"},
		{[]string{"--config", config, "-o", filepath.Join(dir, "m.gguf")}, exitFailed, "config.json: num_hidden_layers: is 0"},
	} {
		o := sluice("", append([]string{"synth"}, c.args...)...)
		require.Equal(t, c.code, o.code, c.args)
		require.Contains(t, o.stderr, c.want)
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

// A run that is stopped leaves nothing, and does not write on to the end of a tensor.
func TestSynthStopped(t *testing.T) {
	dir := t.TempDir()
	e := envtest.NewEnv("", smallSynth(filepath.Join(dir, "m.gguf"))...)
	e.Interruptible = interrupted
	require.Equal(t, exitInterrupted, run(e))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	var written countingWriter
	ctx, cancel := context.WithCancel(t.Context())
	w := envtest.NewEnv("").Writing(ctx, "writing", 6)
	w.Writer = &written
	_, err = w.Write(make([]byte, 3))
	require.NoError(t, err)
	cancel()
	_, err = w.Write(make([]byte, 3))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 3, written)
}

type countingWriter int

func (c *countingWriter) Write(b []byte) (int, error) {
	*c += countingWriter(len(b))
	return len(b), nil
}

func TestSynthList(t *testing.T) {
	o := sluice("", "synth", "--list", "--quant", "Q8_0")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, rowsOf(o.stdout), "llama-3.1-8b llama 32 4096 8.03 B 7.9 GiB")
	require.Greater(t, strings.Count(o.stdout, "\n"), 20)
	o = sluice("", "synth", "--list", "--quant", "Q8_0", "--vocab", "8192", "--layers", "2")
	require.Contains(t, rowsOf(o.stdout), "llama-3.1-8b llama 2 4096 503.3 M 510.1 MiB")
}

// rowsOf is a table's rows, with one blank between columns: how wide these are, the longest entry says.
func rowsOf(table string) (rows []string) {
	for line := range strings.Lines(table) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	return rows
}

// TestSynthKeyed: tiny files of shapes that are known by the keys of their files run.
func TestSynthKeyed(t *testing.T) {
	for _, shape := range []string{"falcon-7b", "openelm-270m"} {
		runTiny(t, shape)
	}
}

// TestSynthAll: every shape can be written as a tiny file that runs, or makes vectors.
func TestSynthAll(t *testing.T) {
	if testing.Short() {
		t.Skip("a hundred models")
	}
	for _, s := range synth.Shapes() {
		t.Run(s.Name, func(t *testing.T) { runTiny(t, s.Name) })
	}
}

func runTiny(t *testing.T, shape string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.gguf")
	o := sluice("", "synth", "--shape", shape, "--tiny", "--quant", "Q8_0", "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(8<<20), shape)
	if o = sluice("", "run", "-m", path, "--temp", "0", "-n", "4", "Hello"); strings.Contains(o.stderr, "embed") {
		o = sluice("", "embed", "-m", path, "Hello")
	}
	require.Equal(t, exitDone, o.code, o.stderr)
	require.NotEmpty(t, o.stdout, shape)
	require.NotContains(t, o.stdout, "NaN")
}
