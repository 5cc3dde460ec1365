package convert_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/element"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/stages/model/arch"
	"github.com/sluice-ai/sluice/stages/model/convert"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// withHead returns the folder of a fixture with a head behind its layers: a copy of the last layer that attends, under
// other names, and what makes it a head, named as apart says (Qwen) or in the layer.
func withHead(t *testing.T, name string, apart bool) (f *convert.Folder, layers int) {
	folders, _ := converttest.Folders(t)
	all := folders[name]
	require.NotEmpty(t, all)
	f = &convert.Folder{Name: name, Tensors: slices.Clone(all),
		Texts: map[string][]byte{"config.json": converttest.Config(t, name)}}
	var from string
	width := 0
	for _, x := range all {
		at := strings.Index(x.Name, "layers.")
		if strings.HasSuffix(x.Name, "embed_tokens.weight") {
			width = x.Shape[1]
		}
		if at < 0 {
			continue
		}
		var l int
		_, err := fmt.Sscanf(x.Name[at:], "layers.%d.", &l)
		require.NoError(t, err)
		if layers = max(layers, l+1); strings.Contains(x.Name, "self_attn.") {
			from = x.Name[:at] + fmt.Sprintf("layers.%d.", l)
		}
	}
	to := from[:strings.Index(from, "layers.")] + fmt.Sprintf("layers.%d.", layers)
	parts := []string{"eh_proj", "enorm", "hnorm", "shared_head.norm"}
	outside := to
	if apart {
		to, outside = "mtp.layers.0.", "mtp."
		parts = []string{"fc", "pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"}
	}
	for _, x := range all {
		if rest, ok := strings.CutPrefix(x.Name, from); ok {
			x.Name = to + rest
			f.Tensors = append(f.Tensors, x)
		}
	}
	for i, part := range parts {
		shape := []int{width}
		if i == 0 {
			shape = []int{width, 2 * width}
		}
		f.Tensors = append(f.Tensors, element.Tensor{Name: outside + part + ".weight", Type: element.F32, Shape: shape})
	}
	return f, layers
}

// TestHeadsAreKept: heads of a folder become layers behind the others, and trunk and head together use each tensor.
func TestHeadsAreKept(t *testing.T) {
	for _, c := range []struct {
		fixture string
		apart   bool
	}{{"glm4moe", false}, {"deepseek3", false}, {"qwen35", true}, {"qwen35moe", true}, {"qwen3next", true}} {
		t.Run(c.fixture, func(t *testing.T) {
			f, layers := withHead(t, c.fixture, c.apart)
			plan, err := convert.Plan(f, convert.Options{})
			require.NoError(t, err)
			name, err := plan.Meta.String("general.architecture")
			require.NoError(t, err)
			for key, want := range map[string]int{"block_count": layers + 1, "nextn_predict_layers": 1} {
				n, err := plan.Meta.Int(name + "." + key)
				require.NoError(t, err)
				require.EqualValues(t, want, n, key)
			}
			var tensors []ir.Tensor
			unused := map[string]bool{}
			for _, x := range plan.Tensors {
				tensors = append(tensors, ir.Tensor{Name: x.Name, Type: quant.F32, Shape: x.Shape})
				unused[x.Name] = true
				if strings.HasSuffix(x.Name, "nextn.hnorm.weight") {
					require.Equal(t, c.apart, x.Change == convert.Plus1, "norms of Qwen multiply by one more")
				}
			}
			has := func(name string) bool { _, ok := unused[name]; return ok }
			for _, head := range []bool{false, true} {
				p, err := arch.Record(plan.Meta, has, arch.Options{Head: head})
				require.NoError(t, err)
				_, err = ir.Bind(p, tensors)
				require.NoError(t, err)
				for _, w := range p.Weights {
					unused[w.Name] = false
				}
			}
			for name, is := range unused {
				require.False(t, is, name)
			}
		})
	}
}

// A folder that lacks what makes a layer a head has none, whatever else it has behind its layers.
func TestNoHeads(t *testing.T) {
	f, layers := withHead(t, "glm4moe", false)
	f.Tensors = slices.DeleteFunc(f.Tensors, func(x element.Tensor) bool { return strings.Contains(x.Name, "eh_proj") })
	plan, err := convert.Plan(f, convert.Options{})
	require.NoError(t, err)
	n, err := plan.Meta.Int("glm4moe.block_count")
	require.NoError(t, err)
	require.EqualValues(t, layers, n)
	for _, x := range plan.Tensors {
		require.NotContains(t, x.Name, fmt.Sprintf("blk.%d.", layers))
	}
}
