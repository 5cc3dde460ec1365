package actors

import (
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/actors/sight"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/stages/model/vision/visiontest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestPicturesBeside: of Gemma 4 with inputs of layers, a picture whose rows are those of the token for what is none
// has the logits of a text of these tokens, to the bit; without what layers are given besides it has others. On a GPU,
// whose driver computes in plain Go here, they are near: what is beside comes from the processor.
func TestPicturesBeside(t *testing.T) {
	t.Run("processor", func(t *testing.T) { picturesBeside(t, devicetest.Processor(t, ""), 0) })
	t.Run("GPU", func(t *testing.T) { picturesBeside(t, devicetest.Played(t), 1e-4) })
}

func picturesBeside(t *testing.T, d backend.Device, near float64) {
	t.Helper()
	text, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "gemma4.gguf"))
	require.NoError(t, err)
	embedding, ok := text.Tensor("token_embd.weight")
	require.True(t, ok)
	width := embedding.Shape[0]
	row := make([]float32, width)
	require.NoError(t, text.View(embedding, func(data []byte) error {
		return quant.Dequantize(embedding.Type, row, data[:2*width])
	}))
	for i := range row {
		row[i] *= float32(math.Sqrt(float64(width)))
	}
	all := visiontest.All()
	tiny := all[slices.IndexFunc(all, func(x visiontest.Tiny) bool { return x.Name == "gemma4 small" })].Wide(width)
	e := startFile(t, text, func(c *Config) {
		c.Tower, c.Device = tiny.File(t), d
	})
	eye := e.spec.eye
	remember := func(shade float32, beside bool) Request {
		p := &vision.Picture{Height: 72, Width: 120, Values: slices.Repeat([]float32{shade}, 3*72*120)}
		const rows = 15
		seen := &sight.Seen{Grid: ir.Grid{Height: 3, Width: 5}, Rows: slices.Repeat(row, rows)}
		require.NoError(t, eye.open())
		var err error
		seen.Beside, err = eye.beside.Of(eye.device, seen.Rows)
		require.NoError(t, err)
		if !beside {
			clear(seen.Beside)
		}
		hash := hashOf(p)
		eye.seen[hash] = eye.order.PushFront(&remembered{hash, seen})
		return Request{Tokens: slices.Concat([]int32{5, 9}, make([]int32, rows), []int32{17, 33}),
			Pictures: []Picture{{Pixels: p}}}
	}
	logits := func(r Request) []float32 {
		s, err := e.ScoreOf(r)
		require.NoError(t, err)
		return allLogits(t, s)
	}
	with := remember(1, true)
	want := logits(Request{Tokens: with.Tokens})
	require.LessOrEqual(t, distance(want, logits(with)), near)
	require.Greater(t, distance(want, logits(remember(2, false))), 1e-2)
}

// distance is how far the farthest of two lists' values are apart.
func distance(a, b []float32) (far float64) {
	for i := range a {
		far = max(far, math.Abs(float64(a[i]-b[i])))
	}
	return far
}
