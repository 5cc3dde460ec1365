package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/hub/hubtest"
	"github.com/sluice-ai/sluice/storage/store"
)

// serveStore serves a store that clients may change, and a hub to pull from.
func serveStore(t *testing.T, dir, hub string) *serving {
	t.Helper()
	return launchWith(t, func(e *env.Env) {
		e.Lookup = func(name string) (string, bool) {
			value := map[string]string{"SLUICE_STORE": dir, "HF_ENDPOINT": hub}[name]
			return value, value != ""
		}
	}, "--allow-store", "--log", "error")
}

// ask sends a request, and returns the status and the body.
func (s *serving) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	q, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	require.NoError(t, err)
	r, err := http.DefaultClient.Do(q)
	require.NoError(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return r.StatusCode, string(text)
}

// good is ask for what must succeed.
func (s *serving) good(t *testing.T, method, path, body string) string {
	t.Helper()
	status, text := s.ask(t, method, path, body)
	require.Equal(t, http.StatusOK, status, "%s %s: %s", path, body, text)
	return text
}

// chat is what a model answers through Ollama's API.
func (s *serving) chat(t *testing.T, model, said string) string {
	t.Helper()
	var answer struct{ Message struct{ Content string } }
	text := s.good(t, "POST", "/api/chat", `{"model":"`+model+`","stream":false,"options":{"temperature":0},"messages":[`+said+`]}`)
	require.NoError(t, json.Unmarshal([]byte(text), &answer))
	return answer.Message.Content
}

const france = `{"role":"user","content":"What is the capital of France?"}`

