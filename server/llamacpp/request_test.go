package llamacpp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

func testModel(name string) (*answer.Model, *wire.Fault) {
	m := &answer.Model{
		Name: "demo", Sampling: sample.Defaults(), Vocab: 512, Context: 100, EndTokens: []int32{2, 7},
		Habits:   chat.Habits{Roles: []string{"system", "user", "assistant", "tool"}},
		Breakers: func([]string) *sample.Breakers { return sample.NewBreakers(nil) },
	}
	if name != "plain" {
		m.Fill = func(beside []token.Snippet, before, after string, _ func() bool) ([]int32, error) {
			return []int32{int32(len(beside)), int32(len(before)), int32(len(after))}, nil
		}
	}
	return m, nil
}

func given(text string) answer.Body { return answer.NewBody(context.Background(), text) }

func TestDecodeCompletion(t *testing.T) {
	o, fault := decodeCompletion(given(`{"prompt":"Hi","n_predict":5,"stream":true,"stop":["a"],"seed":7,"temperature":0.5,"top_k":3,
		"n_probs":4,"ignore_eos":true,"cache_prompt":true,"id_slot":-1,"samplers":["top_k"],"return_tokens":true,
		"post_sampling_probs":false,"n_indent":0,"t_max_predict_ms":-1,"image_data":[],"lora":[],"logit_bias":[[3,false]]}`), testModel)
	require.Nil(t, fault)
	r := o.Prompts[0]
	require.True(t, o.Stream && o.tokens && o.probs && !o.several && r.IgnoreEOG && !r.Thoughts)
	require.Equal(t, "Hi", r.Text)
	require.Equal(t, []string{"a"}, r.Stop)
	require.Equal(t, []int{5, 4, 1}, []int{r.MaxTokens, r.Sampling.LogProbs, o.N})
	require.Equal(t, []int32{2, 7}, r.Sampling.IgnoreEOG)
	s := &o.settings
	require.Equal(t, []any{5, uint64(7), float32(0.5), 3}, []any{s.MaxTokens, s.Seed, s.Temp, s.TopK})

	o, fault = decodeCompletion(given(`{"prompt":["a",[1,2]],"json_schema":{"type":"null"}}`), testModel)
	require.Nil(t, fault)
	require.True(t, o.several && !o.Stream && !o.probs)
	require.Equal(t, []int32{1, 2}, o.Prompts[1].Tokens)
	require.Equal(t, []int{0, -1, -1}, []int{o.Prompts[0].MaxTokens, o.Prompts[0].Sampling.LogProbs, o.settings.MaxTokens})
	require.NotNil(t, o.Prompts[1].Form)
	ids, fault := decodeCompletion(given(`{"prompt":"a","return_tokens":true}`), testModel)
	require.Nil(t, fault)
	require.Zero(t, ids.Prompts[0].Sampling.LogProbs, "ids come with the log-probabilities")
	require.False(t, ids.probs)
}

func TestDecodeInfill(t *testing.T) {
	o, fault := decodeInfill(given(`{"input_prefix":"ab","input_suffix":"cde","prompt":"x","input_extra":[{"filename":"f","text":"t","x":1},
		{"text":"u"}],"n_predict":3}`), testModel)
	require.Nil(t, fault)
	require.Equal(t, []int32{2, 3, 3}, o.Prompts[0].Tokens)
	require.Equal(t, 3, o.Prompts[0].MaxTokens)
	require.Zero(t, o.Within)
}

