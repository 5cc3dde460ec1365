package convert_test

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// bytesOf has the bytes of each tensor of a file.
func bytesOf(t *testing.T, f *gguf.File) map[string]string {
	t.Helper()
	all := map[string]string{}
	for i := range f.Tensors {
		require.NoError(t, f.View(&f.Tensors[i], func(data []byte) error {
			all[f.Tensors[i].Name] = string(data)
			return nil
		}))
	}
	return all
}

// TestPackedFolders: a folder that another tool packed becomes the file that a folder of its numbers becomes, bit for
// bit, rows of queries and keys in their new order included.
func TestPackedFolders(t *testing.T) {
	for _, p := range converttest.Packings() {
		t.Run(p.Name, func(t *testing.T) {
			plan := func(f *convert.Folder) (*convert.Model, error) { return convert.Plan(f, convert.Options{}) }
			packed, plain := p.Folders(t)
			got, want := converttest.Convert(t, packed, plan), converttest.Convert(t, plain, plan)
			require.Equal(t, bytesOf(t, want), bytesOf(t, got))
			require.Equal(t, want.Meta, got.Meta)
			x, ok := got.Tensor("blk.1.ffn_down.weight")
			require.True(t, ok)
			require.Equal(t, quant.F32, x.Type)
			require.Equal(t, []int{96, 64}, x.Shape)
		})
	}
}

// TestMLXExperts: folders of MLX have the matrices of all experts in one piece, by names of their own.
func TestMLXExperts(t *testing.T) {
	for class, module := range map[string]string{"Qwen3MoeForCausalLM": "mlp", "MixtralForCausalLM": "block_sparse_moe"} {
		f := &convert.Folder{Name: "x", Texts: map[string][]byte{"config.json": []byte(`{"architectures": ["` + class + `"],
			"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 32, "moe_intermediate_size": 32, "num_experts": 4,
			"num_attention_heads": 4, "vocab_size": 40, "rms_norm_eps": 1e-5, "num_experts_per_tok": 2}`)}}
		layer := "model.layers.0." + module + ".switch_mlp."
		f.Tensors = tensorsOf(t, "", "model.embed_tokens.weight 40 64; "+layer+"gate_proj.weight 4 32 64; "+
			layer+"up_proj.weight 4 32 64; "+layer+"down_proj.weight 4 64 32")
		m, err := convert.Plan(f, convert.Options{})
		require.NoError(t, err, class)
		shapes := map[string][]int{}
		for _, x := range m.Tensors {
			shapes[x.Name] = x.Shape
		}
		require.Equal(t, map[string][]int{"token_embd.weight": {64, 40}, "blk.0.ffn_gate_exps.weight": {64, 32, 4},
			"blk.0.ffn_up_exps.weight": {64, 32, 4}, "blk.0.ffn_down_exps.weight": {32, 64, 4}}, shapes)
	}
}

// TestMLXNorms: folders of MLX have the 1 added to norms of Qwen 3.5's kind, and convolutions turned.
func TestMLXNorms(t *testing.T) {
	all, _ := converttest.Folders(t)
	for _, name := range []string{"qwen3next", "qwen35", "qwen35moe"} {
		t.Run(name, func(t *testing.T) {
			require.NotEmpty(t, all[name])
			x := converttest.Open(t, name, all[name])
			mlx, found := *x.Folder, 0
			mlx.Tensors = nil
			for _, one := range x.Folder.Tensors {
				norm := strings.HasSuffix(one.Name, "norm.weight") && !strings.HasSuffix(one.Name, "linear_attn.norm.weight")
				switch {
				case strings.Contains(one.Name, "conv1d"):
					one.Shape = []int{one.Shape[0], one.Shape[2], one.Shape[1]}
					found++
				case norm:
					for data := x.Data[one.Name]; len(data) > 0; data = data[4:] {
						v := math.Float32frombits(binary.LittleEndian.Uint32(data)) + 1
						binary.LittleEndian.PutUint32(data, math.Float32bits(v))
					}
				}
				mlx.Tensors = append(mlx.Tensors, one)
			}
			require.Positive(t, found)
			plan, err := convert.Plan(&mlx, x.Options())
			require.NoError(t, err)
			for i := range plan.Tensors {
				(fixture{x}).sameTensor(t, &plan.Tensors[i])
			}
		})
	}
}
