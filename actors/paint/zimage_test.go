package paint

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func zimage(t *testing.T, d backend.Device) *ZImage {
	t.Helper()
	return zimageIn(t, Room{Device: d})
}

func zimageIn(t *testing.T, r Room) *ZImage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", "zimage", "transformer", "config.json"))
	require.NoError(t, err)
	s, err := pixels.ReadZImageSettings(text)
	require.NoError(t, err)
	z, err := OpenZImage(r, published(t, "zimage", "transformer"), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, z.Close()) })
	return z
}

// latents are a reference's, row by row.
func latents(x converttest.Tensor) (ir.Grid, []float32) {
	n := len(x.Shape)
	height, width := x.Shape[n-2], x.Shape[n-1]
	all := x.Floats()
	return cells(all, len(all)/(height*width), height, width, 1)
}

func refined(t *testing.T, z *ZImage, rows []float32) *Refined {
	t.Helper()
	text, err := z.Refine(rows)
	require.NoError(t, err)
	return text
}

// TestZImage: what the transformer says is what diffusers' says, whose sign is the other.
func TestZImage(t *testing.T) {
	for _, d := range devices(t) {
		z := zimage(t, d)
		for i := range 2 {
			t.Run(fmt.Sprint(d.Name(), i), func(t *testing.T) {
				r := converttest.Tensors(t, "multimodal", "zimage", fmt.Sprintf("transformer_%d.safetensors", i))
				grid, rows := latents(r["latents"])
				got, err := z.Evaluate(grid, rows, refined(t, z, r["cap"].Floats()), float64(r["t"].Floats()[0]))
				require.NoError(t, err)
				for i := range got {
					got[i] = -got[i]
				}
				_, want := latents(r["sample"])
				converttest.Near(t, want, got, tolerance)
			})
		}
	}
}

// TestZImagePipeline: noise becomes the latents that diffusers' pipeline ends with, step by step.
func TestZImagePipeline(t *testing.T) {
	for _, d := range devices(t) {
		z := zimage(t, d)
		texts := converttest.Tensors(t, "multimodal", "zimage", "text.safetensors")
		for file, prompt := range map[string]string{"run_4steps": "0", "run_8steps": "1"} {
			t.Run(d.Name()+" "+file, func(t *testing.T) {
				r := converttest.Tensors(t, "multimodal", "zimage", file+".safetensors")
				text := refined(t, z, texts[prompt+".prompt_embeds"].Floats())
				n := len(r["sigmas"].Floats()) - 1
				levels, err := diffuse.Flow{Shift: 3}.Levels(n, 0)
				require.NoError(t, err)
				require.InDeltaSlice(t, r["sigmas"].Floats(), levels, 1e-6)
				grid, x := latents(r["latents_0"])
				for i := range n {
					v, err := z.Evaluate(grid, x, text, 1-levels[i])
					require.NoError(t, err)
					diffuse.Step(x, v, levels[i], levels[i+1])
				}
				_, want := latents(r["latents_final"])
				converttest.Near(t, want, x, tolerance)
			})
		}
	}
}

// TestZImageGuided: two prompts are weighed as diffusers weighs them.
func TestZImageGuided(t *testing.T) {
	for _, d := range devices(t) {
		z := zimage(t, d)
		texts := converttest.Tensors(t, "multimodal", "zimage", "text.safetensors")
		r := converttest.Tensors(t, "multimodal", "zimage", "run_cfg.safetensors")
		text, other := refined(t, z, texts["1.prompt_embeds"].Floats()), refined(t, z, texts["2.prompt_embeds"].Floats())
		grid, x := latents(r["latents_0"])
		levels := r["sigmas"].Floats()
		require.Len(t, levels, 3)
		for i := range 2 {
			at, to := float64(levels[i]), float64(levels[i+1])
			v, err := z.Evaluate(grid, x, text, 1-at)
			require.NoError(t, err)
			away, err := z.Evaluate(grid, x, other, 1-at)
			require.NoError(t, err)
			diffuse.Step(x, diffuse.Guided(v, away, 4, true), at, to)
		}
		_, want := latents(r["latents_final"])
		converttest.Near(t, want, x, tolerance)
	}
}

func TestZImageBounds(t *testing.T) {
	z := zimage(t, devices(t)[0])
	_, err := z.Refine(make([]float32, 47))
	require.ErrorContains(t, err, "a text of 47 numbers, want 1 to 4096 rows of 48")
	text := &Refined{make([]float32, 32*48)}
	for _, g := range []ir.Grid{{}, {Height: 3, Width: 2}, {Height: 2, Width: 1 << 40}, {Height: 258, Width: 256}} {
		_, err = z.Evaluate(g, nil, text, 0)
		require.ErrorContains(t, err, "want even numbers, and at most 16384 patches")
	}
	_, err = z.Evaluate(ir.Grid{Height: 2, Width: 2}, make([]float32, 3), text, 0)
	require.ErrorContains(t, err, "3 numbers of latents, want 64")
}

// reader is the encoder of texts of Z-Image.
func reader(t *testing.T) *gguf.File {
	t.Helper()
	return converttest.Convert(t, filepath.Join(testref.Dir(t), "multimodal", "zimage", "text_encoder"),
		func(f *convert.Folder) (*convert.Model, error) { return convert.Plan(f, convert.Options{}) })
}

// TestEncode: a text's rows are those that transformers' model has before its last layer.
func TestEncode(t *testing.T) {
	f := reader(t)
	r := converttest.Tensors(t, "multimodal", "zimage", "text.safetensors")
	for _, d := range devices(t) {
		for i := range 4 {
			name := fmt.Sprint(i)
			got, err := Encode(Room{Device: d}, f, r[name+".ids"].IDs())
			require.NoError(t, err)
			converttest.Near(t, r[name+".prompt_embeds"].Floats(), got, tolerance)
		}
	}
}
