package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/storage/safetensors"
)

// TestImage: from the latents that diffusers began with, a prompt becomes diffusers' picture, with guidance and
// without.
func TestImage(t *testing.T) {
	folder := filepath.Join(testref.Dir(t), "multimodal", "zimage")
	prompt := func(i string) string {
		var said struct{ Prompt string }
		require.NoError(t, json.Unmarshal(read(t, filepath.Join(folder, "prompt_"+i+".json")), &said))
		return said.Prompt
	}
	for _, c := range []struct {
		run, prompt string
		more        []string
	}{
		{"run_4steps", "0", []string{"--steps", "4"}}, {"run_8steps", "1", nil},
		{"run_cfg", "1", []string{"--steps", "2", "--guidance", "4", "--negative", prompt("2")}},
	} {
		t.Run(c.run, func(t *testing.T) {
			dir := t.TempDir()
			out, dumped := filepath.Join(dir, "out.png"), filepath.Join(dir, "dump.safetensors")
			args := append([]string{"image", "-m", folder, "-o", out, "--dump", dumped, "--latents", filepath.Join(folder, c.run+".safetensors")},
				append(c.more, prompt(c.prompt))...)
			o := sluice("", args...)
			require.Zero(t, o.code, o.stderr)
			want := converttest.Tensors(t, "multimodal", "zimage", c.run+".safetensors")["image"]
			got, height, width := pixelsOf(t, out)
			require.Equal(t, want.Shape[2:], []int{height, width})
			for i, v := range want.Floats() {
				require.InDelta(t, v*255, got[i], 0.6)
			}
			theirs, ours := converttest.Tensors(t, "multimodal", "zimage", c.run+".safetensors"), dumpOf(t, dumped)
			require.Contains(t, ours, "step_1.latents")
			require.Contains(t, ours, "latents_final")
			for name, x := range ours {
				require.Equal(t, theirs[name].Shape, x.Shape, name)
				require.InDeltaSlice(t, theirs[name].Floats(), x.Floats(), 2.5e-3, name)
			}
		})
	}
}

