package picture

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// TestProcessorsAreTheLibrarys: all pictures of all references, exact where nothing was resized, else to one step of a
// byte.
func TestProcessorsAreTheLibrarys(t *testing.T) {
	root := filepath.Join(testref.Dir(t), "multimodal")
	for _, c := range []struct {
		folder string
		tokens []int // of its processor_exact or processor file
	}{
		{"llava", []int{25}}, {"gemma3_vision", []int{16}}, {"qwen25vl", []int{15}}, {"qwen25vl_2img", []int{15, 6}},
		{"qwen3vl", []int{15}}, {"qwen3vl_2img", []int{15, 6}},
	} {
		t.Run(c.folder, func(t *testing.T) {
			model := filepath.Join(root, strings.TrimSuffix(c.folder, "_2img"))
			processor, err := os.ReadFile(filepath.Join(model, "preprocessor_config.json"))
			require.NoError(t, err)
			config, err := os.ReadFile(filepath.Join(model, "config.json"))
			require.NoError(t, err)
			s, err := FromFolder(processor, config)
			require.NoError(t, err)
			files, err := filepath.Glob(filepath.Join(root, c.folder, "processor*.safetensors"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			for _, file := range files {
				tokens := sameAsReference(t, s, converttest.Tensors(t, "multimodal", c.folder, filepath.Base(file)), filepath.Base(file))
				if name := filepath.Base(file); name == "processor.safetensors" || name == "processor_exact.safetensors" {
					require.Equal(t, c.tokens, tokens)
				}
			}
		})
	}
}

func sameAsReference(t *testing.T, s *Settings, all map[string]converttest.Tensor, name string) (tokens []int) {
	want := all["pixel_values"].Floats()
	var got []float32
	exact := true
	for i, image := range []string{"image_0_u8", "image_1_u8"} {
		u8, ok := all[image]
		if !ok {
			break
		}
		b := &Bitmap{u8.Shape[1], u8.Shape[0], u8.Data}
		p, err := s.process(b)
		require.NoError(t, err)
		exact = exact && p.Width == b.Width && p.Height == b.Height
		got = append(got, p.Values()...)
		tokens = append(tokens, p.Tokens)
		if grid, ok := all["image_grid_thw"]; ok {
			for j := range p.Grid {
				require.Equal(t, grid.Longs()[3*i+j], p.Grid[j], "%s: grid", name)
			}
		}
	}
	require.Len(t, got, len(want), name)
	allowed := 0.0
	if !exact {
		allowed = 1.001 / 255 / float64(min(s.Std[0], s.Std[1], s.Std[2]))
	}
	different := 0
	for i := range want {
		if d := math.Abs(float64(want[i] - got[i])); d > allowed {
			t.Fatalf("%s: value %d is %g, want %g (±%g)", name, i, got[i], want[i], allowed)
		}
		if want[i] != got[i] {
			different++
		}
	}
	t.Logf("%s: exact size %t, %d of %d values differ", name, exact, different, len(want))
	return tokens
}
