package paint

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/diffuse"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/stages/model/pixels"
	"github.com/sluice-ai/sluice/storage/checkpoint"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func flux(t *testing.T, d backend.Device, folder string) *Flux {
	t.Helper()
	return fluxIn(t, Room{Device: d}, folder)
}

func fluxIn(t *testing.T, r Room, folder string) *Flux {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", folder, "transformer", "config.json"))
	require.NoError(t, err)
	s, err := pixels.ReadFluxSettings(text)
	require.NoError(t, err)
	x, err := OpenFlux(r, published(t, folder, "transformer"), s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	return x
}

// packed are latents row by row of a reference's patches.
func packed(x *Flux, grid ir.Grid, patches []float32) []float32 {
	rows := make([]float32, len(patches))
	x.order(grid, rows, patches)
	return rows
}

// fluxText is the text that the references of a folder are made with.
func fluxText(t *testing.T) *Text {
	return &Text{Rows: converttest.Tensors(t, "multimodal", "flux", "t5.safetensors")["last"].Floats(),
		Pooled: converttest.Tensors(t, "multimodal", "flux", "clip.safetensors")["pooled"].Floats()}
}

// TestFlux: what the transformer says is what diffusers' says, with a guidance and without.
func TestFlux(t *testing.T) {
	for _, d := range devices(t) {
		for _, folder := range []string{"flux", "flux_guidance"} {
			t.Run(d.Name()+" "+folder, func(t *testing.T) {
				x := flux(t, d, folder)
				r := converttest.Tensors(t, "multimodal", folder, "transformer.safetensors")
				text, guidance := fluxText(t), 0.0
				require.Equal(t, folder == "flux_guidance", x.Guided)
				if x.Guided {
					text = &Text{Rows: r["prompt_embeds"].Floats(), Pooled: r["pooled"].Floats()}
					guidance = float64(r["guidance"].Floats()[0])
				}
				grid, rows := latents(r["latents"])
				require.True(t, slices.Equal(r["packed"].Floats(), x.order(grid, rows, nil)), "patches are channel by channel")
				for range 2 { // an earlier evaluation leaves nothing
					got, err := x.Evaluate(grid, rows, text, float64(r["timestep"].Floats()[0]), guidance)
					require.NoError(t, err)
					converttest.Near(t, packed(x, grid, r["sample"].Floats()), got, tolerance)
					_, err = x.Evaluate(grid, rows, text, 0.125, 1)
					require.NoError(t, err)
				}
			})
		}
	}
}

// TestFluxPipeline: noise becomes the latents that diffusers' pipeline ends with.
func TestFluxPipeline(t *testing.T) {
	for _, d := range devices(t) {
		x := flux(t, d, "flux")
		r := converttest.Tensors(t, "multimodal", "flux", "run_4steps.safetensors")
		levels, err := diffuse.Flow{Shift: 1}.Levels(4, 0)
		require.NoError(t, err)
		require.InDeltaSlice(t, r["sigmas"].Floats(), levels, 1e-6)
		grid, rows := latents(r["latents_0"])
		for i := range 4 {
			v, err := x.Evaluate(grid, rows, fluxText(t), levels[i], 0)
			require.NoError(t, err)
			diffuse.Step(rows, v, levels[i], levels[i+1])
		}
		_, want := latents(r["latents_final"])
		converttest.Near(t, want, rows, tolerance)
	}
}

// TestFluxEncoders: texts become the rows and vectors of transformers' encoders.
func TestFluxEncoders(t *testing.T) {
	read := func(folder string) pixels.TextSettings {
		text, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", "flux", folder, "config.json"))
		require.NoError(t, err)
		_, s, err := pixels.ReadTextSettings(text)
		require.NoError(t, err)
		return s
	}
	for _, d := range devices(t) {
		r := converttest.Tensors(t, "multimodal", "flux", "clip.safetensors")
		rows, pooled, err := Clip(Room{Device: d}, published(t, "flux", "text_encoder"), read("text_encoder"), r["ids"].IDs())
		require.NoError(t, err)
		converttest.Near(t, r["last"].Floats(), rows, tolerance)
		converttest.Near(t, r["pooled"].Floats(), pooled, tolerance)
		r = converttest.Tensors(t, "multimodal", "flux", "t5.safetensors")
		rows, err = T5(Room{Device: d}, published(t, "flux", "text_encoder_2"), read("text_encoder_2"), r["ids"].IDs())
		require.NoError(t, err)
		converttest.Near(t, r["last"].Floats(), rows, tolerance)
	}
}

// TestEncodersOfFiles: encoders in files of their own, of the names that llama.cpp and stable-diffusion.cpp give them,
// are those of transformers, with the heads that shapes tell.
func TestEncodersOfFiles(t *testing.T) {
	d := devices(t)[1]
	f := published(t, "flux", "text_encoder_2")
	names := strings.NewReplacer("encoder.block.", "enc.blk.", "encoder.final_layer_norm", "enc.output_norm", "shared.", "token_embd.",
		"layer.0.SelfAttention.q.", "attn_q.", "layer.0.SelfAttention.k.", "attn_k.", "layer.0.SelfAttention.v.", "attn_v.",
		"layer.0.SelfAttention.o.", "attn_o.", "layer.0.SelfAttention.relative_attention_bias", "attn_rel_b",
		"layer.0.layer_norm", "attn_norm", "layer.1.layer_norm", "ffn_norm", "layer.1.DenseReluDense.wi_0", "ffn_gate",
		"layer.1.DenseReluDense.wi_1", "ffn_up", "layer.1.DenseReluDense.wo", "ffn_down")
	for i := range f.Tensors {
		f.Tensors[i].Name = names.Replace(f.Tensors[i].Name)
		require.NotContains(t, f.Tensors[i].Name, "layer.")
	}
	require.Equal(t, pixels.T5Kind, pixels.KindOf(tensors(f)))
	r := converttest.Tensors(t, "multimodal", "flux", "t5.safetensors")
	rows, err := T5(Room{Device: d}, f, pixels.T5Settings(tensors(f)), r["ids"].IDs())
	require.NoError(t, err)
	converttest.Near(t, r["last"].Floats(), rows, tolerance)

	f = published(t, "flux", "text_encoder")
	for i := range f.Tensors {
		f.Tensors[i].Name = "text_encoders.clip_l.transformer." + f.Tensors[i].Name
	}
	f.Tensors = append(f.Tensors, gguf.Tensor{Name: "logit_scale", Type: quant.F32, Shape: []int{1}},
		gguf.Tensor{Name: "text_projection.weight", Type: quant.F32, Shape: []int{4, 4}})
	require.Equal(t, pixels.ClipKind, pixels.KindOf(tensors(f)))
	settings := pixels.ClipL
	settings.Heads = 2
	r = converttest.Tensors(t, "multimodal", "flux", "clip.safetensors")
	rows, _, err = Clip(Room{Device: d}, f, settings, r["ids"].IDs())
	require.NoError(t, err)
	converttest.Near(t, r["last"].Floats(), rows, tolerance)
}

// TestReaderFits: rows of another encoder than the transformer was trained with are refused.
func TestReaderFits(t *testing.T) {
	d := devices(t)[1]
	text := fluxText(t)
	text.Width = 16
	_, err := flux(t, d, "flux").Read(text, 0)
	require.ErrorContains(t, err, "makes rows of 16 features, and the transformer reads 32")
	_, err = (&ZImage{ZImage: &pixels.ZImage{TextWidth: 48}}).Read(text, 0)
	require.ErrorContains(t, err, "reads 48")
}

// authored writes a transformer's file as its authors have it: their names, matrices of queries, keys and values in
// one, and the last norm's shift before its scale.
func authored(t *testing.T, prefix string) string {
	t.Helper()
	theirs := converttest.Tensors(t, "multimodal", "flux", "transformer", "diffusion_pytorch_model.safetensors")
	ours := map[string]converttest.Tensor{}
	take := func(to string, from ...string) {
		for _, kind := range []string{".weight", ".bias"} {
			x, joined := converttest.Tensor{}, 0
			for _, name := range from {
				part, ok := theirs[name+kind]
				if !ok {
					continue
				}
				joined++
				if x.Shape == nil {
					x.Shape = append([]int{0}, part.Shape[1:]...)
				}
				x.Shape[0] += part.Shape[0]
				x.Data = append(x.Data, part.Data...)
				delete(theirs, name+kind)
			}
			if joined > 0 && strings.HasSuffix(to, ".scale") {
				ours[prefix+to] = x
			} else if joined > 0 {
				ours[prefix+to+kind] = x
			}
		}
	}
	take("img_in", "x_embedder")
	take("txt_in", "context_embedder")
	for to, from := range map[string]string{"time_in": "timestep", "vector_in": "text"} {
		take(to+".in_layer", "time_text_embed."+from+"_embedder.linear_1")
		take(to+".out_layer", "time_text_embed."+from+"_embedder.linear_2")
	}
	for l := range 2 {
		at, to := fmt.Sprintf("transformer_blocks.%d.", l), fmt.Sprintf("double_blocks.%d.", l)
		take(to+"img_mod.lin", at+"norm1.linear")
		take(to+"txt_mod.lin", at+"norm1_context.linear")
		take(to+"img_attn.qkv", at+"attn.to_q", at+"attn.to_k", at+"attn.to_v")
		take(to+"txt_attn.qkv", at+"attn.add_q_proj", at+"attn.add_k_proj", at+"attn.add_v_proj")
		take(to+"img_attn.norm.query_norm.scale", at+"attn.norm_q")
		take(to+"img_attn.norm.key_norm.scale", at+"attn.norm_k")
		take(to+"txt_attn.norm.query_norm.scale", at+"attn.norm_added_q")
		take(to+"txt_attn.norm.key_norm.scale", at+"attn.norm_added_k")
		take(to+"img_attn.proj", at+"attn.to_out.0")
		take(to+"txt_attn.proj", at+"attn.to_add_out")
		for theirs, ours := range map[string]string{"ff": "img_mlp", "ff_context": "txt_mlp"} {
			take(to+ours+".0", at+theirs+".net.0.proj")
			take(to+ours+".2", at+theirs+".net.2")
		}
		at, to = "single_"+at, fmt.Sprintf("single_blocks.%d.", l)
		take(to+"modulation.lin", at+"norm.linear")
		take(to+"linear1", at+"attn.to_q", at+"attn.to_k", at+"attn.to_v", at+"proj_mlp")
		take(to+"linear2", at+"proj_out")
		take(to+"norm.query_norm.scale", at+"attn.norm_q")
		take(to+"norm.key_norm.scale", at+"attn.norm_k")
	}
	take("final_layer.linear", "proj_out")
	for name, x := range theirs { // norm_out alone is left
		half := len(x.Data) / 2
		x.Data = append(slices.Clone(x.Data[half:]), x.Data[:half]...)
		theirs[name] = x
	}
	take("final_layer.adaLN_modulation.1", "norm_out.linear")
	require.Empty(t, theirs)
	return written(t, ours)
}

// written writes tensors of bfloat16 to a file.
func written(t *testing.T, all map[string]converttest.Tensor) string {
	t.Helper()
	header, data := map[string]any{}, []byte(nil)
	for name, x := range all {
		header[name] = map[string]any{"dtype": "BF16", "shape": x.Shape, "data_offsets": []int{len(data), len(data) + len(x.Data)}}
		data = append(data, x.Data...)
	}
	text, err := json.Marshal(header)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "flux1-schnell.safetensors")
	data = append(append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), data...)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

