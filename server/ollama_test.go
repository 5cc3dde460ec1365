package server

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/actors/devicetest"
)

// TestOllamaModels: models are described in Ollama's shape, what changes them is refused, and so is what is not there.
func TestOllamaModels(t *testing.T) {
	r := start(t, Options{}, nil)
	info := r.engine.Info
	ask := func(path, body string) (got map[string]any) {
		status, text := r.get(t, path)
		if body != "" {
			status, text = r.post(t, path, body)
		}
		require.Equal(t, 200, status, text)
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		return got
	}
	details := map[string]any{
		"parent_model": "", "format": "gguf", "family": info.Architecture, "families": []any{info.Architecture},
		"parameter_size": "26.2M", "quantization_level": "Q4_K_M",
	}
	digest := ""
	for _, path := range []string{"/api/tags", "/api/ps"} {
		models := ask(path, "")["models"].([]any)
		require.Len(t, models, 1)
		m := models[0].(map[string]any)
		require.Equal(t, []any{info.Name, info.Name, details}, []any{m["name"], m["model"], m["details"]})
		require.Len(t, m["digest"], 64)
		require.True(t, digest == "" || digest == m["digest"], "it stays the same")
		digest = m["digest"].(string)
		if path == "/api/tags" {
			require.EqualValues(t, info.WeightBytes, m["size"])
			continue
		}
		plan := r.engine.Plan()
		require.EqualValues(t, plan.Host().Bytes()+plan.Beyond().Bytes(), m["size"])
		onGPU := 0.0
		if devicetest.OnGPU() {
			onGPU = float64(plan.Beyond().Bytes())
		}
		require.EqualValues(t, []any{onGPU, float64(info.Context)}, []any{m["size_vram"], m["context_length"]})
	}
	for _, body := range []string{`{"model":"` + info.Name + `"}`, `{"name":"anything:latest","verbose":true}`} {
		shown := ask("/api/show", body)
		require.Equal(t, details, shown["details"])
		require.Contains(t, shown["capabilities"], "completion")
		require.Contains(t, shown["template"], "<|im_start|>")
		require.Contains(t, shown["parameters"], "num_ctx                        4096\n")
		about := shown["model_info"].(map[string]any)
		require.EqualValues(t, 16384, about["qwen3.context_length"])
		require.EqualValues(t, info.Parameters, about["general.parameter_count"])
		require.Contains(t, about, "tokenizer.ggml.tokens")
		require.Nil(t, about["tokenizer.ggml.tokens"])
	}
	require.Equal(t, map[string]any{"version": "0.12.11"}, ask("/api/version", ""))

	for _, verb := range []string{"pull", "create", "copy", "delete"} {
		status, body := r.post(t, "/api/"+verb, `{"model":"x"}`)
		require.Equal(t, 403, status, body)
		require.Equal(t, `{"error":"`+verb+
			` changes the store of models, which clients may not do here: start the server with --allow-store"}`, body)
	}
	status, body := r.post(t, "/api/blobs/sha256:0", `bytes`)
	require.Equal(t, 403, status, body)
	require.Contains(t, body, "--allow-store")
	status, body = r.post(t, "/api/push", `{"model":"x"}`)
	require.Equal(t, 501, status, body)
	status, body = r.post(t, "/api/nothing", `{}`)
	require.Equal(t, 404, status, body)
	require.Contains(t, body, `{"error":"there is nothing at`)
}

// TestOllamaNames: a name without a tag, or with "latest", asks for the only model there is; another tag for that very
// model, and no name is a mistake.
func TestOllamaNames(t *testing.T) {
	r := start(t, Options{}, func(c *actors.Config) { c.Name = "demo:1b" })
	for name, want := range map[string]int{
		`"demo:1b"`: 200, `"demo"`: 200, `"demo:latest"`: 200, `"other"`: 200, `"demo:2b"`: 404, `"no/such:x"`: 404, `""`: 400, `5`: 400,
	} {
		for _, path := range []string{"/api/show", "/api/chat", "/api/generate"} {
			status, body := r.post(t, path, `{"model":`+name+`}`)
			require.Equal(t, want, status, "%s %s: %s", path, name, body)
		}
	}
}

