package ref_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/arch/archtest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestCompressedLikePeer compares logits of a text of more than two of the longest chunks that are compressed with
// llama.cpp's: of rows before and after the ends of chunks.
func TestCompressedLikePeer(t *testing.T) {
	f, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "qwen3.gguf"))
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	i := slices.IndexFunc(backendtest.Specimens, func(s backendtest.Specimen) bool { return s.Name == "deepseek4" })
	s := &backendtest.Specimens[i]
	path := filepath.Join(t.TempDir(), s.Name+".gguf")
	archtest.Write(t, path, s, &f.Meta)
	tokens := make([]int32, 300)
	for i := range tokens {
		tokens[i] = int32(20 + i*37%400)
	}
	rows := []int{126, 127, 258, 299}
	golden := filepath.Join("testdata", "peer", s.Name+"-long.f32")
	got := backendtest.Logits(t, ref.New(), archtest.Open(t, path, nil), tokens)
	width := len(got) / len(tokens)
	if *peer != "" {
		all := peerSays(t, path, tokens, "logits")
		var kept []byte
		for _, r := range rows {
			kept = append(kept, all[4*r*width:][:4*width]...)
		}
		require.NoError(t, os.WriteFile(golden, kept, 0o644))
	}
	data, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Len(t, data, 4*len(rows)*width)
	for i, r := range rows {
		for j := range width {
			want := math.Float32frombits(binary.LittleEndian.Uint32(data[4*(i*width+j):]))
			require.InDelta(t, want, got[r*width+j], s.Tolerance, "position %d, token %d", r, j)
		}
	}
}
