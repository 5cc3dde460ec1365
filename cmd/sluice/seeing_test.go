package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/model/convert/converttest"
	"github.com/sluice-ai/sluice/storage/store"
)

// seeing is the reference of Qwen 3 VL with a vocabulary in which token 61 is <61>: texts say which ids they are.
func seeing(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Join(testref.Dir(t), "multimodal", "qwen3vl"))))
	type token struct {
		ID      int    `json:"id"`
		Content string `json:"content"`
		Special bool   `json:"special"`
	}
	special := map[int]string{248: "<|vision_start|>", 249: "<|vision_end|>", 250: "<|image_pad|>", 255: "<|im_end|>"}
	vocab, added := map[string]int{"a": 252, "b": 253, "ab": 254}, []token(nil) // of which there must be some
	for id := range 256 {
		if id >= 252 && id <= 254 {
			continue
		}
		text := fmt.Sprintf("<%d>", id)
		if s := special[id]; s != "" {
			text = s
		}
		vocab[text] = id
		added = append(added, token{id, text, special[id] != ""})
	}
	write := func(name string, value any) {
		text, err := json.Marshal(value)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
	}
	write("tokenizer.json", map[string]any{"added_tokens": added, "pre_tokenizer": map[string]any{"type": "ByteLevel"},
		"model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{"a b"}}})
	write("tokenizer_config.json", map[string]any{"eos_token": "<|im_end|>", "chat_template": `{%- for m in messages -%}
		{%- if m.content is string -%}{{ m.content }}{%- else -%}{%- for p in m.content -%}
		{%- if p.type == "image" -%}<|vision_start|><|image_pad|><|vision_end|>{%- else -%}{{ p.text }}{%- endif -%}
		{%- endfor -%}{%- endif -%}{%- endfor -%}`})
	return folder
}

// seenReference is a greedy answer of transformers about a picture, as texts of the vocabulary of seeing.
type seenReference struct {
	picture             string // file
	before, after, want string
	prompt              int // tokens
}

func sightOfReference(t *testing.T) (r seenReference) {
	t.Helper()
	r.picture = filepath.Join(t.TempDir(), "picture.png")
	writePNG(t, r.picture, converttest.Tensors(t, "multimodal", "qwen3vl", "processor.safetensors")["image_0_u8"].Data, [2]int{48, 80})
	var greedy struct{ Prompt, Tokens []int }
	numbers, err := os.ReadFile(filepath.Join(testref.Dir(t), "multimodal", "qwen3vl", "greedy.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(numbers, &greedy))
	said := func(ids []int) (text string) {
		for _, id := range ids {
			text += fmt.Sprintf("<%d>", id)
		}
		return text
	}
	r.prompt, r.want = len(greedy.Prompt), said(greedy.Tokens)
	r.before, r.after = said(greedy.Prompt[:6]), said(greedy.Prompt[r.prompt-8:])
	return r
}

// TestOfficialPictures: official clients show pictures, and read answers as they come.
func TestOfficialPictures(t *testing.T) {
	if testing.Short() {
		t.Skip("starts node")
	}
	node, r := node(t), sightOfReference(t)
	s := launch(t, "-m", "seeing="+seeing(t), "--device", "cpu", "--kv", "f32")
	node("pictures.mjs", "BASE_URL="+s.url, "BEFORE="+r.before, "AFTER="+r.after, "WANT="+r.want, "PICTURE="+r.picture)
}

// TestPicturesOverHTTP: every dialect that puts pictures where they stand among texts answers as transformers does,
// each with the ids of the same prompt. Ollama's puts them before the text, which is the same as the others' there.
// Another picture makes another answer.
func TestPicturesOverHTTP(t *testing.T) {
	r, path := sightOfReference(t), filepath.Join(t.TempDir(), "picture.png")
	picture, err := os.ReadFile(r.picture)
	require.NoError(t, err)
	text := `{"type":"text","text":`
	s := launch(t, "-m", "seeing="+seeing(t), "--device", "cpu", "--kv", "f32")
	ask := func(path, body string, picture []byte) (answer any) {
		fill := strings.NewReplacer("BEFORE", r.before, "AFTER", r.after, "DATA", base64.StdEncoding.EncodeToString(picture))
		require.NoError(t, json.Unmarshal([]byte(s.good(t, "POST", path, fill.Replace(body))), &answer))
		return answer
	}
	for _, c := range []struct{ path, body, answer, prompt string }{
		{"/v1/chat/completions", `{"temperature":0,"max_tokens":12,"messages":[{"role":"user","content":[` + text + `"BEFORE"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,DATA"}},` + text + `"AFTER"}]}]}`,
			"choices.0.message.content", "usage.prompt_tokens"},
		{"/v1/responses", `{"temperature":0,"max_output_tokens":12,"input":[{"role":"user","content":[{"type":"input_text","text":"BEFORE"},
			{"type":"input_image","image_url":"data:image/png;base64,DATA"},{"type":"input_text","text":"AFTER"}]}]}`,
			"output.0.content.0.text", "usage.input_tokens"},
		{"/v1/messages", `{"temperature":0,"max_tokens":12,"messages":[{"role":"user","content":[` + text + `"BEFORE"},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"DATA"}},` + text + `"AFTER"}]}]}`,
			"content.0.text", "usage.input_tokens"},
	} {
		answer := ask(c.path, c.body, picture)
		require.Equal(t, r.want, at(t, answer, c.answer), "%s: %v", c.path, answer)
		require.EqualValues(t, r.prompt, at(t, answer, c.prompt), c.path)
	}
	photo := append(slices.Clone(picture), make([]byte, 3<<19)...) // whose conversation is longer than texts may be
	const head = `{"temperature":0,"max_output_tokens":12,`
	shows := `{"role":"user","content":[{"type":"input_text","text":"BEFORE"},{"type":"input_image","image_url":"data:image/png;base64,DATA"}]}`
	said := ask("/v1/responses", head+`"input":[`+shows+`]}`, photo)
	whole := ask("/v1/responses", head+`"input":[`+shows+`,{"role":"assistant","content":"`+
		at(t, said, "output.0.content.0.text").(string)+`"},{"role":"user","content":"AFTER"}]}`, photo)
	next := ask("/v1/responses", head+`"input":"AFTER","previous_response_id":"`+at(t, said, "id").(string)+`"}`, nil)
	require.Equal(t, at(t, whole, "output.0.content.0.text"), at(t, next, "output.0.content.0.text"))
	require.Equal(t, at(t, whole, "usage.input_tokens"), at(t, next, "usage.input_tokens"))

	first := `{"temperature":0,"max_tokens":12,"messages":[{"role":"user","content":[{"type":"image_url",` +
		`"image_url":{"url":"data:image/png;base64,DATA"}},` + text + `"BEFOREAFTER"}]}]}`
	ollamas := `{"model":"seeing","stream":false,"options":{"temperature":0,"num_predict":12},"messages":[{"role":"user","content":"BEFOREAFTER","images":["DATA"]}]}`
	shown := at(t, ask("/v1/chat/completions", first, picture), "choices.0.message.content")
	require.Equal(t, shown, at(t, ask("/api/chat", ollamas, picture), "message.content"))
	writePNG(t, path, make([]byte, 48*80*3), [2]int{48, 80})
	dark, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NotEqual(t, shown, at(t, ask("/v1/chat/completions", first, dark), "choices.0.message.content"))
}

// at is a value of decoded JSON, by names and numbers.
func at(t *testing.T, v any, path string) any {
	t.Helper()
	for _, name := range strings.Split(path, ".") {
		switch of := v.(type) {
		case map[string]any:
			v = of[name]
		case []any:
			var i int
			_, err := fmt.Sscan(name, &i)
			require.NoError(t, err)
			require.Greater(t, len(of), i, "%v", v)
			v = of[i]
		default:
			require.Fail(t, "no such value", "%s: %v", path, v)
		}
	}
	return v
}

// TestTowerFile: a tower beside a model's file is used, in halves, too; what is no tower is not, which is said.
func TestTowerFile(t *testing.T) {
	from, r := seeing(t), sightOfReference(t)
	ask := func(folder string) (text, said string) {
		s := launch(t, "-m", "seeing="+filepath.Join(folder, "model.gguf"), "--device", "cpu", "--kv", "f32")
		picture, err := os.ReadFile(r.picture)
		require.NoError(t, err)
		status, answer := s.ask(t, "POST", "/v1/chat/completions", `{"temperature":0,"max_tokens":12,"messages":[{"role":"user","content":[
			{"type":"text","text":"`+r.before+`"},{"type":"image_url","image_url":{"url":"data:image/png;base64,`+
			base64.StdEncoding.EncodeToString(picture)+`"}},{"type":"text","text":"`+r.after+`"}]}]}`)
		if status != 200 {
			return answer, s.stderr.String()
		}
		var decoded any
		require.NoError(t, json.Unmarshal([]byte(answer), &decoded))
		return at(t, decoded, "choices.0.message.content").(string), s.stderr.String()
	}
	convert := func(args ...string) { require.Zero(t, sluice("", append([]string{"convert"}, args...)...).code) }
	folder := t.TempDir()
	convert(from, "-o", filepath.Join(folder, "model.gguf"))
	convert(from, "--mmproj", "-o", filepath.Join(folder, "mmproj-F32.gguf"))
	got, _ := ask(folder)
	require.Equal(t, r.want, got)
	convert(from, "--mmproj", "--type", "F16", "-o", filepath.Join(folder, "mmproj-F16.gguf"))
	got, _ = ask(folder)
	require.Equal(t, r.want, got)

	o := planFile(t, filepath.Join(folder, "model.gguf"), "--device", "cpu", "--ram", "64M")
	require.Regexp(t, `The tower that sees pictures takes memory as well: weights \d.* \(of --ram\), rows of pictures up to 256`, o.stdout)
	o = planFile(t, filepath.Join(folder, "model.gguf"), "--device", "cpu", "--json")
	var planned measure.PlanJSON
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &planned), o.stderr)
	require.Positive(t, planned.Tower.Weights)

	require.NoError(t, os.Link(filepath.Join(folder, "model.gguf"), filepath.Join(folder, "other.gguf")))
	got, _ = ask(folder)
	require.Contains(t, got, "this model reads text only", "the tower may be the other model's")
	require.NoError(t, os.Remove(filepath.Join(folder, "other.gguf")))

	convert("--force", from, "-o", filepath.Join(folder, "mmproj-F16.gguf"))
	got, said := ask(folder)
	require.Contains(t, got, "this model reads text only")
	require.Contains(t, said, "mmproj-F16.gguf: general.architecture is not clip")
	out := filepath.Join(folder, "x")
	o = sluice("", "convert", from, "--mmproj", "--type", "Q8_0", "-o", out)
	require.Contains(t, o.stderr, "a tower is kept in F32, F16 or BF16, not in Q8_0")
	o = sluice("", "convert", filepath.Join(testref.Dir(t), "multimodal", "lora_llama", "base"), "--mmproj", "-o", out)
	require.Contains(t, o.stderr, "there is no tower that is known in it")
}

// TestCreateKeepsProjector: a model of uploaded files that sees has its mmproj file, and so have those made of it, in
// fewer bits, too.
func TestCreateKeepsProjector(t *testing.T) {
	dir, from := t.TempDir(), seeing(t)
	converted := func(flags ...string) []byte {
		out := filepath.Join(t.TempDir(), "x.gguf")
		require.Zero(t, sluice("", append([]string{"convert", from, "-o", out}, flags...)...).code)
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		return data
	}
	tower := converted("--mmproj")
	s := serveStore(t, dir, "")
	upload := func(data []byte) string {
		digest := string(store.DigestOf(data))
		r, err := http.Post(s.url+"/api/blobs/"+digest, "", bytes.NewReader(data))
		require.NoError(t, err)
		r.Body.Close()
		require.Equal(t, http.StatusCreated, r.StatusCode)
		return digest
	}
	s.good(t, "POST", "/api/create", `{"model":"sees","stream":false,"files":{"m.gguf":"`+upload(converted())+`","mmproj-F16.gguf":"`+
		upload(tower)+`"}}`)
	s.good(t, "POST", "/api/create", `{"model":"same","from":"sees","stream":false}`)
	s.good(t, "POST", "/api/create", `{"model":"less","from":"sees","quantize":"q8_0","stream":false}`)
	kept, err := store.Open(dir)
	require.NoError(t, err)
	for _, name := range []string{"sees", "same", "less"} {
		path, err := kept.Resolve(name)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(filepath.Dir(path), "mmproj-F16.gguf"))
		require.NoError(t, err, name)
		require.Equal(t, tower, got, name)
		require.NotContains(t, filepath.Base(path), "mmproj")
	}
}
