package main

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
)

// fluxPrompt is a text that the tokenizers of fluxFolder turn into the tokens that the references were computed with.
const fluxPrompt = "AB cd  ef gh i j k l m n o"

// fluxFolder is the reference's FLUX.1 as diffusers publishes it, schnell or dev, with tokenizers for its encoders.
func fluxFolder(t *testing.T, dev bool) string {
	t.Helper()
	from, dir := filepath.Join(testref.Dir(t), "multimodal"), t.TempDir()
	copied := func(to string, from ...string) {
		require.NoError(t, os.CopyFS(filepath.Join(dir, to), os.DirFS(filepath.Join(from...))))
	}
	for _, part := range []string{"vae", "text_encoder", "text_encoder_2"} {
		copied(part, from, "flux", part)
	}
	write := func(text string, path ...string) {
		path = append([]string{dir}, path...)
		require.NoError(t, os.MkdirAll(filepath.Join(path[:len(path)-1]...), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path...), []byte(text), 0o600))
	}
	if dev {
		copied("transformer", from, "flux_guidance", "transformer")
		write(`{"_class_name": "FlowMatchEulerDiscreteScheduler", "use_dynamic_shifting": true, "shift": 3}`, "scheduler",
			"scheduler_config.json")
	} else {
		copied("transformer", from, "flux", "transformer")
		copied("scheduler", from, "flux", "scheduler")
	}
	write(string(read(t, filepath.Join(from, "flux", "model_index.json"))), "model_index.json")
	merges, vocab := clipTokens(t)
	write(merges, "tokenizer", "merges.txt")
	write(vocab, "tokenizer", "vocab.json")
	write(t5Tokens(t), "tokenizer_2", "spiece.model")
	write(`{"model_max_length": 24}`, "tokenizer_2", "tokenizer_config.json")
	return dir
}

// fluxWords are those of fluxPrompt.
func fluxWords() []string { return strings.Fields(strings.ToLower(fluxPrompt)) }

// clipTokens are files in which each word is the token that the reference has in its place.
func clipTokens(t *testing.T) (merges, vocab string) {
	t.Helper()
	ids := converttest.Tensors(t, "multimodal", "flux", "clip.safetensors")["ids"].IDs()
	all := map[string]int{"<|startoftext|>": 512, "<|endoftext|>": 513}
	taken := map[int]bool{512: true, 513: true}
	for i, word := range fluxWords() {
		all[word+"</w>"], taken[int(ids[i+1])] = int(ids[i+1]), true
	}
	free := 0
	add := func(text string) {
		for taken[free] {
			free++
		}
		if _, ok := all[text]; !ok {
			all[text], taken[free] = free, true
		}
	}
	merges = "#version: 0.2\n"
	for _, word := range fluxWords() {
		if len(word) == 2 {
			merges += word[:1] + " " + word[1:] + "</w>\n"
			add(word[:1])
			add(word[1:] + "</w>")
		}
	}
	for len(all) < 514 {
		add(fmt.Sprintf("filler%d", len(all)))
	}
	text, err := json.Marshal(all)
	require.NoError(t, err)
	return merges, string(text)
}

// t5Tokens is a SentencePiece model that does the same: a piece for each letter, and one for what begins a word.
func t5Tokens(t *testing.T) string {
	t.Helper()
	ids := converttest.Tensors(t, "multimodal", "flux", "t5.safetensors")["ids"].IDs()
	texts, kinds := make([]string, 256), make([]byte, 256)
	for i := range texts {
		texts[i], kinds[i] = fmt.Sprintf("filler%d", i), 1
	}
	texts[0], texts[1], texts[2] = "<pad>", "</s>", "<unk>"
	kinds[0], kinds[1], kinds[2] = 3, 3, 2
	next := 0
	for _, word := range strings.Fields(fluxPrompt) {
		for i, letter := range word {
			piece := string(letter)
			if i == 0 {
				piece = "▁" + piece
			}
			texts[ids[next]] = piece
			next++
		}
	}
	require.EqualValues(t, 1, ids[next], "then the reference's text ends")
	var model []byte
	for i, text := range texts {
		p := append([]byte{1<<3 | 2, byte(len(text))}, text...)
		p = binary.LittleEndian.AppendUint32(append(p, 2<<3|5), math.Float32bits(-float32(len(text))))
		model = append(append(model, 1<<3|2, byte(len(p)+2)), append(p, 3<<3, kinds[i])...)
	}
	return string(model)
}