// TestDecodeOfEditors: what llama.vim and llama.vscode send, to fill in and, with n_predict 0, to have texts read.
func TestDecodeOfEditors(t *testing.T) {
	const fields = `{"input_prefix":"a","input_suffix":"b","prompt":"","top_k":40,"top_p":0.99,"stream":false,"n_indent":4,
		"samplers":["top_k","infill"],"cache_prompt":true,"t_max_prompt_ms":500,"t_max_predict_ms":1000,
		"response_fields":["content"],"n_probs":1,"return_tokens":true,"n_predict":`
	o, fault := decodeInfill(given(fields+`128}`), testModel)
	require.Nil(t, fault)
	require.Equal(t, []any{time.Second, 128, false}, []any{o.Within, o.Prompts[0].MaxTokens, o.silent})
	o, fault = decodeInfill(given(fields+`0}`), testModel)
	require.Nil(t, fault)
	require.Equal(t, []any{1, 0, true, false, false},
		[]any{o.Prompts[0].MaxTokens, o.settings.MaxTokens, o.silent, o.tokens, o.probs})
}

// faults are requests with one thing wrong.
var faults = []struct{ infill, body, param, text string }{
	{"", `{}`, "prompt", `prompt is missing: want a string`},
	{"", `{"prompt":"a","n_probs":21}`, "n_probs", `n_probs is 21: want an integer from 0 to 20`},
	{"", `{"prompt":"a","post_sampling_probs":true}`, "post_sampling_probs", `post_sampling_probs is not supported here`},
	{"", `{"prompt":"a","t_max_predict_ms":"5"}`, "t_max_predict_ms", `t_max_predict_ms is "5": want an integer from -1`},
	{"", `{"prompt":"a","image_data":[{}]}`, "image_data", `this model reads text only`},
	{"", `{"prompt":"a","lora":[{"id":0}]}`, "lora", `lora: there is no adapter of id 0: GET /lora-adapters lists them`},
	{"", `{"prompt":["a",5]}`, "prompt", `prompt is ["a",5]: want a string`},
	{"i", `{"model":"plain","input_prefix":"a"}`, "input_suffix", `the model demo has no tokens for a gap`},
	{"i", `{"input_prefix":5}`, "input_prefix", `input_prefix is 5: want a string`},
	{"i", `{"input_extra":[5]}`, "input_extra", `input_extra is [5]: want a list such as`},
	{"i", `{"input_extra":[{"text":5}]}`, "input_extra", `want a list such as`},
	{"i", `{"input_extra":[` + strings.Repeat(`{},`, 1024) + `{}]}`, "input_extra", `input_extra has more than 1024 entries`},
}

func TestFaults(t *testing.T) {
	for _, c := range faults {
		parse := decodeCompletion
		if c.infill != "" {
			parse = decodeInfill
		}
		_, fault := parse(given(c.body), testModel)
		require.NotNil(t, fault, c.body)
		require.Contains(t, fault.Text, c.text, c.body)
		require.Equal(t, c.param, fault.Param, c.body)
	}
}

func TestDecodeTexts(t *testing.T) {
	o, fault := decodeTexts(given(`{"content":"a","add_special":true,"parse_special":false,"with_pieces":true}`), testModel)
	require.Nil(t, fault)
	require.True(t, o.special && !o.parse && o.pieces)
	require.Equal(t, []answer.Text{{Text: "a"}}, o.parts)
	for text, want := range map[string]int{`{}`: 0, `{"content":""}`: 1, `{"content":[]}`: 0, `{"content":["a",[1]]}`: 2} {
		o, fault := decodeTexts(given(text), testModel)
		require.Nil(t, fault, text)
		require.True(t, o.parse && !o.special)
		require.Len(t, o.parts, want, text)
	}
	_, fault = decodeTexts(given(`{"content":5}`), testModel)
	require.Contains(t, fault.Text, "content is 5")

	for text, want := range map[string][]int32{`{"tokens":[1,2]}`: {1, 2}, `{"tokens":[]}`: nil, `{}`: nil} {
		_, ids, fault := decodeTokens(given(text), testModel)
		require.Nil(t, fault, text)
		require.Equal(t, want, ids)
	}
	for text, want := range map[string]string{
		`{"tokens":"x"}`: "want a list of token ids", `{"tokens":["x"]}`: "want a list of token ids",
		`{"tokens":[512]}`: "token 0 of the tokens is 512", `{"tokens":[[1],[2]]}`: "tokens has more than 1 entries",
	} {
		_, _, fault := decodeTokens(given(text), testModel)
		require.NotNil(t, fault, text)
		require.Contains(t, fault.Text, want)
	}
	_, in, fault := decodeConversation(given(`{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f"}}],
		"chat_template_kwargs":{"x":1},"add_generation_prompt":false}`), testModel)
	require.Nil(t, fault)
	require.True(t, in.Tools != nil && in.Extra != nil && !in.AddGenerationPrompt && len(in.Messages) == 1)
	for text, want := range map[string]string{`{}`: "messages is missing", `{"messages":[{"role":"user","content":"a"}],"tools":5}`: "tools is 5"} {
		_, _, fault := decodeConversation(given(text), testModel)
		require.NotNil(t, fault, text)
		require.Contains(t, fault.Text, want)
	}
}

