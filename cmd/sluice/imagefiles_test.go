package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
	"github.com/sluice-ai/sluice/storage/safetensors"
)

// tinyParts makes files of the tiny parts of a model that makes pictures, as other programs have them.
func tinyParts(t *testing.T, transformer, typ string) (folder string) {
	t.Helper()
	dir := t.TempDir()
	synth := func(name string, args ...string) {
		o := sluice("", append([]string{"synth", "--quant", typ, "-o", filepath.Join(dir, name)}, args...)...)
		require.Zero(t, o.code, o.stderr)
	}
	synth("transformer.gguf", "--tiny", "--shape", transformer)
	synth("ae.gguf", "--tiny", "--shape", "flux-ae")
	if transformer != "z-image-turbo" {
		synth("clip_l.gguf", "--tiny", "--shape", "clip-l")
		synth("t5xxl.gguf", "--tiny", "--shape", "t5-xxl")
		return dir
	}
	config := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"model_type": "qwen3", "hidden_size": 256, "intermediate_size": 256, "head_dim": 64,
		"num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 8192, "max_position_embeddings": 1024}`), 0o600))
	synth("qwen.gguf", "--config", config)
	require.NoError(t, os.Remove(config))
	return dir
}

// drawn is the picture that a model makes, of 32 × 32 pixels.
func drawn(t *testing.T, model string, more ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.png")
	o := sluice("", append([]string{"image", "-m", model, "-o", out, "--size", "32x32", "--seed", "4", "a cat"}, more...)...)
	require.Zero(t, o.code, o.stderr)
	return read(t, out)
}

// republished writes the tensors of a file to a folder as diffusers has it, with its config.json.
func republished(t *testing.T, file, folder, config string) {
	t.Helper()
	f, err := gguf.Open(file)
	require.NoError(t, err)
	var all []safetensors.Floats
	for i := range f.Tensors {
		x := &f.Tensors[i]
		shape, n := slices.Clone(x.Shape), 1
		slices.Reverse(shape)
		for _, d := range shape {
			n *= d
		}
		values := make([]float32, n)
		require.NoError(t, f.View(x, func(data []byte) error { return quant.Dequantize(x.Type, values, data) }))
		all = append(all, safetensors.Floats{Name: x.Name, Shape: shape, Values: values})
	}
	require.NoError(t, f.Close())
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "config.json"), []byte(config), 0o600))
	out, err := os.Create(filepath.Join(folder, "diffusion_pytorch_model.safetensors"))
	require.NoError(t, err)
	require.NoError(t, safetensors.Write(out, all))
	require.NoError(t, out.Close())
}

