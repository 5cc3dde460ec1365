package sight

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
	"github.com/sluice-ai/sluice/cpu/ref"
	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/vision"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// pictures are those of a reference, as the processor of its library has made them.
func pictures(t *testing.T, folder, file string, tower *vision.Tower) (all []*vision.Picture) {
	t.Helper()
	s := converttest.Tensors(t, "multimodal", folder, file)
	values := s["pixel_values"].Floats()
	if tower.Image > 0 {
		return []*vision.Picture{{Height: tower.Image, Width: tower.Image, Values: values}}
	}
	const frames = 2
	grids := s["image_grid_thw"].Longs()
	for ; len(grids) > 0; grids = grids[3:] {
		n := grids[1] * grids[2] * 3 * frames * tower.Patch * tower.Patch
		p, err := vision.Unfold(values[:n], ir.Grid{Height: grids[1], Width: grids[2]}, tower.Patch, tower.Merge, frames)
		require.NoError(t, err)
		all, values = append(all, p), values[n:]
	}
	require.Empty(t, values)
	return all
}

// tower is the tower of a reference's folder.
func tower(t testing.TB, folder string) *gguf.File {
	dir := filepath.Join(testref.Dir(t), "multimodal", strings.TrimSuffix(folder, "_2img"))
	return converttest.Convert(t, dir, func(f *convert.Folder) (*convert.Model, error) {
		return convert.PlanVision(f, convert.Options{})
	})
}

// tolerance is what towers may differ from the references by: four times what float32 differs from float64 there, or
// the least that their README names.
const tolerance = 2e-4

// TestTowersAreTheLibrarys: rows of text that towers make of pictures are those of transformers, on the oracle, on the
// processor and on a GPU: one whose driver computes in plain Go, or the first one.
func TestTowersAreTheLibrarys(t *testing.T) {
	card := devicetest.Played(t)
	if devicetest.OnGPU() {
		card = devicetest.New(t)
	}
	for _, c := range []struct {
		folder, file, rows string
		deep               []string
	}{
		{"llava", "processor_exact", "model.multi_modal_projector", nil},
		{"gemma3_vision", "processor_exact", "model.multi_modal_projector", nil},
		{"qwen25vl", "processor", "model.visual.pooler_output", nil},
		{"qwen25vl_2img", "processor", "model.visual.pooler_output", nil},
		{"qwen3vl", "processor", "model.visual.pooler_output",
			[]string{"model.visual.deepstack_features.0", "model.visual.deepstack_features.1"}},
		{"qwen3vl_2img", "processor", "model.visual.pooler_output",
			[]string{"model.visual.deepstack_features.0", "model.visual.deepstack_features.1"}},
	} {
		want := converttest.Tensors(t, "multimodal", c.folder, "reference.safetensors")
		for _, d := range []backend.Device{ref.New(), devicetest.Processor(t, ""), card} {
			t.Run(c.folder+" "+d.Name(), func(t *testing.T) {
				eye, err := Open(d, tower(t, c.folder))
				require.NoError(t, err)
				defer func() { require.NoError(t, eye.Close()) }()
				var rows []float32
				deep := make([][]float32, len(c.deep))
				for _, p := range pictures(t, c.folder, c.file+".safetensors", eye.Tower) {
					seen, err := eye.Look(p)
					require.NoError(t, err)
					rows = append(rows, seen.Rows...)
					require.Len(t, seen.Deep, len(deep))
					for i := range deep {
						deep[i] = append(deep[i], seen.Deep[i]...)
					}
				}
				converttest.Near(t, want[c.rows].Floats(), rows, tolerance)
				for i, name := range c.deep {
					converttest.Near(t, want[name].Floats(), deep[i], tolerance)
				}
			})
		}
	}
}