// TestFluxAuthored: a file with the authors' names says what diffusers' folder does.
func TestFluxAuthored(t *testing.T) {
	d := devices(t)[1]
	whole := flux(t, d, "flux")
	r := converttest.Tensors(t, "multimodal", "flux", "transformer.safetensors")
	grid, rows := latents(r["latents"])
	want, err := whole.Evaluate(grid, rows, fluxText(t), 0.5, 0)
	require.NoError(t, err)
	for _, prefix := range []string{"", "model.diffusion_model."} {
		f, err := checkpoint.OpenUnchanged(authored(t, prefix))
		require.NoError(t, err)
		x, err := OpenFlux(Room{Device: d}, f, whole.FluxSettings)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		got, err := x.Evaluate(grid, rows, fluxText(t), 0.5, 0)
		require.NoError(t, err)
		converttest.Near(t, want, got, 1e-5)
		require.NoError(t, x.Close())
	}
}

func TestFluxBounds(t *testing.T) {
	x := flux(t, devices(t)[0], "flux")
	grid, rows := ir.Grid{Height: 2, Width: 2}, make([]float32, 64)
	_, err := x.Evaluate(grid, rows, &Text{}, 1, 0)
	require.ErrorContains(t, err, "a text of 0 numbers with a vector of 0, want 1 to 4096 rows of 32, and 32")
	_, err = x.Evaluate(ir.Grid{Height: 3, Width: 2}, nil, fluxText(t), 1, 0)
	require.ErrorContains(t, err, "want even numbers, and at most 16384 patches")
	f := published(t, "flux", "text_encoder")
	for _, tokens := range [][]int32{nil, make([]int32, 78)} {
		_, _, err = Clip(Room{Device: x.device}, f, pixels.TextSettings{Heads: 2}, tokens)
		require.ErrorContains(t, err, "want 1 to 77")
	}
	_, _, err = Clip(Room{Device: x.device}, f, pixels.TextSettings{Heads: 2}, []int32{514})
	require.ErrorContains(t, err, "token 514, want one of 514")
}
