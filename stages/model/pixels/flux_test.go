package pixels

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
)

// fluxTensors is a FLUX transformer's tensors by diffusers' names: 12 features, two heads, latents of 2 channels, two
// blocks of each kind.
func fluxTensors(guided bool) (all []ir.Tensor) {
	const width, inner = 12, 20
	vector := func(name string, n int) {
		all = append(all, ir.Tensor{Name: name, Type: quant.F32, Shape: []int{n}})
	}
	matrix := func(name string, in, out int) {
		all = append(all, ir.Tensor{Name: name + ".weight", Type: quant.F16, Shape: []int{in, out}})
		vector(name+".bias", out)
	}
	matrix("x_embedder", 8, width)
	matrix("context_embedder", 7, width)
	embedders := map[string]int{"timestep": Waves, "text": 5}
	if guided {
		embedders["guidance"] = Waves
	}
	for name, in := range embedders {
		matrix("time_text_embed."+name+"_embedder.linear_1", in, 9)
		matrix("time_text_embed."+name+"_embedder.linear_2", 9, width)
	}
	for l := range 2 {
		at := fmt.Sprintf("transformer_blocks.%d.", l)
		for _, m := range []string{"to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj", "to_add_out"} {
			matrix(at+"attn."+m, width, width)
		}
		for _, n := range []string{"norm_q", "norm_k", "norm_added_q", "norm_added_k"} {
			vector(at+"attn."+n+".weight", width/2)
		}
		for _, n := range []string{"", "_context"} {
			matrix(at+"norm1"+n+".linear", width, 6*width)
			matrix(at+"ff"+n+".net.0.proj", width, inner)
			matrix(at+"ff"+n+".net.2", inner, width)
		}
		at = fmt.Sprintf("single_transformer_blocks.%d.", l)
		for _, m := range []string{"to_q", "to_k", "to_v"} {
			matrix(at+"attn."+m, width, width)
		}
		vector(at+"attn.norm_q.weight", width/2)
		vector(at+"attn.norm_k.weight", width/2)
		matrix(at+"norm.linear", width, 3*width)
		matrix(at+"proj_mlp", width, inner)
		matrix(at+"proj_out", width+inner, width)
	}
	matrix("norm_out.linear", width, 2*width)
	matrix("proj_out", width, 8)
	return all
}

var smallFlux = FluxSettings{Axes: [3]int{2, 2, 2}}

func TestFluxSizes(t *testing.T) {
	for _, guided := range []bool{false, true} {
		f, err := NewFlux(fluxTensors(guided), smallFlux)
		require.NoError(t, err)
		require.Equal(t, [5]int{12, 2, 2, 7, 5}, [5]int{f.Width, f.Heads, f.Channels, f.TextWidth, f.PooledWidth})
		require.Equal(t, guided, f.Guided)
		require.Len(t, f.Image.Segments, 3)
		require.Len(t, f.Joint.Segments, 3)
		require.Len(t, f.Made, 7)
		require.Len(t, f.Timed.Segments, 1+7, "each modulation streams by itself")
		require.Equal(t, "norm_out.weight", f.Made[6][0].Name, "diffusers' scale comes before the shift")
	}
}

func TestFluxFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		file []ir.Tensor
		FluxSettings
		want string
	}{
		{"empty", nil, smallFlux, "no transformer that is known (FLUX.1): x_embedder.weight is missing"},
		{"waves", edited(fluxTensors(false), "time_text_embed.timestep_embedder.linear_1.weight", 9, 9), smallFlux, "takes 9 waves, want 256"},
		{"patch", edited(fluxTensors(false), "x_embedder.weight", 9, 12), smallFlux, "takes 9 features, want patches of 2 × 2"},
		{"heads", fluxTensors(false), FluxSettings{Axes: [3]int{2, 2, 4}}, "12 features are no heads of 8"},
		{"axes", fluxTensors(false), FluxSettings{Axes: [3]int{2, 2, 3}}, "the axes of a head are [2 2 3]"},
		{"norm", edited(fluxTensors(false), "transformer_blocks.1.attn.norm_added_k.weight"), smallFlux, `norm_added_k.weight" is missing`},
		{"shape", edited(fluxTensors(false), "single_transformer_blocks.0.proj_out.weight", 31, 12), smallFlux, `proj_out.weight" is 31×12`},
		{"more", append(fluxTensors(false), ir.Tensor{Name: "proj_in", Type: quant.F32, Shape: []int{2}}), smallFlux,
			`tensor "proj_in" is of no part that is known`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewFlux(c.file, c.FluxSettings)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestAnyFlux: shapes that a file has made up are an error, and no panic.
func TestAnyFlux(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, _ = NewFlux(misshapen(t, fluxTensors(true), 2, 5, 8, 12, 20), smallFlux)
	})
}

func TestReadFluxSettings(t *testing.T) {
	s, err := ReadFluxSettings([]byte(`{"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [4, 6, 6]}`))
	require.NoError(t, err)
	require.Equal(t, FluxSettings{Axes: [3]int{4, 6, 6}}, s)
	s, err = ReadFluxSettings([]byte(`{"_class_name": "FluxTransformer2DModel"}`))
	require.NoError(t, err)
	require.Equal(t, Flux1, s, "early configurations have no axes")
	_, err = ReadFluxSettings([]byte(`{"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [4]}`))
	require.ErrorContains(t, err, "with 1 axes_dims_rope, want FluxTransformer2DModel with 3")
	_, err = ReadFluxSettings([]byte("{"))
	require.Error(t, err)
}

func FuzzReadFluxSettings(f *testing.F) {
	f.Add([]byte(`{"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [4, 6, 6]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if s, err := ReadFluxSettings(text); err == nil {
			require.NoError(t, checkAxes(s.Axes))
		}
	})
}
