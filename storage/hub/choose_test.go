package hub

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/store"
)

func TestChoose(t *testing.T) {
	several := []string{"README.md", "m-BF16.gguf", "m-Q2_K.gguf", "m-Q4_K_S.gguf", "m-q8_0.gguf", "mmproj-m-Q4_K_M.gguf",
		"m-imatrix.gguf", "imatrix.dat"}
	split := []string{"Q8_0/m-Q8_0-00002-of-00002.gguf", "Q8_0/m-Q8_0-00001-of-00002.gguf", "m.Q4_K_M.gguf"}
	folder := []string{"README.md", "model-00001-of-00002.safetensors", "config.json", "consolidated.safetensors",
		"model-00002-of-00002.safetensors", "tokenizer.json", "onnx/config.json", "onnx/model.safetensors"}
	two := []string{"a-Q4_K_M.gguf", "b-Q4_K_M.gguf", "a-Q8_0.gguf"}
	for _, c := range []struct {
		files     []string
		tag       string
		want      string // the files, or the error
		wantedTag string // empty: an error
	}{
		{several, "", "m-Q4_K_S.gguf", "Q4_K_S"},
		{several, "latest", "m-Q4_K_S.gguf", "Q4_K_S"},
		{several, "bf16", "m-BF16.gguf", "BF16"},
		{several, "Q8_0", "m-q8_0.gguf", "Q8_0"},
		{several, "M-Q8_0", "m-q8_0.gguf", "m-q8_0"},
		{several, "Q4_K_M", "there is no Q4_K_M: there are BF16, Q2_K, Q4_K_S, Q8_0", ""},
		{split, "", "m.Q4_K_M.gguf", "Q4_K_M"},
		{split, "Q8_0", "Q8_0/m-Q8_0-00001-of-00002.gguf Q8_0/m-Q8_0-00002-of-00002.gguf", "Q8_0"},
		{split, "m-Q8_0-00001-of-00002", "Q8_0/m-Q8_0-00001-of-00002.gguf Q8_0/m-Q8_0-00002-of-00002.gguf", "m-Q8_0"},
		{two, "", "several files are Q4_K_M: name one of them after the colon: a-Q4_K_M, b-Q4_K_M", ""},
		{two, "b-Q4_K_M", "b-Q4_K_M.gguf", "b-Q4_K_M"},
		{two, "Q8_0", "a-Q8_0.gguf", "Q8_0"},
		{[]string{"x-UD-Q4_K_XL.gguf", "x-IQ2_XXS.gguf"}, "ud-q4_k_xl", "x-UD-Q4_K_XL.gguf", "UD-Q4_K_XL"},
		{[]string{"gpt-oss-20b-mxfp4.gguf"}, "", "gpt-oss-20b-mxfp4.gguf", "MXFP4"},
		{[]string{"tinyllama.gguf"}, "", "tinyllama.gguf", "tinyllama"},
		{[]string{"a-Q8_0-00001-of-00003.gguf", "a-Q8_0-00003-of-00003.gguf"}, "", "a-Q8_0: part 2 of 3 is not on the hub", ""},
		{[]string{"a-Q8_0-00004-of-00003.gguf"}, "", "a-Q8_0-00004-of-00003.gguf: part 4 of 3 is there twice, or should not be", ""},
		{[]string{"a-Q8_0-00001-of-00000.gguf"}, "", "part 1 of 0 is there twice, or should not be", ""},
		{[]string{"a/b-Q8_0.gguf", "c/b-Q8_0.gguf"}, "", "several files are Q8_0", ""},
		{[]string{"lora-q8_0.gguf", "m-LoRA.Q8_0.gguf", "ggml-adapter-model-q8_0.gguf", "flora-q8_0.gguf"}, "", "flora-q8_0.gguf", "Q8_0"},
		{[]string{"m-Q2_K.gguf", "m-lora-F16.gguf"}, "F16", "there is no F16: there are Q2_K", ""},
		{[]string{"m-lora-merged-Q8_0.gguf"}, "", "m-lora-merged-Q8_0.gguf", "Q8_0"},
		{[]string{"mmproj-F16.gguf"}, "", "there is no GGUF file among its 1 files", ""},
		{nil, "", "there is no GGUF file among its 0 files", ""},
		{folder, "", "model-00001-of-00002.safetensors model-00002-of-00002.safetensors config.json tokenizer.json", "safetensors"},
		{append(folder, "m-Q8_0.gguf"), "", "m-Q8_0.gguf", "Q8_0"},
		{append(folder, "m-Q8_0.gguf"), "Safetensors", "model-00001-of-00002.safetensors model-00002-of-00002.safetensors config.json tokenizer.json", "safetensors"},
		{folder, "Q8_0", "there is no Q8_0: there is no GGUF file, only a folder of safetensors", ""},
		{append(folder[:2:2], "config.json"), "", "1 of 2 files of weights are on the hub", ""},
		{[]string{"config.json", "weights.safetensors"}, "", "weights.safetensors config.json", "safetensors"},
		{[]string{"weights.safetensors"}, "", "there is no GGUF file among its 1 files", ""},
	} {
		var files []published
		for _, name := range c.files {
			files = append(files, published{path: name})
		}
		tag, chosen, err := choose(files, store.Name{Tag: c.tag})
		if c.wantedTag == "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err, "%v %s", c.files, c.tag)
		var names []string
		for _, f := range chosen {
			names = append(names, f.path)
		}
		require.Equal(t, c.want, strings.Join(names, " "))
		require.Equal(t, c.wantedTag, tag)
	}
}