// TestOllamaAnswers: both endpoints say the same as the other dialects, whole and in lines.
func TestOllamaAnswers(t *testing.T) {
	r := start(t, Options{}, nil)
	const rest = `"model":"x","options":{"temperature":0}`
	text := func(path, body string) (said string) {
		status, got := r.post(t, path, `{`+rest+`,`+body+`}`)
		require.Equal(t, 200, status, got)
		lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
		for i, line := range lines {
			var part struct {
				Response string
				Message  struct{ Content string }
				Done     bool
			}
			require.NoError(t, json.Unmarshal([]byte(line), &part), line)
			require.Equal(t, i == len(lines)-1, part.Done)
			said += part.Response + part.Message.Content
		}
		require.Equal(t, len(lines) == 1, strings.Contains(body, `"stream":false`))
		return said
	}
	const want = "The capital of France is Paris."
	for _, how := range []string{`"stream":true`, `"stream":false`} {
		require.Equal(t, want, text("/api/chat", capitalOfFrance+`,`+how))
		require.Equal(t, want, text("/api/generate", `"prompt":"What is the capital of France?",`+how))
		raw := `"raw":true,"prompt":"<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n",`
		require.Equal(t, want, text("/api/generate", raw+how))
	}
	status, body := r.post(t, "/api/generate", `{`+rest+`,"prompt":"Hi","stream":false,"logprobs":true,"top_logprobs":2}`)
	require.Equal(t, 200, status, body)
	var got struct {
		Logprobs []struct {
			Token   string
			Logprob float64
			Bytes   []int
			Top     []struct{ Token string } `json:"top_logprobs"`
		}
		Count int `json:"eval_count"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Len(t, got.Logprobs, got.Count-1, "the end has none")
	require.Len(t, got.Logprobs[0].Top, 2)
	require.Equal(t, got.Logprobs[0].Token, got.Logprobs[0].Top[0].Token)
}

// TestOllamaUnloadsWhatStays: models of a fixed list stay, and who unloads them after work hears of no fault.
func TestOllamaUnloadsWhatStays(t *testing.T) {
	r := start(t, Options{}, nil)
	for path, question := range map[string]string{"/api/generate": `"prompt":"Hi"`, "/api/chat": capitalOfFrance} {
		status, got := r.post(t, path, `{"model":"x","keep_alive":0}`)
		require.Equal(t, 200, status, got)
		require.Contains(t, got, `"done_reason":"unload"`)
		status, got = r.post(t, path, `{"model":"x","keep_alive":0,"stream":false,`+question+`}`)
		require.Equal(t, 200, status, got)
		require.Contains(t, got, `"done":true`)
	}
}

// TestOllamaFillsIn: a model with the tokens for it fills a gap in, and says that it can.
func TestOllamaFillsIn(t *testing.T) {
	r := start(t, Options{}, func(c *actors.Config) {
		for i, key := range []string{"fim_pre_token_id", "fim_suf_token_id", "fim_mid_token_id"} {
			c.File.Meta.Set("tokenizer.ggml."+key, uint32(4+i))
		}
		c.File.Meta.Set("general.file_type", uint32(999))
	})
	_, body := r.post(t, "/api/show", `{"model":"x"}`)
	require.Contains(t, body, `"insert"`)
	require.Contains(t, body, `"quantization_level":"Q4_K"`, "of an unknown file type, what most weights are")
	status, body := r.post(t, "/api/generate", `{"model":"x","prompt":"a","suffix":"b","stream":false,"options":{"num_predict":2}}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"prompt_eval_count":5`)
	status, body = r.post(t, "/api/generate", `{"model":"x","prompt":"a","suffix":"`+strings.Repeat("1 ", 20_000)+`"}`)
	require.Equal(t, 400, status)
	require.Contains(t, body, "the texts around the gap are more than the context holds")
}

func TestOllamaEmbeds(t *testing.T) {
	r := startFixture(t, nil)
	var got struct {
		Embeddings [][]float64
		Count      int `json:"prompt_eval_count"`
	}
	status, body := r.post(t, "/api/embed", `{"model":"small","input":["a","b c"]}`)
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Len(t, got.Embeddings, 2)
	square := 0.0
	for _, x := range got.Embeddings[0] {
		square += x * x
	}
	require.InDelta(t, 1, square, 1e-4)
	require.Positive(t, got.Count)

	// What is too long loses its end, as Ollama has it, unless that is not wanted.
	count := func(rest string) int {
		t.Helper()
		status, body := r.post(t, "/api/embed", `{"model":"small","input":"`+strings.Repeat("é word ", 500)+`"`+rest+`}`)
		require.Equal(t, 200, status, body)
		var cut struct {
			Embeddings [][]float64
			Count      int `json:"prompt_eval_count"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &cut))
		require.Len(t, cut.Embeddings, 1)
		return cut.Count
	}
	whole := count("")
	require.InDelta(t, 128, whole, 2, "what the model takes")
	require.Equal(t, whole, count(`,"options":{"num_ctx":8192}`))
	for most := 8; most < 128; most += 17 {
		require.InDelta(t, most-1, count(`,"options":{"num_ctx":`+strconv.Itoa(most)+`}`), 1, "as much as fits")
	}
	for rest, why := range map[string]string{`,"truncate":false`: "input, entry 0: ", `,"options":{"num_ctx":1}`: "num_ctx is 1",
		`,"truncate":false,"options":{"num_ctx":20}`: "the context holds 128"} {
		status, body := r.post(t, "/api/embed", `{"model":"small","input":"`+strings.Repeat("é word ", 500)+`"`+rest+`}`)
		require.Equal(t, 400, status, body)
		require.Contains(t, body, why)
	}
	status, body = r.post(t, "/api/embed", `{"model":"small","truncate":false,"input":"`+strings.Repeat("é word ", 10)+`","options":{"num_ctx":20}}`)
	require.Equal(t, 400, status, body)
	require.Contains(t, body, "num_ctx is 20: ask for a larger one")

	var one struct{ Embedding []float64 }
	status, body = r.post(t, "/api/embeddings", `{"model":"small","prompt":"a"}`)
	require.Equal(t, 200, status, body)
	require.NoError(t, json.Unmarshal([]byte(body), &one))
	require.Len(t, one.Embedding, len(got.Embeddings[0]))
	length := 0.0
	for _, x := range one.Embedding {
		length += x * x
	}
	require.NotEqual(t, 1.0, math.Round(length*1e4)/1e4, "the older endpoint leaves the length as it is")
	for i, x := range one.Embedding {
		require.InDelta(t, got.Embeddings[0][i], x/math.Sqrt(length), 1e-5, "the direction is the same")
	}
	status, body = r.post(t, "/api/chat", `{"model":"small",`+capitalOfFrance+`}`)
	require.Equal(t, 400, status)
	require.Contains(t, body, "turns texts into vectors")
	_, body = r.post(t, "/api/show", `{"model":"small"}`)
	require.Contains(t, body, `"capabilities":["embedding"]`)
}