// TestImageFiles: parts in files of their own, which lie beside each other or are named, make the picture of a folder
// that says by its configurations what was published.
func TestImageFiles(t *testing.T) {
	const flux = `{"_class_name": "FluxTransformer2DModel", "axes_dims_rope": [16, 56, 56], "guidance_embeds": %v}`
	for _, c := range []struct {
		shape, class, config, scheduler string
		encoders                        map[string]string // by flag
		steps, said                     string            // --steps, and what the picture says of them
	}{
		{"z-image-turbo", "ZImagePipeline",
			`{"_class_name": "ZImageTransformer2DModel", "axes_dims": [32, 48, 48], "rope_theta": 256, "t_scale": 1000, "norm_eps": 1e-5}`,
			`"shift": 3`, map[string]string{"--llm": "qwen.gguf"}, "8", "Steps: 8, CFG scale: 0"},
		{"flux-schnell", "FluxPipeline", fmt.Sprintf(flux, false), `"shift": 1`,
			map[string]string{"--clip-l": "clip_l.gguf", "--t5xxl": "t5xxl.gguf"}, "4", "Steps: 4, CFG scale: 0"},
		{"flux-dev", "FluxPipeline", fmt.Sprintf(flux, true), `"use_dynamic_shifting": true, "shift": 3`,
			map[string]string{"--clip-l": "clip_l.gguf", "--t5xxl": "t5xxl.gguf"}, "1", "Steps: 1, CFG scale: 3.5"},
	} {
		t.Run(c.shape, func(t *testing.T) {
			dir, folder := tinyParts(t, c.shape, "F32"), t.TempDir()
			want := drawn(t, dir, "--steps", c.steps)
			require.Contains(t, string(want), c.said)
			if c.shape != "flux-dev" {
				require.Equal(t, want, drawn(t, filepath.Join(dir, "transformer.gguf")), "by its transformer, in the usual steps")
			}

			write := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
			}
			write("model_index.json", fmt.Sprintf(`{"_class_name": %q}`, c.class))
			write("scheduler/scheduler_config.json", `{"_class_name": "FlowMatchEulerDiscreteScheduler", `+c.scheduler+`}`)
			republished(t, filepath.Join(dir, "transformer.gguf"), filepath.Join(folder, "transformer"), c.config)
			republished(t, filepath.Join(dir, "ae.gguf"), filepath.Join(folder, "vae"),
				`{"_class_name": "AutoencoderKL", "norm_num_groups": 32, "scaling_factor": 0.3611, "shift_factor": 0.1159}`)
			named := []string{"--steps", c.steps}
			for flag, file := range c.encoders {
				named = append(named, flag, filepath.Join(dir, file))
			}
			require.Equal(t, want, drawn(t, folder, named...), "what a folder says of itself was published so")

			if c.shape != "flux-schnell" {
				return
			}
			alone := filepath.Join(t.TempDir(), "x.safetensors")
			require.NoError(t, os.Rename(filepath.Join(folder, "transformer", "diffusion_pytorch_model.safetensors"), alone))
			require.Equal(t, want, drawn(t, alone, append(named, "--vae", filepath.Join(dir, "ae.gguf"))...))
		})
	}
}

// TestImageFilesQuantized: parts in blocks of eight bits make a picture near that of whole numbers, and of four one.
func TestImageFilesQuantized(t *testing.T) {
	for _, shape := range []string{"z-image-turbo", "flux-schnell"} {
		for _, typ := range []string{"Q8_0", "Q4_K_M"} {
			require.NotEmpty(t, drawn(t, tinyParts(t, shape, typ), "--steps", "1"))
		}
	}
}

// TestImageFilesMissing: a part that is missing, or there twice, or has no vocabulary is named, with where to get it.
func TestImageFilesMissing(t *testing.T) {
	dir := tinyParts(t, "flux-schnell", "Q8_0")
	at := func(name string) string { return filepath.Join(dir, name) }
	fails := func(want ...string) {
		t.Helper()
		o := sluice("", "image", "-m", dir, "-o", at("out.png"), "--size", "16x16", "a cat")
		require.NotZero(t, o.code)
		for _, w := range want {
			require.Contains(t, o.stderr, w)
		}
		require.NoFileExists(t, at("out.png"))
	}
	away := t.TempDir()
	without := func(name string, want ...string) {
		t.Helper()
		require.NoError(t, os.Rename(at(name), filepath.Join(away, name)))
		fails(want...)
		require.NoError(t, os.Rename(filepath.Join(away, name), at(name)))
	}
	without("ae.gguf", "the autoencoder is missing: put ae.safetensors of huggingface.co/", "or name it by --vae")
	without("clip_l.gguf", "CLIP-L is missing: put clip_l.safetensors of huggingface.co/", "or name it by --clip-l")
	without("t5xxl.gguf", "T5-XXL is missing", "--t5xxl")
	without("transformer.gguf", "has neither a model_index.json nor a file of a transformer")
	require.NoError(t, os.WriteFile(at("bad.safetensors"), []byte("no file"), 0o600))
	without("ae.gguf", "the autoencoder is missing", "bad.safetensors")
	require.NotEmpty(t, drawn(t, dir, "--steps", "1"), "what is not needed is no fault")

	require.NoError(t, os.WriteFile(at("b.gguf"), read(t, at("ae.gguf")), 0o600))
	fails("b.gguf: are all of one kind: name one by --vae")
	require.NotEmpty(t, drawn(t, dir, "--steps", "1", "--vae", at("b.gguf")))
	require.NoError(t, os.Rename(at("transformer.gguf"), at("c.gguf")))
	require.NoError(t, os.WriteFile(at("d.gguf"), read(t, at("c.gguf")), 0o600))
	fails("has several transformers", "c.gguf", "d.gguf")
	require.NotEmpty(t, drawn(t, at("d.gguf"), "--steps", "1", "--vae", at("b.gguf")))

	o := sluice("", "image", "-m", at("b.gguf"), "-o", at("out.png"), "a cat")
	require.Contains(t, o.stderr, "has no transformer of Z-Image or FLUX.1")
	o = sluice("", "image", "-m", at("c.gguf"), "--vae", at("b.gguf"), "--t5xxl", at("clip_l.gguf"), "-o", at("out.png"), "a cat")
	require.Contains(t, o.stderr, "clip_l.gguf: is not FLUX.1's second encoder of texts")
}

