package server

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors/devicetest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// changing is what differs from run to run.
var changing = []struct{ pattern, with string }{
	{`(chatcmpl-|cmpl-|msg_|resp_)[0-9a-f]{14}`, "${1}ID"},
	{`("(?:id|call_id)":)"[0-9A-Za-z]{9}"`, `$1"CALL"`},
	{`"created":\d+`, `"created":0`},
	{`"created_at":"[^"]+"`, `"created_at":"DATE"`},
	{`"created_at":\d+`, `"created_at":0`},
	{`("(?:total|load|prompt_eval|eval)_duration"):\d+`, "$1:0"},
	{`("(?:prompt|predicted)_(?:ms|per_token_ms|per_second)"):[\d.]+`, "$1:0"},
}

// steady is a text without that.
func steady(text string) string {
	for _, x := range changing {
		text = regexp.MustCompile(x.pattern).ReplaceAllString(text, x.with)
	}
	return text
}

// TestBytes compares answers byte for byte, but for ids, dates and times.
func TestBytes(t *testing.T) {
	devicetest.OnProcessor(t, "the texts and probabilities of these files are a processor's")
	r := start(t, Options{}, nil)
	const talk = `"messages":[{"role":"user","content":"What is the capital of France?"}]`
	const ask = talk + `,"temperature":0`
	const city = `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`
	const weather = `"messages":[{"role":"user","content":"What is the weather in Oslo?"}],"temperature":0,`
	const functions = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":` + city + `}}]`
	const uses = `"max_tokens":60,"tools":[{"name":"get_weather","input_schema":` + city + `}]`
	for _, c := range []struct{ name, path, body string }{
		{"chat-call", "/v1/chat/completions", `{` + weather + functions + `}`},
		{"chat-call-stream", "/v1/chat/completions", `{` + weather + functions + `,"stream":true}`},
		{"chat-call-none", "/v1/chat/completions", `{` + weather + functions + `,"tool_choice":"none"}`},
		{"chat-call-forced", "/v1/chat/completions", `{` + ask + `,` + functions + `,"parallel_tool_calls":false,` +
			`"tool_choice":{"type":"function","function":{"name":"get_weather"}}}`},
		{"chat-call-result", "/v1/chat/completions", `{"temperature":0,"max_tokens":20,"messages":[` +
			`{"role":"user","content":"What is the weather in Oslo?"},{"role":"assistant","content":null,"tool_calls":[{"id":"a",` +
			`"type":"function","function":{"name":"get_weather","arguments":"{\"city\": \"Oslo\"}"}}]},` +
			`{"role":"tool","tool_call_id":"a","content":"sunny, 21 degrees"}],` + functions + `}`},
		{"message-call", "/v1/messages", `{` + weather + uses + `}`},
		{"message-call-stream", "/v1/messages", `{` + weather + uses + `,"stream":true}`},
		{"message-call-forced", "/v1/messages", `{` + ask + `,` + uses + `,"tool_choice":{"type":"any"}}`},
		{"chat", "/v1/chat/completions", `{` + ask + `}`},
		{"chat-stream", "/v1/chat/completions", `{` + ask + `,"stream":true,"stream_options":{"include_usage":true}}`},
		{"chat-stop", "/v1/chat/completions", `{` + ask + `,"stream":true,"stop":" France is"}`},
		{"completion", "/v1/completions", `{"prompt":["one two","the"],"temperature":0,"max_tokens":4}`},
		{"completion-stream", "/v1/completions", `{"prompt":"one two","temperature":0,"max_tokens":4,"stream":true}`},
		{"message", "/v1/messages", `{` + ask + `,"max_tokens":50}`},
		{"message-stream", "/v1/messages", `{` + ask + `,"max_tokens":5,"stream":true}`},
		{"message-stop", "/v1/messages", `{` + ask + `,"max_tokens":50,"stream":true,"stop_sequences":["nowhere"," France is"]}`},
		{"message-prefill", "/v1/messages", `{"temperature":0,"max_tokens":50,"messages":[{"role":"user","content":"12 + 30"},` +
			`{"role":"assistant","content":"12 + 30 ="}]}`},
		{"ollama-chat", "/api/chat", `{"model":"x",` + talk + `,"stream":false,"options":{"temperature":0}}`},
		{"ollama-chat-stream", "/api/chat", `{"model":"x",` + talk + `,"options":{"temperature":0,"num_predict":3}}`},
		{"ollama-generate", "/api/generate", `{"model":"x","prompt":"12 + 30","stream":false,"options":{"temperature":0}}`},
		{"response", "/v1/responses", `{"input":"12 + 30","temperature":0,"instructions":"Add."}`},
		{"response-stream", "/v1/responses", `{"input":"12 + 30","temperature":0,"max_output_tokens":3,"stream":true}`},
		{"llama", "/completion", `{"prompt":"one two","temperature":0,"n_predict":4,"seed":5}`},
		{"llama-stream", "/completion", `{"prompt":"one two","temperature":0,"n_predict":2,"seed":5,"stream":true}`},
		{"error", "/v1/chat/completions", `{"messages":[{"role":"user"}]}`},
	} {
		status, got := r.post(t, c.path, c.body)
		got = steady(got)
		require.Equal(t, c.name == "error", status == 400)
		file := filepath.Join("testdata", c.name+".golden")
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, string(want), got, c.name)
	}
}