// TestNumCtx: num_ctx bounds prompt and answer, up to the context that the model was loaded with. A longer conversation
// loses its oldest turns, and keeps its system message and its last question, unless truncate is false.
func TestNumCtx(t *testing.T) {
	r := start(t, Options{}, func(c *actors.Config) { c.Context = 512 })
	type end struct {
		Response, Error string
		Message         struct{ Content string }
		Reason          string `json:"done_reason"`
		Prompt          int    `json:"prompt_eval_count"`
		Generated       int    `json:"eval_count"`
	}
	ask := func(status int, path, body string) (got end) {
		code, text := r.post(t, path, `{"model":"x","stream":false,`+body+`}`)
		require.Equal(t, status, code, text)
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		return got
	}
	const long = `"raw":true,"prompt":"One, two, three,"`
	small := ask(200, "/api/generate", long+`,"options":{"num_ctx":40}`)
	require.Equal(t, 40, small.Prompt+small.Generated)
	require.Equal(t, "length", small.Reason)
	large := ask(200, "/api/generate", long+`,"options":{"num_ctx":100000,"num_predict":60}`)
	require.Greater(t, large.Prompt+large.Generated, 40, "more than there is: as much as there is")
	refused := ask(400, "/api/generate", long+`,"options":{"num_ctx":4}`)
	require.Contains(t, refused.Error, "ask for a larger num_ctx")

	turn := `{"role":"user","content":"Tell me of ` + strings.Repeat("the sea and ", 8) + `ships."},{"role":"assistant","content":"No."},`
	const system, last = `{"role":"system","content":"Be brief."},`, `{"role":"user","content":"What is the capital of France?"}`
	said := func(options string, turns int) string {
		return `"messages":[` + system + strings.Repeat(turn, turns) + last + `],"options":{"temperature":0` + options + `}`
	}
	const answer = "The capital of France is Paris."
	alone := ask(200, "/api/chat", said("", 0))
	require.Equal(t, answer, alone.Message.Content)
	one := ask(200, "/api/chat", said("", 1)).Prompt - alone.Prompt // tokens of a turn
	for _, c := range []struct {
		options string
		context int
	}{{"", 512}, {`,"num_ctx":256`, 256}, {`,"num_ctx":4096`, 512}} {
		got := ask(200, "/api/chat", said(c.options, 40))
		require.Contains(t, got.Message.Content, "Paris", c.options)
		most := alone.Prompt + (c.context*3/4-alone.Prompt)/one*one
		require.LessOrEqual(t, got.Prompt, most, "what leaves a quarter: %s", c.options)
		require.Greater(t, got.Prompt, most-c.context/4-one, "not much more is left out: %s", c.options)
	}
	moved, before := 0, 0
	for turns := 30; turns < 60; turns++ {
		now := ask(200, "/api/chat", said(`,"num_predict":1`, turns)).Prompt
		if now <= before {
			moved++
		}
		before = now
	}
	require.Less(t, moved, 15, "a conversation that grows is cut at the same turn for a while")
	require.Positive(t, moved)
	short := ask(200, "/api/chat", said(`,"num_ctx":256,"num_predict":5`, 40))
	require.LessOrEqual(t, short.Prompt, alone.Prompt+(256-5-alone.Prompt)/one*one)
	require.GreaterOrEqual(t, short.Prompt, ask(200, "/api/chat", said(`,"num_ctx":256`, 40)).Prompt, "a short answer leaves more of them")
	require.Equal(t, alone.Prompt+one, ask(200, "/api/chat", said(`,"num_ctx":`+strconv.Itoa(alone.Prompt+one+1), 1)).Prompt,
		"what fits stays")
	whole := ask(400, "/api/chat", said("", 40)+`,"truncate":false`)
	require.Contains(t, whole.Error, "start with a larger --ctx")
	tiny := ask(400, "/api/chat", said(`,"num_ctx":20`, 3))
	require.Contains(t, tiny.Error, "ask for a larger num_ctx", "not even the last turn fits")
}

