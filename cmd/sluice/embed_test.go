package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/ask"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestEmbed compares a text's vector with the mean, or the last, of the rows that transformers computes.
func TestEmbed(t *testing.T) {
	dir := filepath.Join(testref.Dir(t), "fixtures")
	for _, name := range []string{"bert", "nomicbert", "qwen3emb"} {
		var fixture struct {
			Tokens    []int32
			Tolerance float64
			Width     int `json:"n_embd"`
		}
		text, err := os.ReadFile(filepath.Join(dir, name+".json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &fixture))
		rows, err := os.ReadFile(filepath.Join(dir, name+".embd.f32"))
		require.NoError(t, err)
		ids, _ := json.Marshal(fixture.Tokens)
		out := sluice("", "embed", "-m", filepath.Join(dir, name+".gguf"), "--kv", "f32", "--json",
			"--tokens", strings.Trim(string(ids), "[]"))
		require.Zero(t, out.code, out.stderr)
		var got ask.Embeddings
		require.NoError(t, json.Unmarshal([]byte(out.stdout), &got))
		require.Equal(t, len(fixture.Tokens), got.Tokens)
		require.Equal(t, fixture.Width, got.Dimensions)
		require.Len(t, got.Embeddings, 1)
		for i, x := range got.Embeddings[0] {
			var sum, last float64
			for r := range fixture.Tokens {
				last = float64(math.Float32frombits(binary.LittleEndian.Uint32(rows[4*(r*fixture.Width+i):])))
				sum += last
			}
			want := sum / float64(len(fixture.Tokens))
			if name == "qwen3emb" {
				want = last
			}
			require.InDelta(t, want, x, 5*fixture.Tolerance, "%s, feature %d", name, i)
		}
	}
}
