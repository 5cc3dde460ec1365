package token_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var peer = flag.String("peer", "", "the yardstick's driver: ask it for ids again")

// worldly is a small vocabulary as RWKV's files spell theirs: a token for each byte, and longer ones, some of which end
// inside a character or begin others.
func worldly() *meta.Map {
	texts, types := []string{"<s>"}, []int32{3}
	add := func(text string) { texts, types = append(texts, text), append(types, 1) }
	for b := range 256 {
		switch c := byte(b); {
		case c == '\t' || c == '\n' || c == '\r':
			add(map[byte]string{'\t': `\t`, '\n': `\n`, '\r': `\r`}[c])
		case c == '\\' || c == '\'':
			add(`\` + string(rune(c)))
		case c < ' ' || c > '~':
			add(fmt.Sprintf(`\x%02x`, c))
		default:
			add(string(rune(c)))
		}
	}
	for _, text := range []string{`\r\n`, `\n\n`, "he", "hell", "hello w", " world", "aa", "aaaa", `\xe4\xb8`, `\xe4\xb8\xad\xe6\x96\x87`,
		`\xc3\xa9`, `\xf0\x9f\x98\x80`, `it\'s`, `\\\\`, "123"} {
		add(text)
	}
	m := new(meta.Map)
	m.Set("general.architecture", "rwkv6")
	m.Set("tokenizer.ggml.model", "rwkv")
	m.Set("tokenizer.ggml.tokens", texts)
	m.Set("tokenizer.ggml.token_type", types)
	return m
}

// TestWorldLikePeer: ids are llama.cpp's (v0.5.0), which are in testdata.
func TestWorldLikePeer(t *testing.T) {
	texts := []string{"hello world", "hell", "hello", "aaaaaaa", "中文中", "中", "é😀\r\n\n\n\t", `it's \ \\ "x"`, "0123123",
		"\xf0\x9f\x98", "\xff\xfe", " world world"}
	path := filepath.Join("testdata", "world.json")
	if *peer != "" {
		askForWorld(t, path, texts)
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var want [][]token.ID
	require.NoError(t, json.Unmarshal(data, &want))
	require.Len(t, want, len(texts))
	v, err := token.New(worldly())
	require.NoError(t, err)
	for i, text := range texts {
		got, err := v.Encode(nil, text, token.Options{AddSpecial: true})
		require.NoError(t, err)
		require.Equal(t, want[i], got, "%q", text)
		require.Equal(t, text, string(v.Decode(nil, got, false)))
	}
}

// TestWorldEscapes: what files spell otherwise, and what breaks off.
func TestWorldEscapes(t *testing.T) {
	m := new(meta.Map)
	m.Set("tokenizer.ggml.model", "rwkv")
	m.Set("tokenizer.ggml.tokens", []string{`\x4A`, `a\`, `\x4`, `\q`, `\xzz`, "<s>"})
	m.Set("tokenizer.ggml.token_type", []int32{1, 1, 1, 1, 1, 3})
	v, err := token.New(m)
	require.NoError(t, err)
	for id, want := range []string{"J", "a", "", "q", "\x00", "<s>"} {
		require.Equal(t, want, string(v.Piece(token.ID(id))), "token %d", id)
	}
	got, err := v.Encode(nil, "J<s>aq-", token.Options{})
	require.NoError(t, err)
	require.Equal(t, []token.ID{0, 1, 3}, got, "text forges no control token, and what has none is left out")
	m.Set("tokenizer.ggml.unknown_token_id", uint32(3))
	v, err = token.New(m)
	require.NoError(t, err)
	got, err = v.Encode(nil, "J-a", token.Options{})
	require.NoError(t, err)
	require.Equal(t, []token.ID{0, 3, 1}, got)
}

func askForWorld(t *testing.T, path string, texts []string) {
	file := filepath.Join(t.TempDir(), "world.gguf")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, gguf.Write(f, worldly(), nil, nil))
	require.NoError(t, f.Close())
	c := exec.Command(*peer, "tokenize", "-m", file, "--add-special", "--nul", "-t", "1")
	c.Stdin = strings.NewReader(strings.Join(texts, "\x00"))
	out, err := c.Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.NoError(t, os.WriteFile(path, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644))
}
