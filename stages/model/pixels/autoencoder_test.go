package pixels

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// pair is an autoencoder's tensors by diffusers' names: two levels of 4 and 8 channels, latents of 2.
func pair() (all []ir.Tensor) {
	norm := func(name string, n int) {
		for _, end := range []string{".weight", ".bias"} {
			all = append(all, ir.Tensor{Name: name + end, Type: quant.F32, Shape: []int{n}})
		}
	}
	add := func(name string, window, in, out int) { all = append(all, conv(name, window, in, out)...) }
	residual := func(name string, in, out int) {
		norm(name+".norm1", in)
		add(name+".conv1", 3, in, out)
		norm(name+".norm2", out)
		add(name+".conv2", 3, out, out)
		if in != out {
			add(name+".conv_shortcut", 1, in, out)
		}
	}
	middle := func(name string, n int) {
		residual(name+".resnets.0", n, n)
		norm(name+".attentions.0.group_norm", n)
		for _, m := range []string{"to_q", "to_k", "to_v", "to_out.0"} {
			add(name+".attentions.0."+m, 1, n, n)
		}
		residual(name+".resnets.1", n, n)
	}
	add("decoder.conv_in", 3, 2, 8)
	middle("decoder.mid_block", 8)
	residual("decoder.up_blocks.0.resnets.0", 8, 8)
	add("decoder.up_blocks.0.upsamplers.0.conv", 3, 8, 8)
	residual("decoder.up_blocks.1.resnets.0", 8, 4)
	norm("decoder.conv_norm_out", 4)
	add("decoder.conv_out", 3, 4, 3)
	add("encoder.conv_in", 3, 3, 4)
	residual("encoder.down_blocks.0.resnets.0", 4, 4)
	add("encoder.down_blocks.0.downsamplers.0.conv", 3, 4, 4)
	residual("encoder.down_blocks.1.resnets.0", 4, 8)
	middle("encoder.mid_block", 8)
	norm("encoder.conv_norm_out", 8)
	add("encoder.conv_out", 3, 8, 4)
	return all
}

var four = Settings{Groups: 4, Scaling: 1}

func TestAutoencoderSizes(t *testing.T) {
	a, err := NewAutoencoder(pair(), four)
	require.NoError(t, err)
	require.Equal(t, [2]int{2, 2}, [2]int{a.Side, a.Channels})
	require.Equal(t, []int{12, 4}, []int{width(t, a.Decoder, Pixels), width(t, a.Encoder, Moments)})
	alone := slices.DeleteFunc(pair(), func(t ir.Tensor) bool { return strings.HasPrefix(t.Name, "encoder.") })
	a, err = NewAutoencoder(alone, four)
	require.NoError(t, err)
	require.Nil(t, a.Encoder)
}

func width(t *testing.T, p *ir.Bound, name string) int {
	t.Helper()
	v, ok := p.Output(name)
	require.True(t, ok)
	return p.Widths[v]
}

// TestLatentNames: the names that FLUX's file has are those of diffusers.
func TestLatentNames(t *testing.T) {
	old := strings.NewReplacer("mid_block.resnets.0", "mid.block_1", "mid_block.resnets.1", "mid.block_2",
		"mid_block.attentions.0.group_norm", "mid.attn_1.norm", "mid_block.attentions.0.to_q", "mid.attn_1.q",
		"mid_block.attentions.0.to_k", "mid.attn_1.k", "mid_block.attentions.0.to_v", "mid.attn_1.v",
		"mid_block.attentions.0.to_out.0", "mid.attn_1.proj_out", "conv_shortcut", "nin_shortcut", "conv_norm_out", "norm_out",
		"up_blocks.0.resnets", "up.1.block", "up_blocks.1.resnets", "up.0.block", "up_blocks.0.upsamplers.0", "up.1.upsample",
		"down_blocks.0.resnets", "down.0.block", "down_blocks.1.resnets", "down.1.block",
		"down_blocks.0.downsamplers.0", "down.0.downsample")
	file := pair()
	for _, prefix := range []string{"", firstStage} {
		renamed := slices.Clone(file)
		for i := range renamed {
			renamed[i].Name = prefix + old.Replace(renamed[i].Name)
		}
		require.Equal(t, prefix+"decoder.up.1.upsample.conv.weight", renamed[slices.IndexFunc(file, func(t ir.Tensor) bool {
			return t.Name == "decoder.up_blocks.0.upsamplers.0.conv.weight"
		})].Name)
		for i, x := range Tensors(renamed, latentName(levelsOf(renamed))) {
			require.Equal(t, file[i].Name, x.Name)
		}
		_, err := NewAutoencoder(renamed, four)
		require.NoError(t, err)
	}
}

func TestAutoencoderFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		file []ir.Tensor
		Settings
		want string
	}{
		{"empty", nil, four, "decoder: 0 decoder.up_blocks, want 1 to 6"},
		{"groups", pair(), Settings{Groups: 3, Scaling: 1}, "decoder.mid_block.resnets.0.norm1 has 8 channels, want a multiple of 3"},
		{"no groups", pair(), Settings{Scaling: 1}, "norm_num_groups is 0"},
		{"scaling", pair(), Settings{Groups: 4}, "scaling_factor is 0"},
		{"shortcut", edited(pair(), "decoder.up_blocks.1.resnets.0.conv_shortcut.weight"), four, "resnets.0.conv_shortcut.weight is missing"},
		{"channels", edited(pair(), "decoder.up_blocks.0.upsamplers.0.conv.weight", 3, 3, 5, 8), four, "takes 5 channels, want 8"},
		{"colours", edited(pair(), "decoder.conv_out.weight", 3, 3, 4, 4), four, "decoder.conv_out makes 4 colours, want 3"},
		{"moments", edited(pair(), "encoder.conv_out.weight", 3, 3, 8, 6), four, "encoder.conv_out makes 6 channels, want 4"},
		{"levels", edited(pair(), "encoder.down_blocks.1.resnets.0.conv1.weight"), four, "encoder: 1 down_blocks, and cells of 2 pixels"},
		{"bias", edited(pair(), "decoder.conv_in.bias", 9), four, `"decoder.conv_in.bias" is 9, want 8`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewAutoencoder(c.file, c.Settings)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestAnyAutoencoder: shapes that a file has made up are an error, and no panic.
func TestAnyAutoencoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		settings := Settings{Groups: rapid.IntRange(-1, 9).Draw(t, "groups"), Scaling: 1}
		_, _ = NewAutoencoder(misshapen(t, pair(), 2, 3, 4, 8, 9), settings)
	})
}

func FuzzReadSettings(f *testing.F) {
	f.Add([]byte(`{"_class_name": "AutoencoderKL", "norm_num_groups": 32, "scaling_factor": 0.3611, "shift_factor": 0.1159}`))
	f.Add([]byte(`{"_class_name": "AutoencoderKL", "norm_num_groups": 1e99}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadSettings(text)
		if err == nil {
			require.NoError(t, s.check())
		}
	})
}

func TestReadSettings(t *testing.T) {
	const text = `{"_class_name": "AutoencoderKL", "norm_num_groups": 32, "scaling_factor": %s, "shift_factor": %s}`
	s, err := ReadSettings(fmt.Appendf(nil, text, "0.3611", "0.1159"))
	require.NoError(t, err)
	require.Equal(t, Published, s)
	s, err = ReadSettings(fmt.Appendf(nil, text, "0.18215", "null"))
	require.NoError(t, err)
	require.Equal(t, Settings{Groups: 32, Scaling: 0.18215}, s)
	for text, want := range map[string]string{
		`{"_class_name": "UNet"}`: `_class_name is "UNet", want AutoencoderKL`, `[`: "unexpected end",
		`{"_class_name": "AutoencoderKL", "norm_num_groups": 8}`: "scaling_factor is 0, want more than 0",
	} {
		_, err = ReadSettings([]byte(text))
		require.ErrorContains(t, err, want)
	}
}