// dumpOf reads what --dump wrote.
func dumpOf(t *testing.T, path string) map[string]converttest.Tensor {
	t.Helper()
	data := read(t, path)
	stored, err := safetensors.Parse(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	all := map[string]converttest.Tensor{}
	for _, s := range stored {
		all[s.Name] = converttest.Tensor{Shape: s.Shape, Data: data[s.Offset:][:s.Size]}
	}
	return all
}

// TestImageSeeds: a seed has its picture, of the size that was asked for.
func TestImageSeeds(t *testing.T) {
	folder := filepath.Join(testref.Dir(t), "multimodal", "zimage")
	draw := func(more ...string) []byte {
		out := filepath.Join(t.TempDir(), "out.png")
		o := sluice("", append([]string{"image", "-m", folder, "-o", out, "--size", "48x32", "--steps", "1", "a cat"}, more...)...)
		require.Zero(t, o.code, o.stderr)
		require.Contains(t, o.stdout, "out.png: 48 × 32 pixels in 1 step, seed ")
		return read(t, out)
	}
	one := draw("--seed", "1")
	require.Contains(t, string(one), "a cat\nSteps: 1, CFG scale: 0, Size: 48x32, Seed: 1, Version: sluice ")
	require.Equal(t, one, draw("--seed", "1"))
	require.NotEqual(t, one, draw("--seed", "2"))
	require.NotEqual(t, draw(), draw(), "another seed each time")
}

// TestImageInit: a picture that begins with another one depends on how much of that is lost; all lost, it is a seed's
// alone.
func TestImageInit(t *testing.T) {
	folder, dir := filepath.Join(testref.Dir(t), "multimodal", "zimage"), t.TempDir()
	out, from := filepath.Join(dir, "out.png"), filepath.Join(dir, "in.png")
	draw := func(more ...string) []byte {
		o := sluice("", append([]string{"image", "-m", folder, "-o", out, "--size", "48x32", "--steps", "4", "--seed", "3", "a cat",
			"--force"}, more...)...)
		require.Zero(t, o.code, o.stderr)
		pixels, _, _ := pixelsOf(t, out)
		return pixels
	}
	alone := draw()
	o := sluice("", "image", "-m", folder, "-o", from, "--size", "64x64", "--steps", "1", "--seed", "8", "a dog")
	require.Zero(t, o.code, o.stderr)
	require.Equal(t, alone, draw("--init", from, "--strength", "1"))
	some, half := draw("--init", from, "--strength", "0.25"), draw("--init", from, "--strength", "0.75")
	require.NotEqual(t, alone, half)
	require.NotEqual(t, some, half)
	require.Contains(t, string(read(t, out)), ", Denoising strength: 0.75")
	o = sluice("", "image", "-m", folder, "-o", filepath.Join(dir, "x.png"), "--init", from, "--latents", from, "x")
	require.Contains(t, o.stderr, "--init and --latents both say what to begin with")
	o = sluice("", "image", "-m", folder, "-o", filepath.Join(dir, "x.png"), "--init", from, "--strength", "0", "x")
	require.Contains(t, o.stderr, "--strength is 0, want above 0, up to 1")
}

// TestImageRefuses: what is wrong is said, and no file is left.
func TestImageRefuses(t *testing.T) {
	multimodal, dir := filepath.Join(testref.Dir(t), "multimodal"), t.TempDir()
	folder := filepath.Join(multimodal, "zimage")
	part := filepath.Join(dir, "part")
	require.NoError(t, os.Mkdir(part, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(part, "model_index.json"), []byte(`{"_class_name": "ZImagePipeline"}`), 0o600))
	other := unknownModel(t)
	out := filepath.Join(dir, "out.png")
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"size", []string{"-m", folder, "--size", "64", "x"}, `--size is "64", want two numbers`},
		{"more size", []string{"-m", folder, "--size", "64x64x", "x"}, `--size is "64x64x", want two numbers`},
		{"odd size", []string{"-m", folder, "--size", "64x40", "x"}, `--size is "64x40", want multiples of 16 from 16 to 4096`},
		{"patches", []string{"-m", folder, "--size", "4096x4096", "x"}, "at most 16384 patches"},
		{"steps", []string{"-m", folder, "--steps", "0", "x"}, "--steps"},
		{"guidance", []string{"-m", folder, "--guidance", "-1", "x"}, "--guidance is -1, want 0 to 100"},
		{"another model", []string{"-m", other, "x"}, `"StableDiffusionPipeline", want ZImagePipeline or FluxPipeline`},
		{"no tokenizer", []string{"-m", filepath.Join(multimodal, "flux"), "x"}, "tokenizer: has neither vocab.json nor tokenizer.json"},
		{"no folder", []string{"-m", dir, "x"}, "has neither a model_index.json nor a file of a transformer"},
		{"no part", []string{"-m", part, "x"}, "text_encoder: no such file"},
		{"prompt", []string{"-m", folder, strings.Repeat("x ", 600)}, "tokens, want at most 512"},
		{"latents", []string{"-m", folder, "--latents", filepath.Join(folder, "text.safetensors"), "--size", "16x16", "x"}, "want F32, F16 or BF16"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := sluice("", append([]string{"image", "-o", out}, c.args...)...)
			require.NotZero(t, o.code)
			require.Contains(t, o.stderr, c.want)
			_, err := os.Stat(out)
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// unknownModel is the folder of a model that makes no pictures here.
func unknownModel(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model_index.json"), []byte(`{"_class_name": "StableDiffusionPipeline"}`), 0o600))
	return dir
}

// TestImageInLittleMemory: a budget that all parts fit changes nothing, and one that is too small says what would do.
func TestImageInLittleMemory(t *testing.T) {
	folder, dir := filepath.Join(testref.Dir(t), "multimodal", "zimage"), t.TempDir()
	draw := func(out string, more ...string) outcome {
		return sluice("", append([]string{"image", "-m", folder, "-o", filepath.Join(dir, out), "--size", "32x32", "--steps", "1",
			"--seed", "3", "a cat"}, more...)...)
	}
	require.Zero(t, draw("whole.png").code)
	o := draw("fits.png", "--ram", "1M")
	require.Zero(t, o.code, o.stderr)
	want, _, _ := pixelsOf(t, filepath.Join(dir, "whole.png"))
	got, _, _ := pixelsOf(t, filepath.Join(dir, "fits.png"))
	require.Equal(t, want, got)
	o = draw("less.png", "--ram", "32K")
	require.NotZero(t, o.code)
	require.Regexp(t, `0.0 MiB for weights are too few: .* ask for at least 1M`, o.stderr)
}
