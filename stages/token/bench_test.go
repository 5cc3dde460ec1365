package token_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/stretchr/testify/require"
)

func BenchmarkNew(b *testing.B) {
	for _, name := range []string{"llama-bpe", "llama-spm", "ugm-own"} {
		m := metaOf(b, name)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := token.New(m)
				require.NoError(b, err)
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	prose, err := os.ReadFile(filepath.Join(testref.Dir(b), "models", "heldout-en.txt"))
	require.NoError(b, err)
	text := string(prose)
	for _, name := range []string{
		"llama-bpe", "qwen2", "o200k-cut", "llama-spm", "ugm-own", "bert-bge", "gemma-bpe-cut",
	} {
		v := vocabOf(b, name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			var dst []token.ID
			for b.Loop() {
				dst, err = v.Encode(dst[:0], text, token.Options{})
			}
			require.NoError(b, err)
		})
	}
}
