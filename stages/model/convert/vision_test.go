package convert_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// TestTextsOfModelsThatSee: a folder's text and its tower become files of their own. A folder without a tokenizer has
// tokens by their numbers alone.
func TestTextsOfModelsThatSee(t *testing.T) {
	for _, c := range []struct {
		folder, arch, kind string
		sections           []int64
	}{
		{"llava", "llama", "mlp", nil}, {"gemma3_vision", "gemma3", "gemma3", nil},
		{"qwen25vl", "qwen2vl", "qwen2.5vl_merger", []int64{2, 3, 3, 0}},
		{"qwen3vl", "qwen3vl", "qwen3vl_merger", []int64{4, 2, 2, 0}},
	} {
		dir := filepath.Join(testref.Dir(t), "multimodal", c.folder)
		text := converttest.Convert(t, dir, func(f *convert.Folder) (*convert.Model, error) {
			return convert.Plan(f, convert.Options{})
		})
		arch, err := text.Meta.String("general.architecture")
		require.NoError(t, err)
		require.Equal(t, c.arch, arch)
		tokens, err := text.Meta.Strings("tokenizer.ggml.tokens")
		require.NoError(t, err)
		require.Len(t, tokens, 256)
		require.Equal(t, "[PAD17]", tokens[17])
		sections, _ := text.Meta.Ints(arch + ".rope.dimension_sections")
		require.Equal(t, c.sections, sections)
		tower := converttest.Convert(t, dir, func(f *convert.Folder) (*convert.Model, error) {
			return convert.PlanVision(f, convert.Options{})
		})
		kind, err := tower.Meta.String("clip.projector_type")
		require.NoError(t, err)
		require.Equal(t, c.kind, kind)
		for _, x := range tower.Tensors {
			_, both := text.Tensor(x.Name)
			require.False(t, both, x.Name)
		}
	}
}

// TestTowersAreRefused: what config.json says of a tower is checked before tensors are read.
func TestTowersAreRefused(t *testing.T) {
	plan := func(config string) error {
		f := &convert.Folder{Name: "x", Texts: map[string][]byte{"config.json": []byte(config)},
			Tensors: []element.Tensor{{Name: "visual.inv_freq", Type: element.F32, Shape: []int{2}}}}
		m, err := convert.PlanVision(f, convert.Options{})
		if err == nil {
			require.Nil(t, m)
		}
		return err
	}
	require.NoError(t, plan(`{"architectures": ["LlamaForCausalLM"]}`), "it does not see")
	require.ErrorContains(t, plan(`{"architectures": ["Qwen3VLForConditionalGeneration"], "vision_config": {"depth": 2}}`),
		"it holds no tensors of a tower")
	require.ErrorContains(t, plan(`{"architectures": ["LlavaForConditionalGeneration"], "vision_feature_layer": -9,
		"vision_config": {"num_hidden_layers": 3}}`), "vision_feature_layer is not among 3 layers")
	require.ErrorContains(t, plan(`{"architectures": [`), "config.json")
}
