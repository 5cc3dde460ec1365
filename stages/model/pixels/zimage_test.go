package pixels

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// transformer is a Z-Image transformer's tensors by diffusers' names: 12 features, two heads, latents of 2 channels.
func transformer() (all []ir.Tensor) {
	const width, inner, condition = 12, 20, 5
	vector := func(name string, n int) {
		all = append(all, ir.Tensor{Name: name, Type: quant.F32, Shape: []int{n}})
	}
	matrix := func(name string, in, out int, bias bool) {
		if all = append(all, ir.Tensor{Name: name + ".weight", Type: quant.F16, Shape: []int{in, out}}); bias {
			vector(name+".bias", out)
		}
	}
	matrix("all_x_embedder.2-1", 8, width, true)
	vector("cap_embedder.0.weight", 7)
	matrix("cap_embedder.1", 7, width, true)
	vector("x_pad_token", width)
	vector("cap_pad_token", width)
	matrix("t_embedder.mlp.0", Waves, 9, true)
	matrix("t_embedder.mlp.2", 9, condition, true)
	for _, l := range []string{"noise_refiner.0.", "context_refiner.0.", "layers.0.", "layers.1."} {
		if l != "context_refiner.0." {
			matrix(l+"adaLN_modulation.0", condition, 4*width, true)
		}
		for _, m := range []string{"to_q", "to_k", "to_v", "to_out.0"} {
			matrix(l+"attention."+m, width, width, false)
		}
		vector(l+"attention.norm_q.weight", width/2)
		vector(l+"attention.norm_k.weight", width/2)
		for _, n := range []string{"attention_norm1", "attention_norm2", "ffn_norm1", "ffn_norm2"} {
			vector(l+n+".weight", width)
		}
		matrix(l+"feed_forward.w1", width, inner, false)
		matrix(l+"feed_forward.w2", inner, width, false)
		matrix(l+"feed_forward.w3", width, inner, false)
	}
	matrix("all_final_layer.2-1.linear", width, 8, true)
	matrix("all_final_layer.2-1.adaLN_modulation.1", condition, width, true)
	return all
}

var small = ZImageSettings{Axes: [3]int{2, 2, 2}, Theta: 256, Scale: 1000, Eps: 1e-5}

func TestZImageSizes(t *testing.T) {
	z, err := NewZImage(transformer(), small)
	require.NoError(t, err)
	require.Equal(t, [3]int{12, 2, 7}, [3]int{z.Width, z.Channels, z.TextWidth})
	require.Len(t, z.Joint.Segments, 3)
	require.NotContains(t, z.Text.String(), "soft cap", "a text is refined without a condition")
}

// TestZImageNames: the names of its authors, where q, k and v are one matrix, are those of diffusers.
func TestZImageNames(t *testing.T) {
	old := strings.NewReplacer("all_x_embedder.2-1", "x_embedder", "all_final_layer.2-1", "final_layer", "to_out.0", "out",
		"norm_q", "q_norm", "norm_k", "k_norm", "to_q", "qkv")
	for _, prefix := range []string{"", "model.diffusion_model."} {
		var file []ir.Tensor
		for _, x := range transformer() {
			if strings.Contains(x.Name, "to_k") || strings.Contains(x.Name, "to_v") {
				continue
			}
			if strings.Contains(x.Name, "to_q") {
				x.Shape = []int{12, 36}
			}
			x.Name = prefix + old.Replace(x.Name)
			file = append(file, x)
		}
		require.Equal(t, prefix+"x_embedder.weight", file[0].Name)
		z, err := NewZImage(file, small)
		require.NoError(t, err)
		require.Contains(t, z.Joint.String(), "layers.1.attention.qkv.weight")
	}
}

func TestZImageFaults(t *testing.T) {
	heads := small
	heads.Axes[0] = 4
	for _, c := range []struct {
		name string
		file []ir.Tensor
		ZImageSettings
		want string
	}{
		{"empty", nil, small, "no transformer that is known (Z-Image): all_x_embedder.2-1.weight is missing"},
		{"waves", edited(transformer(), "t_embedder.mlp.0.weight", 9, 9), small, "takes 9 waves, want 256"},
		{"patch", edited(transformer(), "all_x_embedder.2-1.weight", 9, 12), small, "all_x_embedder takes 9 features, want patches of 2 × 2"},
		{"heads", transformer(), heads, "12 features are no heads of 8"},
		{"axes", transformer(), ZImageSettings{Axes: [3]int{1, 2, 2}}, "the axes of a head are [1 2 2]"},
		{"theta", transformer(), ZImageSettings{Axes: small.Axes}, "rope_theta is 0"},
		{"norm", edited(transformer(), "layers.1.ffn_norm2.weight"), small, `"layers.1.ffn_norm2.weight" is missing`},
		{"shape", edited(transformer(), "layers.0.feed_forward.w2.weight", 20, 13), small, `"layers.0.feed_forward.w2.weight" is 20×13`},
		{"more", append(transformer(), ir.Tensor{Name: "layers.0.other", Type: quant.F32, Shape: []int{2}}), small,
			`tensor "layers.0.other" is of no part that is known`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewZImage(c.file, c.ZImageSettings)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestAnyZImage: shapes that a file has made up are an error, and no panic.
func TestAnyZImage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, _ = NewZImage(misshapen(t, transformer(), 2, 5, 8, 12), small)
	})
}

func FuzzReadZImageSettings(f *testing.F) {
	f.Add([]byte(`{"_class_name": "ZImageTransformer2DModel", "axes_dims": [32, 48, 48], "rope_theta": 256, "t_scale": 1000}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ReadZImageSettings(text)
		if err == nil {
			require.NoError(t, s.check())
		}
	})
}

func TestReadZImageSettings(t *testing.T) {
	const text = `{"_class_name": "ZImageTransformer2DModel", "axes_dims": [32, 48%s], "rope_theta": 256.0, "t_scale": 1000.0,
		"norm_eps": 1e-05}`
	s, err := ReadZImageSettings(fmt.Appendf(nil, text, ", 48"))
	require.NoError(t, err)
	require.Equal(t, ZImageTurbo, s)
	_, err = ReadZImageSettings(fmt.Appendf(nil, text, ""))
	require.ErrorContains(t, err, "with 2 axes_dims, want ZImageTransformer2DModel with 3")
	_, err = ReadZImageSettings([]byte("{"))
	require.Error(t, err)
}

// TestWaves: cosines come first, and the slowest wave last.
func TestWaves(t *testing.T) {
	x := small.WavesOf(0)
	require.Equal(t, []float32{1, 1, 0, 0}, []float32{x[0], x[127], x[128], x[255]})
	x = small.WavesOf(0.25)
	require.InDelta(t, 0.2409, x[0], 1e-3)    // cos 250
	require.InDelta(t, -0.9705, x[128], 1e-3) // sin 250
}