// TestImageFlux: from the latents that diffusers began with, a prompt becomes the picture of its FLUX.1 schnell.
func TestImageFlux(t *testing.T) {
	folder, dir := fluxFolder(t, false), t.TempDir()
	out, dumped := filepath.Join(dir, "out.png"), filepath.Join(dir, "dump.safetensors")
	latents := filepath.Join(testref.Dir(t), "multimodal", "flux", "run_4steps.safetensors")
	o := sluice("", "image", "-m", folder, "-o", out, "--dump", dumped, "--latents", latents, fluxPrompt)
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "96 × 64 pixels in 4 steps")
	theirs, ours := converttest.Tensors(t, "multimodal", "flux", "run_4steps.safetensors"), dumpOf(t, dumped)
	for _, name := range []string{"latents_final", "image"} {
		require.Equal(t, theirs[name].Shape, ours[name].Shape, name)
		require.InDeltaSlice(t, theirs[name].Floats(), ours[name].Floats(), 2.5e-3, name)
	}
}

// TestImageFluxDev: a model with a guidance follows the prompt by it, by 3.5 unless told.
func TestImageFluxDev(t *testing.T) {
	folder := fluxFolder(t, true)
	draw := func(more ...string) []byte {
		out := filepath.Join(t.TempDir(), "out.png")
		o := sluice("", append([]string{"image", "-m", folder, "-o", out, "--size", "32x32", "--seed", "4", fluxPrompt}, more...)...)
		require.Zero(t, o.code, o.stderr)
		return read(t, out)
	}
	usual := draw()
	require.Contains(t, string(usual), fluxPrompt+"\nSteps: 28, CFG scale: 3.5, Size: 32x32, Seed: 4, ")
	require.Equal(t, usual, draw("--guidance", "3.5", "--steps", "28"))
	few := draw("--steps", "2")
	require.Equal(t, few, draw("--steps", "2"))
	require.NotEqual(t, pixelsIn(t, few), pixelsIn(t, draw("--steps", "2", "--guidance", "1.5")))
}

func pixelsIn(t *testing.T, file []byte) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.png")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	pixels, _, _ := pixelsOf(t, path)
	return pixels
}

// TestImageFluxLongPrompt: CLIP leaves out what it has no room for.
func TestImageFluxLongPrompt(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.png")
	o := sluice("", "image", "-m", fluxFolder(t, false), "-o", out, "--size", "16x16", "--steps", "1", strings.Repeat("i1", 100))
	require.Zero(t, o.code, o.stderr)
}

// TestImageFluxRefuses: what FLUX.1 does not take is said.
func TestImageFluxRefuses(t *testing.T) {
	folder := fluxFolder(t, false)
	fails := func(want string, args ...string) {
		o := sluice("", append([]string{"image", "-m", folder, "-o", filepath.Join(t.TempDir(), "out.png"), "--size", "16x16"}, args...)...)
		require.NotZero(t, o.code)
		require.Contains(t, o.stderr, want)
	}
	fails("--negative: this model takes one prompt alone", "--negative", "a dog", "a cat")
	fails("the prompt has 31 tokens, want at most 24", strings.Repeat("i ", 30))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "text_encoder_2", "config.json"),
		read(t, filepath.Join(folder, "text_encoder", "config.json")), 0o600))
	fails(`text_encoder_2/config.json: architectures are "CLIPTextModel", want T5EncoderModel`, "i")
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "tokenizer")))
	fails("tokenizer: has neither vocab.json nor tokenizer.json", "i")
}

// TestServeFlux: a server's picture is that of the command, with the steps that the model is used to.
func TestServeFlux(t *testing.T) {
	folder, file := fluxFolder(t, false), filepath.Join(t.TempDir(), "out.png")
	o := sluice("", "image", "-m", folder, "-o", file, "--size", "32x32", "--seed", "5", fluxPrompt)
	require.Zero(t, o.code, o.stderr)
	want, _, _ := pixelsOf(t, file)
	s := launch(t, "--image-model", "flux="+folder)
	var said struct {
		Data []struct {
			B64JSON string `json:"b64_json"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.good(t, http.MethodPost, "/v1/images/generations",
		fmt.Sprintf(`{"prompt":%q,"seed":5,"size":"32x32","model":"flux"}`, fluxPrompt))), &said))
	require.Len(t, said.Data, 1)
	data, err := base64.StdEncoding.DecodeString(said.Data[0].B64JSON)
	require.NoError(t, err)
	require.Contains(t, string(data), "Steps: 4, ")
	require.Equal(t, want, pixelsIn(t, data))
}
