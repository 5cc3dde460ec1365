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

// TestMLXNorms: folders of MLX have the 1 added to norms of Qwen 3.5's kind, convolutions turned, and experts in one
// piece.
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
				one.Name = strings.Replace(one.Name, "mlp.experts.down_proj", "mlp.switch_mlp.down_proj.weight", 1)
				if base, ok := strings.CutSuffix(one.Name, "mlp.switch_mlp.down_proj.weight"); ok {
					x.Data[one.Name] = x.Data[base+"mlp.experts.down_proj"]
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
