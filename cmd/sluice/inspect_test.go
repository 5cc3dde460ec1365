package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/weights"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// writeModel writes a GGUF file of metadata alone.
func writeModel(t *testing.T, pairs ...any) string {
	t.Helper()
	var m meta.Map
	for i := 0; i < len(pairs); i += 2 {
		m.Set(pairs[i].(string), pairs[i+1])
	}
	var file bytes.Buffer
	require.NoError(t, gguf.Write(&file, &m, nil, nil))
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o644))
	return path
}

func TestInspect(t *testing.T) {
	golden(t, "inspect",
		args("inspect"),
		args("inspect", "--json"),
		args("inspect", "--tensors"),
		args("inspect", "no-such-file.gguf"),
		args("inspect", "main.go"),
		args("inspect", "."),
	)
}

func TestInspectVocabularyAlone(t *testing.T) {
	path := writeModel(t,
		"general.architecture", "llama",
		"tokenizer.ggml.model", "gpt2",
		"tokenizer.ggml.tokens", []string{"a", "b"},
	)
	o := sluice("", "inspect", "--json", "--tensors", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	var s weights.Summary
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &s))
	require.Equal(t, &weights.Summary{
		File: path, Version: 3, Parts: 1, Architecture: "llama", Types: []weights.TypeShare{}, Tensors: []weights.TensorRecord{},
		Vocabulary: weights.Vocabulary{Kind: "gpt2", Tokens: 2},
	}, &s)
}

func TestInspectKeepsTheTerminalSafe(t *testing.T) {
	path := writeModel(t, "general.architecture", "llama", "general.name", "\x1b]0;pwned\x07")
	o := sluice("", "inspect", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, `"\x1b]0;pwned\a"`)
	require.NotContains(t, o.stdout, "\x1b")
}

func TestSizes(t *testing.T) {
	require.Equal(t, "1023 B", env.BinarySize(1023))
	require.Equal(t, "1.0 KiB", env.BinarySize(1024))
	require.Equal(t, "4.7 GiB", env.BinarySize(5_000_000_000))
	require.Equal(t, "999999", env.Parameters(999_999))
	require.Equal(t, "7.24 B", env.Parameters(7_240_000_000))
}

// What people look for in a file comes first, then every key; nothing of it steers the terminal or fills it.
func TestInspectMetadata(t *testing.T) {
	path := writeModel(t,
		"general.architecture", "qwen3moe", "general.license", "apache-2.0", "general.note\x1b", "two\nlines",
		"qwen3moe.block_count", uint32(48), "qwen3moe.embedding_length", uint32(2048),
		"qwen3moe.attention.head_count", uint32(32), "qwen3moe.attention.head_count_kv", uint32(4),
		"qwen3moe.rope.freq_base", float32(1e6), "qwen3moe.rope.scaling.type", "yarn", "qwen3moe.rope.scaling.factor", float32(4),
		"qwen3moe.expert_count", uint32(128), "qwen3moe.expert_used_count", uint32(8),
		"tokenizer.ggml.tokens", []string{"a", "b", "c", "d", "e", "f", "g"}, "tokenizer.ggml.scores", []float32{1, 2},
		"tokenizer.chat_template", strings.Repeat("{{ x }}", 20),
	)
	o := sluice("", "inspect", "--metadata", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, `
layers    48
width     2048
heads     32, 4 of K and V
rope      base 1e+06, scaled by yarn, factor 4
experts   128, 8 at a time
licence   apache-2.0
template  140 characters: sluice template shows it

general.architecture              qwen3moe
general.license                   apache-2.0
"general.note\x1b"                "two\nlines"
`)
	require.Contains(t, o.stdout, `["a", "b", "c", "d", "e", "f", …] (7)`)
	require.Contains(t, o.stdout, `[1, 2]`)

	o = sluice("", "inspect", "--metadata", "--json", path)
	var s weights.Summary
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &s))
	require.EqualValues(t, 48, s.Metadata["qwen3moe.block_count"])
	require.Len(t, s.Metadata["tokenizer.chat_template"], 140, "texts are whole")
}