func TestFaultShape(t *testing.T) {
	for _, c := range []struct {
		fault *wire.Fault
		want  string
	}{
		{wire.Invalid("x", "y", "%q", "no"), `{"code":400,"message":"\"no\"","type":"invalid_request_error"}`},
		{wire.Invalid("", "context_length_exceeded", "no"), `{"code":400,"message":"no","type":"exceed_context_size_error"}`},
		{wire.Refused(401, "", "no"), `{"code":401,"message":"no","type":"authentication_error"}`},
		{wire.Refused(403, "", "no"), `{"code":403,"message":"no","type":"permission_error"}`},
		{wire.Refused(404, "", "no"), `{"code":404,"message":"no","type":"not_found_error"}`},
		{wire.Refused(500, "", "no"), `{"code":500,"message":"no","type":"server_error"}`},
		{wire.Refused(501, "", "no"), `{"code":501,"message":"no","type":"not_supported_error"}`},
		{wire.Unavailable("", "no"), `{"code":503,"message":"no","type":"unavailable_error"}`},
	} {
		require.Equal(t, `{"error":`+c.want+`}`, string(appendFault(nil, c.fault)))
	}
}

func FuzzCompletion(f *testing.F) { fuzz(f, decodeCompletion, "") }

func FuzzInfill(f *testing.F) { fuzz(f, decodeInfill, "i") }

// fuzz: whatever comes, it is an order that keeps all limits, or a fault with a text.
func fuzz(f *testing.F, parse func(answer.Body, decode.Finder) (request, *wire.Fault), which string) {
	for _, c := range faults {
		if c.infill == which {
			f.Add(c.body)
		}
	}
	f.Add(`{"prompt":["a",[1]],"input_extra":[{"filename":"f","text":"t"}],"stop":"x","n_predict":3,"n_probs":2}`)
	m, _ := testModel("")
	f.Fuzz(func(t *testing.T, text string) {
		o, fault := parse(given(text), testModel)
		if fault != nil {
			require.NotEmpty(t, fault.Text)
			require.Less(t, len(fault.Text), 4096)
			require.True(t, json.Valid(appendFault(nil, fault)))
			return
		}
		require.LessOrEqual(t, len(o.Prompts), answer.MaxChoices)
		for _, r := range o.Prompts {
			require.GreaterOrEqual(t, r.MaxTokens, 0)
			require.LessOrEqual(t, len(r.Stop), answer.MaxStops)
			require.NoError(t, r.Sampling.Check(m.Vocab))
		}
		_, err := json.Marshal(o.settings)
		require.NoError(t, err)
	})
}

func FuzzTexts(f *testing.F) {
	f.Add(`{"content":["a",[1]],"tokens":[1,2],"messages":[{"role":"user","content":"a"}],"tools":[]}`)
	f.Fuzz(func(t *testing.T, text string) {
		o, fault := decodeTexts(given(text), testModel)
		require.True(t, fault != nil || len(o.parts) <= answer.MaxTexts)
		m, ids, fault := decodeTokens(given(text), testModel)
		require.True(t, fault != nil || len(ids) <= m.Context)
		_, in, fault := decodeConversation(given(text), testModel)
		require.True(t, fault != nil || len(in.Messages) > 0)
	})
}