// TestImageVocabularies: encoders whose files have no vocabulary, as published ones of safetensors, take that of files
// beside them, or below as diffusers has it.
func TestImageVocabularies(t *testing.T) {
	dir := tinyParts(t, "flux-schnell", "F32")
	for _, name := range []string{"clip_l", "t5xxl"} {
		folder := t.TempDir()
		republished(t, filepath.Join(dir, name+".gguf"), folder, "{}")
		require.NoError(t, os.Rename(filepath.Join(folder, "diffusion_pytorch_model.safetensors"), filepath.Join(dir, name+".safetensors")))
		require.NoError(t, os.Remove(filepath.Join(dir, name+".gguf")))
	}
	o := sluice("", "image", "-m", dir, "-o", filepath.Join(dir, "out.png"), "a cat")
	require.NotZero(t, o.code)
	require.Contains(t, o.stderr, "clip_l.safetensors: has no vocabulary: put vocab.json and merges.txt of huggingface.co/openai/")
	require.Contains(t, o.stderr, "t5xxl.safetensors: has no vocabulary: put spiece.model of huggingface.co/google/t5-v1_1-xxl beside it")
	merges, vocab := clipTokens(t)
	words := map[string]string{"merges.txt": merges, "vocab.json": vocab, "spiece.model": t5Tokens(t)}
	for _, below := range []map[string]string{{}, {"merges.txt": "tokenizer", "vocab.json": "tokenizer", "spiece.model": "tokenizer_2"}} {
		for name, text := range words {
			require.NoError(t, os.MkdirAll(filepath.Join(dir, below[name]), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(dir, below[name], name), []byte(text), 0o600))
		}
		require.NotEmpty(t, drawn(t, dir, "--steps", "1"))
		for name := range words {
			require.NoError(t, os.Remove(filepath.Join(dir, below[name], name)))
		}
	}
}

// TestSynthPictures: the parts of models that make pictures are listed with the sizes that were published, are the same
// for the same seed, and an upscaler among them enlarges a picture.
func TestSynthPictures(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	o := sluice("", "synth", "--list", "--quant", "Q8_0")
	require.Zero(t, o.code, o.stderr)
	require.Regexp(t, `flux-schnell +flux +- +- +11\.89 B +11\.8 GiB`, o.stdout)
	require.Regexp(t, `z-image-turbo +lumina2 +- +- +6\.15 B +6\.1 GiB`, o.stdout)
	require.Regexp(t, `realesrgan-x4 +rrdb +- +- +16\.7 M`, o.stdout)
	for _, name := range []string{"a.gguf", "b.gguf"} {
		o = sluice("", "synth", "--tiny", "--shape", "realesrgan-x4", "--quant", "F16", "-o", at(name))
		require.Zero(t, o.code, o.stderr)
	}
	require.Equal(t, read(t, at("a.gguf")), read(t, at("b.gguf")))
	require.NoError(t, os.Rename(at("b.gguf"), at("in.png")))
	require.NoError(t, os.WriteFile(at("in.png"), drawn(t, tinyParts(t, "flux-schnell", "F16"), "--steps", "1"), 0o600))
	o = sluice("", "upscale", "-m", at("a.gguf"), at("in.png"), "-o", at("out.png"))
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "128 × 128 pixels from 32 × 32")
	o = sluice("", "synth", "-o", at("x.gguf"), "--shape", "flux-dev", "--layers", "2")
	require.NotZero(t, o.code)
	require.Contains(t, o.stderr, "--layers, --vocab and --hollow: flux-dev makes pictures")
}