// What a repository may say; %s stands for a checksum.
var answers = []string{
	`{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "m-Q8_0.gguf", "size": 5, "lfs": {"sha256": "%s", "size": 5}}]}`,
	`{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "a/m-Q8_0-00001-of-00002.gguf", "lfs": {"sha256": "%s", "size": 5}},
	  {"rfilename": "a/m-Q8_0-00002-of-00002.gguf", "lfs": {"sha256": "%s", "size": 9}}]}`,
	`{"sha": "x"}`, `{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "../m.gguf"}]}`,
	`{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "m.gguf", "size": -1}]}`,
	`{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "m.gguf", "lfs": {"sha256": "1", "size": 1}}]}`,
	`{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "m.gguf", "size": 2, "lfs": {"sha256": "%s", "size": 1}}]}`,
	`{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "\u001b[31m.gguf", "lfs": {"sha256": "%s", "size": 1}}]}`,
	`[]`, `{"siblings": 1}`,
	`{"sha": "` + strings.Repeat("a", 40) + `", "siblings": [{"rfilename": "config.json", "size": 7, "blobId": "` + strings.Repeat("b", 40) +
		`"}, {"rfilename": "model.safetensors", "lfs": {"sha256": "%s", "size": 1}}]}`,
}

func TestParseRepository(t *testing.T) {
	sum := strings.Repeat("0f", 32)
	for i, want := range []string{"", "", `names the commit "x"`, `"../m.gguf" is no path of a file`, "has -1 bytes", "is no digest",
		"has two sizes, 2 and 1", "", "is not what its API says", "is not what its API says"} {
		r, err := parseRepository([]byte(strings.ReplaceAll(answers[i], "%s", sum)))
		if want != "" {
			require.ErrorContains(t, err, want, answers[i])
			continue
		}
		require.NoError(t, err, answers[i])
		require.EqualValues(t, "sha256:"+sum, r.files[0].digest)
	}
}

// FuzzRepository: whatever a hub says, what is chosen of it is a model that the store takes, whose names stay in it.
func FuzzRepository(f *testing.F) {
	for _, text := range answers {
		for _, tag := range []string{"", "Q8_0", "m"} {
			f.Add([]byte(strings.ReplaceAll(text, "%s", strings.Repeat("0f", 32))), tag)
		}
	}
	h := &session{Client: &Client{Endpoint: "https://hub.test"}}
	var err error
	h.base, err = h.endpoint(store.Name{Host: store.HuggingFace})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte, tag string) {
		n, err := store.ParseName("a/b:" + tag)
		if err != nil {
			n = store.Name{Host: store.HuggingFace, Owner: "a", Model: "b"}
		}
		r, err := parseRepository(data)
		if err != nil {
			return
		}
		o, err := h.offerOf(r, n)
		if err != nil {
			return
		}
		checkOffer(t, o, "https://hub.test/a/b/resolve/"+r.commit+"/")
	})
}

// checkOffer checks what every hub's answer must come to: a manifest that can be kept, or an error.
func checkOffer(t *testing.T, o *offer, under string) {
	t.Helper()
	require.Len(t, o.places, len(o.manifest.Files))
	for i, f := range o.manifest.Files {
		require.True(t, strings.HasPrefix(o.places[i].String(), under), "%s", o.places[i])
		require.NotContains(t, o.places[i].EscapedPath(), "/../")
		require.Equal(t, path.Base(f.Name), f.Name)
		if f.Role == store.Config && f.Digest == "" { // it comes before it is known
			require.Regexp(t, "^[0-9a-f]{40,64}$", o.git[i])
			continue
		}
		_, err := store.ParseDigest(string(f.Digest))
		require.NoError(t, err)
	}
}

// FuzzLayers: the same, of a registry.
func FuzzLayers(f *testing.F) {
	digest := "sha256:" + strings.Repeat("0f", 32)
	for _, kinds := range [][]string{{"model"}, {"model", "template", "license", "license"}, {"model", "adapter"}, {"model", "model"}, {}} {
		var layers []map[string]any
		for _, kind := range kinds {
			layers = append(layers, map[string]any{"mediaType": layerType + kind, "digest": digest, "size": 5})
		}
		data, err := json.Marshal(map[string]any{"schemaVersion": 2, "layers": layers})
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"schemaVersion": 2, "layers": [{"mediaType": "` + layerType + `model", "digest": "sha256:../x", "size": -1}]}`))
	h := &session{Client: &Client{Endpoint: "https://hub.test/registry"}}
	n := store.Name{Host: store.Ollama, Owner: "a", Model: "b", Tag: "c"}
	var err error
	h.base, err = h.endpoint(n)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := h.offerOfLayers(data, n)
		if err != nil {
			return
		}
		checkOffer(t, o, "https://hub.test/registry/v2/a/b/blobs/sha256:")
		require.Equal(t, 1, len(o.manifest.Weights()))
	})
}

func TestProjector(t *testing.T) {
	for _, c := range []struct {
		want  int
		paths []string
	}{
		{-1, []string{"a.gguf", "mmproj.txt", "x-mmproj-F16.gguf"}},
		{0, []string{"mmproj.gguf"}},
		{2, []string{"mmproj.gguf", "mmproj-Q8_0.gguf", "mmproj-BF16.gguf"}},
		{2, []string{"mmproj-F32.gguf", "mmproj-BF16.gguf", "d/MMProj-x-f16.gguf"}},
	} {
		require.Equal(t, c.want, Projector(c.paths), c.paths)
	}
}