// TestOllamaContext: the context of an answer of /api/generate has the next one know of it, whole or in lines.
func TestOllamaContext(t *testing.T) {
	r := start(t, Options{}, nil)
	type end struct {
		Response  string
		Context   []int32
		Prompt    int `json:"prompt_eval_count"`
		Generated int `json:"eval_count"`
	}
	ask := func(body string) (got end) {
		code, text := r.post(t, "/api/generate", `{"model":"x","options":{"temperature":0},`+body+`}`)
		require.Equal(t, 200, code, text)
		for line := range strings.Lines(text) {
			got.Context = nil
			require.NoError(t, json.Unmarshal([]byte(line), &got))
		}
		return got
	}
	one := ask(`"prompt":"What is the capital of France?","stream":false`)
	require.Equal(t, "The capital of France is Paris.", one.Response)
	require.Len(t, one.Context, one.Prompt+one.Generated)
	require.Equal(t, one.Context, ask(`"prompt":"What is the capital of France?"`).Context)
	spelled, err := json.Marshal(one.Context)
	require.NoError(t, err)
	two := ask(`"prompt":"12 + 30","stream":false,"context":` + string(spelled))
	require.Equal(t, "12 + 30 = 42.", two.Response)
	require.Equal(t, one.Context, two.Context[:len(one.Context)])
	require.Len(t, two.Context, two.Prompt+two.Generated)
	fresh := ask(`"prompt":"12 + 30","stream":false`)
	require.Equal(t, len(one.Context)+fresh.Prompt, two.Prompt)
	require.Empty(t, ask(`"prompt":"One","raw":true,"stream":false,"options":{"num_predict":3}`).Context)
	code, text := r.post(t, "/api/chat", `{"model":"x","stream":false,`+capitalOfFrance+`}`)
	require.Equal(t, 200, code)
	require.NotContains(t, text, `"context"`)
}
