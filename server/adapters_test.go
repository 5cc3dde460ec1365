package server

import (
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/backendtest"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/model/lora"
)

// TestAdapters: an adapter is asked for by its name, by BASE+NAME, and by its id, with one answer; the base model gives
// another one, and so does half of the adapter. It is listed as a model with a parent.
func TestAdapters(t *testing.T) {
	engine := startEngine(t, func(c *actors.Config) { c.Adapted, c.Name = true, "base" })
	require.NoError(t, engine.AddAdapter(actors.Adapter{Name: "fine", Open: func(p *ir.Program) (*lora.Loaded, error) {
		a := backendtest.RandomAdapter(rand.New(rand.NewPCG(1, 2)), p, 4, 1)
		for _, u := range a.Updates {
			u.Scale = 8 // enough to change what a trained model says
		}
		return &lora.Loaded{Adapter: *a, Bytes: 1, Digest: [32]byte{1}}, nil
	}}, true))
	r := startServer(t, engine, Options{}, func(o Options) *Server { return New(Engines(engine), o) })
	texts := map[string]string{}
	for _, model := range []string{"base", "fine", "base+fine", "gpt-4"} {
		const said = "The capital of"
		for api, ask := range map[string][3]string{
			"openai": {"/v1/completions", `"prompt": "` + said + `", "max_tokens": 6, "temperature": 0`, "choices.0.text"},
			"llama":  {"/completion", `"prompt": "` + said + `", "n_predict": 6, "temperature": 0`, "content"},
			"ollama": {"/api/generate", `"prompt": "` + said + `", "raw": true, "stream": false, ` +
				`"options": {"num_predict": 6, "temperature": 0}`, "response"},
			"anthropic": {"/v1/messages", `"messages": [{"role": "user", "content": "` + said + `"}], "max_tokens": 6, ` +
				`"temperature": 0`, "content.0.text"},
		} {
			status, body := r.post(t, ask[0], `{"model": "`+model+`", `+ask[1]+`}`)
			require.Equal(t, 200, status, "%s %s: %s", api, model, body)
			texts[api+" "+model] = at(t, body, ask[2])
		}
	}
	for _, api := range []string{"openai", "llama", "ollama", "anthropic"} {
		require.Equal(t, texts[api+" fine"], texts[api+" base+fine"], api)
		require.Equal(t, texts[api+" base"], texts[api+" gpt-4"], "any name finds the only model")
		require.NotEqual(t, texts[api+" base"], texts[api+" fine"], api)
	}
	by := func(lora string) string {
		status, body := r.post(t, "/completion",
			`{"prompt": "The capital of", "n_predict": 6, "temperature": 0, "lora": `+lora+`}`)
		require.Equal(t, 200, status, body)
		return at(t, body, "content")
	}
	require.Equal(t, texts["llama fine"], by(`[{"id": 0, "scale": 1}]`))
	require.Equal(t, texts["llama base"], by(`[{"id": 0, "scale": 0}]`))
	require.Equal(t, texts["llama base"], by(`[]`))
	require.NotEqual(t, texts["llama fine"], by(`[{"id": 0, "scale": -1}]`))

	status, body := r.post(t, "/v1/completions", `{"model": "base+none", "prompt": "a"}`)
	require.Equal(t, 404, status, body)
	status, body = r.post(t, "/completion", `{"prompt": "a", "lora": [{"id": 7, "scale": 1}]}`)
	require.Equal(t, 400, status, body)
	status, body = r.post(t, "/completion", `{"prompt": "a", "lora": [{"id": 0, "scale": "x"}]}`)
	require.Equal(t, 400, status, body)
	_, body = r.get(t, "/v1/models")
	require.Equal(t, "base", at(t, body, "data.0.id"))
	require.Equal(t, "fine", at(t, body, "data.1.id"))
	require.Equal(t, "base", at(t, body, "data.1.parent"))
	_, body = r.get(t, "/lora-adapters")
	require.JSONEq(t, `[{"id": 0, "name": "fine", "path": "fine", "scale": 0}]`, body)
}

// at is the text at a path of JSON, such as choices.0.text.
func at(t *testing.T, body, path string) string {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(body), &v))
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			i, err := strconv.Atoi(key)
			require.NoError(t, err)
			require.Less(t, i, len(x), body)
			v = x[i]
		}
	}
	text, _ := v.(string)
	return text
}