// TestAllowStore: clients pull, upload, create, copy, show and delete, and what a model was created with holds when it
// runs, in every dialect.
func TestAllowStore(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	s := serveStore(t, dir, h.URL)
	var lines []map[string]any
	for line := range strings.Lines(s.good(t, "POST", "/api/pull", `{"model":"hf.co/Ann/Mini-GGUF"}`)) {
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		lines = append(lines, one)
	}
	require.Equal(t, map[string]any{"status": "pulling manifest"}, lines[0])
	digest, size := "sha256:"+hubtest.Digest(mini.GGUF), float64(len(mini.GGUF))
	require.Contains(t, lines, map[string]any{"status": "pulling " + digest[7:19], "digest": digest, "total": size, "completed": size})
	require.Equal(t, map[string]any{"status": "success"}, lines[len(lines)-1])
	require.JSONEq(t, `{"status":"success"}`, s.good(t, "POST", "/api/pull", `{"name":"Ann/Mini-GGUF","stream":false}`), "it is there")
	require.Equal(t, "The capital of France is Paris.", s.chat(t, "hf.co/Ann/Mini-GGUF:Q8_0", france))

	created := s.good(t, "POST", "/api/create", `{"model":"brief","from":"Ann/Mini-GGUF","system":"You are a parrot.","parameters":`+
		`{"temperature":0,"stop":["Paris"],"num_predict":60,"num_ctx":512},"messages":[{"role":"user","content":"12 + 30"},`+
		`{"role":"assistant","content":"12 + 30 = 42."}],"license":"MIT","stream":true}`)
	require.True(t, strings.HasSuffix(created, `{"status":"writing manifest"}`+"\n"+`{"status":"success"}`+"\n"), created)
	require.Equal(t, "The capital of France is ", s.chat(t, "brief", france), "it stops before the text to stop at")
	require.Equal(t, "The capital of France is ", s.chat(t, "brief:latest", france))
	prompt := func(model, messages string) string {
		var applied struct{ Prompt string }
		require.NoError(t, json.Unmarshal([]byte(s.good(t, "POST", "/apply-template", `{"model":"`+model+`","messages":[`+messages+`]}`)),
			&applied))
		return applied.Prompt
	}
	require.Equal(t, "<|im_start|>system\nYou are a parrot.<|im_end|>\n<|im_start|>user\n12 + 30<|im_end|>\n<|im_start|>assistant\n"+
		"12 + 30 = 42.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", prompt("brief", `{"role":"user","content":"Hi"}`))
	require.Contains(t, prompt("brief", `{"role":"system","content":"Mine."},{"role":"user","content":"Hi"}`), "<|im_start|>system\nMine.")
	var openai struct {
		Choices []struct{ Message struct{ Content string } }
		Usage   struct {
			Prompt int `json:"prompt_tokens"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(s.good(t, "POST", "/v1/chat/completions", `{"model":"brief","messages":[`+france+`]}`)), &openai))
	require.Equal(t, "The capital of France is ", openai.Choices[0].Message.Content)
	require.Greater(t, openai.Usage.Prompt, 40, "with the messages before")
	require.Contains(t, s.good(t, "POST", "/v1/messages", `{"model":"brief","max_tokens":50,"messages":[`+france+`]}`),
		`"text":"The capital of France is "`)
	shown := s.good(t, "POST", "/api/show", `{"model":"brief"}`)
	var about struct {
		System, Parameters, Modelfile string
		Messages                      []struct{ Content string }
	}
	require.NoError(t, json.Unmarshal([]byte(shown), &about))
	require.Equal(t, "You are a parrot.", about.System)
	require.Regexp(t, `(?m)^stop +"Paris"$`, about.Parameters)
	require.Regexp(t, `(?m)^num_ctx +512$`, about.Parameters)
	require.Contains(t, about.Modelfile, "FROM brief\nTEMPLATE ")
	require.Len(t, about.Messages, 2)

	// The files of a model may be uploaded, and its weights written in fewer bits.
	status, _ := s.ask(t, "HEAD", "/api/blobs/sha256:"+strings.Repeat("0", 64), "")
	require.Equal(t, http.StatusNotFound, status)
	status, _ = s.ask(t, "HEAD", "/api/blobs/"+digest, "")
	require.Equal(t, http.StatusOK, status)
	status, text := s.ask(t, "POST", "/api/blobs/"+digest, "something else")
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "what came has the checksum")
	s.good(t, "DELETE", "/api/delete", `{"model":"Ann/Mini-GGUF"}`)
	s.good(t, "DELETE", "/api/delete", `{"model":"brief"}`)
	status, _ = s.ask(t, "HEAD", "/api/blobs/"+digest, "")
	require.Equal(t, http.StatusNotFound, status, "it went with the last model that had it")
	r, err := http.Post(s.url+"/api/blobs/"+digest, "", struct{ io.Reader }{bytes.NewReader(mini.GGUF)}) // in chunks
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Equal(t, http.StatusCreated, r.StatusCode)
	s.good(t, "POST", "/api/create", `{"model":"mine:v1","files":{"m.gguf":"`+digest+`"},"stream":false}`)
	s.good(t, "POST", "/api/copy", `{"source":"mine:v1","destination":"ours"}`)
	require.Equal(t, "The capital of France is Paris.", s.chat(t, "ours", france))

	// A model of the same name takes the place of the one that is loaded.
	s.good(t, "POST", "/api/create", `{"model":"ours","from":"mine:v1","parameters":{"stop":["France"]}}`)
	require.Equal(t, "The capital of ", s.chat(t, "ours", france))
	s.good(t, "POST", "/api/create", `{"model":"ours","from":"ours","parameters":{"num_predict":2}}`)
	require.Equal(t, "The capital", s.chat(t, "ours", france))
	s.good(t, "DELETE", "/api/delete", `{"name":"ours"}`)
	status, text = s.ask(t, "POST", "/api/chat", `{"model":"ours","messages":[`+france+`]}`)
	require.Equal(t, http.StatusNotFound, status, text)
	var tags struct{ Models []struct{ Name string } }
	require.NoError(t, json.Unmarshal([]byte(s.good(t, "GET", "/api/tags", "")), &tags))
	require.Len(t, tags.Models, 1)
	require.Equal(t, "mine:v1", tags.Models[0].Name)
}

// TestAllowStoreRefuses: paths are none, nothing is downloaded because a request names it, and what is wrong is said.
func TestAllowStoreRefuses(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	kept, err := store.Open(dir)
	require.NoError(t, err)
	envtest.KeepMini(t, kept, "ollama.com/library/mini:latest")
	path := filepath.Join(t.TempDir(), "secret.gguf")
	require.NoError(t, os.WriteFile(path, mini.GGUF, 0o600))
	s := serveStore(t, dir, h.URL)
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/api/create", `{"model":"x","from":"` + path + `"}`, 400, "no name of a model"},
		{"/api/create", `{"model":"x","from":"./secret.gguf"}`, 400, "no name of a model"},
		{"/api/create", `{"model":"x","from":"../../secret"}`, 400, "there are no models of"},
		{"/api/create", `{"model":"../x","from":"mini"}`, 400, "no name of a model"},
		{"/api/create", `{"model":"x","from":"none"}`, 404, "model 'none' not found"},
		{"/api/create", `{"model":"x","from":"Ann/Mini-GGUF"}`, 404, "model 'Ann/Mini-GGUF' not found"},
		{"/api/create", `{"model":"x"}`, 400, "want from, the name of a model in the store, or files: one of both"},
		{"/api/create", `{"model":"x","modelfile":"FROM ` + path + `"}`, 400, "modelfile is not supported here"},
		{"/api/create", `{"model":"x","files":{"../m.gguf":"sha256:` + strings.Repeat("0", 64) + `"}}`, 400, "is no name for a file"},
		{"/api/create", `{"model":"x","files":{"m.gguf":"sha256:` + strings.Repeat("0", 64) + `"}}`, 400, "upload it first"},
		{"/api/create", `{"model":"x","files":{"m.gguf":"` + path + `"}}`, 400, "is no digest"},
		{"/api/create", `{"model":"x","from":"mini","parameters":{"temprature":1}}`, 400, "did you mean temperature?"},
		{"/api/create", `{"model":"x","from":"mini","messages":[{"role":"robot","content":""}]}`, 400, "messages[0].role"},
		{"/api/create", `{"model":"x","from":"mini","template":"{% for %}"}`, 400, "template: "},
		{"/api/create", `{"model":"x","from":"mini","quantize":"Q99"}`, 400, "is no file type"},
		{"/api/create", `{"model":"x","from":"mini","adapters":{"a":"b"}}`, 400, "is no digest"},
		{"/api/copy", `{"source":"none","destination":"x"}`, 404, "model 'none' not found"},
		{"/api/copy", `{"source":"mini","destination":"/etc/x"}`, 400, "there are no models of"},
		{"/api/pull", `{"model":"` + path + `"}`, 400, "no name of a model"},
		{"/api/pull", `{"model":"Ann/None"}`, 404, "there is no such model"},
		{"/api/pull", `{}`, 400, "model is missing"},
		{"/api/chat", `{"model":"Ann/Mini-GGUF","messages":[` + france + `]}`, 404, "is not found here"},
		{"/v1/chat/completions", `{"model":"Ann/Mini-GGUF:Q8_0","messages":[` + france + `]}`, 200, ""}, // a lone model answers any name
	} {
		asked := h.Sent.Load()
		status, text := s.ask(t, "POST", c.path, strings.Replace(c.body, `{`, `{"stream":false,`, 1))
		if c.body == `{}` {
			status, text = s.ask(t, "POST", c.path, c.body)
		}
		require.Equal(t, c.status, status, "%s %s: %s", c.path, c.body, text)
		require.Contains(t, text, c.want)
		require.Equal(t, asked, h.Sent.Load(), "nothing is downloaded: %s", c.body)
	}
	text := s.good(t, "POST", "/api/create", `{"model":"x","from":"none"}`)
	require.Contains(t, text, `{"error":"model 'none' not found"}`, "in a stream, the last line says so")
	status, _ := s.ask(t, "DELETE", "/api/delete", `{"model":"none"}`)
	require.Equal(t, http.StatusNotFound, status)
	status, _ = s.ask(t, "GET", "/api/blobs/sha256:0", "")
	require.Equal(t, http.StatusMethodNotAllowed, status)
	all, err := kept.List()
	require.NoError(t, err)
	require.Len(t, all, 1, "nothing was made")

	half, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	_, err = fmt.Fprintf(half, "POST /api/blobs/sha256:%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nhalf of it",
		strings.Repeat("0", 64))
	require.NoError(t, err)
	uploads := func() int {
		entries, err := os.ReadDir(filepath.Join(dir, "uploads"))
		require.NoError(t, err)
		return len(entries)
	}
	require.Eventually(t, func() bool { return uploads() == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, half.Close())
	require.Eventually(t, func() bool { return uploads() == 0 }, time.Minute, time.Millisecond, "its client has gone")
}

// TestCreate: a Modelfile makes a model of a file, a folder, or a model in the store, and it runs as that says.
func TestCreate(t *testing.T) {
	work, dir := t.TempDir(), filepath.Join(t.TempDir(), "store")
	require.NoError(t, os.WriteFile(filepath.Join(work, "mini.gguf"), mini.GGUF, 0o600))
	write := func(text string) string {
		path := filepath.Join(work, "Modelfile")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	o := here(dir, "create", "first", "-f", write("FROM ./mini.gguf\nPARAMETER temperature 0\nPARAMETER stop Paris\n"))
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, "first is in the store: ")
	require.Equal(t, outcome{0, "The capital of France is \n", ""}, here(dir, "run", "-m", "first", "What is the capital of France?"))
	o = here(dir, "create", "second:v2", "-f", write("FROM first\nPARAMETER stop France\nPARAMETER num_ctx 700\nSYSTEM You are brief.\n"))
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, here(dir, "plan", "second:v2", "--device", "cpu").stdout, "a context of 700 tokens")
	require.Equal(t, outcome{0, "The capital of \n", ""}, here(dir, "run", "-m", "second:v2", "What is the capital of France?"))
	const template = "{{ if .System }}{{ .System }}|{{ end }}Q: {{ .Prompt }}\nA: {{ .Response }}"
	o = here(dir, "create", "third", "-f", write("FROM second:v2\nTEMPLATE \"\"\""+template+"\"\"\"\n"))
	require.Equal(t, exitDone, o.code, o.stderr)
	talk := filepath.Join(work, "talk.json")
	require.NoError(t, os.WriteFile(talk, []byte(`[{"role":"system","content":"S"},{"role":"user","content":"Hi"}]`), 0o600))
	require.Equal(t, outcome{0, "S|Q: Hi\nA: ", ""}, here(dir, "template", "-m", "third", "--conversation", talk))
	require.Equal(t, exitDone, here(dir, "rm", "third").code)
	o = here(dir, "create", "third", "-f", write("FROM first\nTEMPLATE {{ .Prompts }}\n"))
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "template: \".Prompts\": .Prompts is not known")
	o = here(dir, "show", "second:v2")
	for _, line := range []string{
		`architecture +qwen3`, `parameters +26.2 M Q4_K_M`, `context +16384 positions`, `template +\d+ characters: sluice template shows it`,
		`system +You are brief.`, `settings +temperature 0`, ` +num_ctx 700`, ` +stop France`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, o.stdout)
	}
	require.Contains(t, here(dir, "show", "--json", "second:v2").stdout, `"system": "You are brief."`)
	o = here(dir, "show", "--modelfile", "second:v2")
	require.Contains(t, o.stdout, "FROM second:v2\nTEMPLATE \"\"\"")
	require.Contains(t, o.stdout, "SYSTEM \"You are brief.\"\nPARAMETER temperature 0\nPARAMETER num_ctx 700\nPARAMETER stop \"France\"\n")
	require.Equal(t, exitDone, here(dir, "create", "again", "-f", write(o.stdout)).code)
	require.Equal(t, strings.ReplaceAll(o.stdout, "second:v2", "again"), here(dir, "show", "--modelfile", "again").stdout)
	require.Equal(t, exitDone, here(dir, "rm", "again").code)
	require.Equal(t, outcome{exitFailed, "", "sluice: " + work + "/Modelfile: line 2: \"SYSTM\" is no instruction: did you mean SYSTEM?\n"},
		here(dir, "create", "third", "-f", write("FROM first\nSYSTM x\n")))
	o = here(dir, "create", "third", "-f", write("FROM nowhere.gguf\n"))
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "FROM nowhere.gguf: there is no such file")
	o = here(dir, "create", "third", "-f", write("FROM Modelfile\n"))
	require.Equal(t, exitFailed, o.code)
	require.Equal(t, exitDone, here(dir, "rm", "first", "second:v2").code)
	for _, folder := range []string{"blobs", "partial", "pulls", "views", "models"} {
		left, err := os.ReadDir(filepath.Join(dir, folder))
		require.NoError(t, err)
		require.Empty(t, left, fmt.Sprint(folder, left))
	}
}

// TestCreateOfAFolder: safetensors are taken as they are, or written in fewer bits; so are those that clients upload.
func TestCreateOfAFolder(t *testing.T) {
	draft, dir := draftFolder(t), filepath.Join(t.TempDir(), "store")
	file := filepath.Join(t.TempDir(), "Modelfile")
	require.NoError(t, os.WriteFile(file, []byte("FROM "+draft+"\nPARAMETER temperature 0\n"), 0o600))
	ask := []string{"-n", "12", "Tell me a short story about a fox."}
	want := sluice("", append([]string{"run", "--temp", "0", "-m", draft}, ask...)...)
	require.Equal(t, outcome{exitDone, "draft is in the store: " + sizeOf(t, draft) + "\n", ""}, here(dir, "create", "draft", "-f", file))
	require.Equal(t, want, here(dir, append([]string{"run", "-m", "draft"}, ask...)...))
	o := here(dir, "create", "small", "-f", file, "-q", "q8_0")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, here(dir, "show", "small").stdout, "model-Q8_0.gguf")
	o = here(dir, append([]string{"run", "-m", "small"}, ask...)...)
	require.Equal(t, exitDone, o.code, o.stderr)
	require.NotEmpty(t, o.stdout)

	s := serveStore(t, dir, "")
	s.good(t, "DELETE", "/api/delete", `{"model":"draft"}`)
	files := map[string]string{}
	for _, name := range []string{"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"} {
		data := read(t, filepath.Join(draft, name))
		files[name] = "sha256:" + hubtest.Digest(data)
		status, text := s.ask(t, "POST", "/api/blobs/"+files[name], string(data))
		require.Equal(t, http.StatusCreated, status, text)
	}
	body, err := json.Marshal(map[string]any{"model": "sent", "files": files, "quantize": "q4_0"})
	require.NoError(t, err)
	require.Contains(t, s.good(t, "POST", "/api/create", string(body)), `{"status":"quantizing model to Q4_0"}`)
	require.NotEmpty(t, s.chat(t, "sent", france))
	status, text := s.ask(t, "POST", "/api/create", `{"model":"again","from":"sent","quantize":"q4_K_M","stream":false}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, text, "is quantised already")
	left, err := os.ReadDir(filepath.Join(dir, "uploads"))
	require.NoError(t, err)
	require.Len(t, left, 4, "what was sent waits for another model")
}

// sizeOf is that of a folder's files.
func sizeOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all int64
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		all += info.Size()
	}
	return env.BinarySize(all)
}

// TestPulledManner: what the registry of Ollama has beside the weights holds when a model runs, as far as it is known;
// a template of its makers' is better than the one there.
func TestPulledManner(t *testing.T) {
	h, dir := miniHub(t), filepath.Join(t.TempDir(), "store")
	h.Change(func(s *hubtest.Settings) {
		s.Layers["library/fox/latest"] = map[string][]byte{"model": mini.GGUF, "template": []byte("{{ .Prompt }}{{ .Response }}"),
			"system": []byte("You are a fox."), "params": []byte(`{"temperature":0,"stop":["Paris"],"of_tomorrow":[1]}`)}
	})
	o := here(dir, "pull", "--endpoint", h.URL, "-q", "fox")
	require.Equal(t, outcome{0, "", ""}, o)
	require.Equal(t, outcome{0, "The capital of France is \n", ""}, here(dir, "run", "-m", "fox", "What is the capital of France?"))
	require.Contains(t, here(dir, "template", "-m", "fox").stdout, "<|im_start|>")
	require.Contains(t, here(dir, "inspect", "fox", "--metadata").stdout, "You are a fox.")
}

// TestOfficialStore: Ollama's own client pulls, creates, copies, shows and deletes.
func TestOfficialStore(t *testing.T) {
	if testing.Short() {
		t.Skip("starts node")
	}
	node := node(t)
	h := miniHub(t)
	s := serveStore(t, filepath.Join(t.TempDir(), "store"), h.URL)
	node("store.mjs", "BASE_URL="+s.url)
}

// node returns a function that runs a script of testdata, with more in its environment. Official clients of APIs are
// there for it.
func node(t *testing.T) func(name string, more ...string) {
	t.Helper()
	clients := os.Getenv("SLUICE_CLIENTS")
	if clients == "" {
		testref.Missing(t, "clients", "SLUICE_CLIENTS is not set: see CONTRIBUTING.md")
	}
	return func(name string, more ...string) {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		folder, err := os.MkdirTemp(clients, "script-") // its imports are found above it
		require.NoError(t, err)
		defer os.RemoveAll(folder)
		script := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(script, text, 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		command := exec.CommandContext(ctx, "node", script)
		command.Env = append(os.Environ(), more...)
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, "all good\n", string(out))
	}
}
