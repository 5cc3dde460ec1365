package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/tools"
)

func testModel(string) (*answer.Model, *wire.Fault) {
	return &answer.Model{
		Sampling: sample.Defaults(), Vocab: 512, Context: 100, Habits: chat.Habits{Roles: []string{"system", "developer", "user", "assistant", "tool", "ipython"}},
		EndTokens: []int32{2, 7},
		Breakers:  func(texts []string) *sample.Breakers { return sample.NewBreakers(nil) },
	}, nil
}

func given(text string) answer.Body { return answer.NewBody(context.Background(), text) }

const user = `"messages":[{"role":"user","content":"Hi"}]`

func TestDecodeChat(t *testing.T) {
	o, fault := decodeChat(given(`{`+user+`,"n":2,"stream":true,"stream_options":{"include_usage":true},"stop":"x",
		"max_tokens":5,"max_completion_tokens":7.0,"temperature":0.5,"top_p":0.25,"top_k":3,"min_p":0,"typical_p":0.5,"seed":42,
		"frequency_penalty":1,"presence_penalty":2,"repeat_penalty":1.5,"repeat_last_n":9,"mirostat":2,"mirostat_tau":3,
		"mirostat_eta":0.5,"xtc_probability":0.1,"xtc_threshold":0.2,"dry_multiplier":1,"dry_base":2,"dry_allowed_length":3,
		"dry_penalty_last_n":4,"dynatemp_range":0.5,"dynatemp_exponent":2,"top_n_sigma":1,"min_keep":1,"ignore_eos":true,
		"logit_bias":{"5":-100,"3":2},"logprobs":true,"top_logprobs":4,"unknown":{"a":[1]},"user":null,
		"chat_template_kwargs":{"enable_thinking":false},"reasoning_format":"none","response_format":{"type":"text"},
		"thinking_budget_tokens":9}`), testModel)
	require.Nil(t, fault)
	require.Equal(t, 2, o.N)
	require.True(t, o.Stream && o.usage && o.Prompts[0].Sampling.LogProbs == 4 && !o.Prompts[0].Thoughts)
	r := o.Prompts[0]
	require.Equal(t, []string{"x"}, r.Stop)
	require.Equal(t, []int{7, 9}, []int{r.MaxTokens, r.MostThoughts})
	require.True(t, r.IgnoreEOG)
	require.NotNil(t, r.Sampling.DRY.Breakers)
	r.Sampling.DRY.Breakers = nil
	require.Equal(t, sample.Params{
		Seed: 42, Temp: 0.5, DynTempRange: 0.5, DynTempExponent: 2, TopNSigma: 1, TopK: 3, TypicalP: 0.5, TopP: 0.25, MinKeep: 1,
		XTCProbability: 0.1, XTCThreshold: 0.2, RepeatPenalty: 1.5, FrequencyPenalty: 1, PresencePenalty: 2, PenaltyLastN: 9,
		DRY:      sample.DRY{Multiplier: 1, Base: 2, AllowedLength: 3, PenaltyLastN: 4},
		Mirostat: 2, Tau: 3, Eta: 0.5, Bias: []sample.Bias{{ID: 3, Add: 2}, {ID: 5, Add: -100}}, IgnoreEOG: []int32{2, 7}, LogProbs: 4,
	}, r.Sampling)
	require.Equal(t, jsontext.Bool(false), r.Chat.Extra.Get("enable_thinking"))
	require.True(t, r.Chat.AddGenerationPrompt)
	seeds := o.Requests()
	require.EqualValues(t, 42, seeds[0].Sampling.Seed)
	require.EqualValues(t, 43, seeds[1].Sampling.Seed)
}

// TestPrediction: the text that is expected comes whole or in parts, and nothing is guessed where the client says so.
func TestPrediction(t *testing.T) {
	for body, want := range map[string]string{
		`"prediction":{"type":"content","content":"so\n"}`:                         "so\n",
		`"prediction":{"content":[{"type":"text","text":"so"},{"text":" it is"}]}`: "so it is",
		`"prediction":null`:               "",
		`"prediction":{"type":"content"}`: "",
	} {
		o, fault := decodeChat(given(`{`+user+`,`+body+`}`), testModel)
		require.Nil(t, fault, body)
		require.Equal(t, want, o.Prompts[0].Prediction, body)
		require.False(t, o.Prompts[0].Unguessed)
	}
	for body, want := range map[string]bool{`"speculate":"off"`: true, `"speculate":"auto"`: false,
		`"speculative.n_max":0`: true, `"speculative.n_max":16`: false} {
		o, fault := decodeChat(given(`{`+user+`,`+body+`}`), testModel)
		require.Nil(t, fault, body)
		require.Equal(t, want, o.Prompts[0].Unguessed, body)
		o, fault = decodeCompletion(given(`{"prompt":"a",`+body+`}`), testModel)
		require.Nil(t, fault, body)
		require.Equal(t, want, o.Prompts[0].Unguessed, body)
	}
}

// TestDefaults: a request that says nothing gets the model's own sampling, and another seed each time.
func TestDefaults(t *testing.T) {
	one, fault := decodeChat(given(`{`+user+`}`), testModel)
	require.Nil(t, fault)
	two, _ := decodeChat(given(`{`+user+`,"temperature":null,"seed":-1}`), testModel)
	a, b := one.Prompts[0].Sampling, two.Prompts[0].Sampling
	require.NotEqual(t, a.Seed, b.Seed)
	a.Seed, b.Seed = 0, 0
	require.Equal(t, sample.Defaults(), a)
	require.Equal(t, a, b)
	require.Zero(t, one.Prompts[0].MaxTokens, "as many as the context holds")
	require.True(t, one.Prompts[0].Thoughts)
}

// TestThinking: the template is told whether, and how hard, the model is to think; its own variables say more.
func TestThinking(t *testing.T) {
	for rest, want := range map[string]string{
		``:                           `{}`,
		`,"reasoning_effort":"none"`: `{"enable_thinking": false, "thinking": false, "thinking_mode": "disabled"}`,
		`,"reasoning_effort":"minimal"`: `{"enable_thinking": true, "thinking": true, "thinking_mode": "enabled", ` +
			`"reasoning_effort": "low", "thinking_effort": "low"}`,
		`,"reasoning_effort":"medium"`: `{"enable_thinking": true, "thinking": true, "thinking_mode": "enabled", ` +
			`"reasoning_effort": "medium", "thinking_effort": "high"}`,
		`,"reasoning_effort":"xhigh","chat_template_kwargs":{"reasoning_effort":"max","thinking":null}`: `{"enable_thinking": true, ` +
			`"thinking": null, "thinking_mode": "enabled", "reasoning_effort": "max", "thinking_effort": "high"}`,
	} {
		o, fault := decodeChat(given(`{`+user+rest+`}`), testModel)
		require.Nil(t, fault, rest)
		text, err := chat.ToJSON(o.Prompts[0].Chat.Extra)
		require.NoError(t, err)
		require.Equal(t, want, string(text), rest)
	}
}

// TestCallsOfMessages: a result keeps the name that the client gave it, and a call may lack arguments, but not a name.
func TestCallsOfMessages(t *testing.T) {
	const result = `,{"role":"tool","content":"3","tool_call_id":"1","name":"mine"}]}`
	said := func(calls string) string {
		return `{"messages":[{"role":"assistant","content":"","tool_calls":` + calls + `}`
	}
	for _, rest := range []string{``, `,"arguments":null`, `,"arguments":""`, `,"arguments":{}`} {
		o, fault := decodeChat(given(said(`[{"id":"1","function":{"name":"f"`+rest+`}}]`)+result), testModel)
		require.Nil(t, fault, rest)
		require.Equal(t, "mine", o.Prompts[0].Chat.Messages[1].Result.Name)
	}
	for calls, want := range map[string]string{
		`"f()"`: "messages[0].tool_calls: want a list", `{}`: "messages[0].tool_calls: want a list", `[5]`: "tool_calls[0] is no call of a function",
		`[{"id":"1","function":{"name":"f","arguments":5}}]`: "tool_calls[0] is no call of a function",
		`[{"id":"1","function":{"arguments":"{}"}}]`:         "tool_calls[0] is no call of a function",
	} {
		_, fault := decodeChat(given(said(calls)+`]}`), testModel)
		require.NotNil(t, fault, calls)
		require.Contains(t, fault.Text, want)
	}
	o, fault := decodeChat(given(tooled(`{"name":"f","parameters":null}`)+`}`), testModel)
	require.Nil(t, fault)
	require.Equal(t, []answer.Tool{{Name: "f"}}, o.Prompts[0].Tools.List)
}

// TestMessages: messages reach the template in the form that templates know.
func TestMessages(t *testing.T) {
	o, fault := decodeChat(given(`{"messages":[
		{"role":"developer","content":"Be brief."},
		{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function",
			"function":{"name":"f","arguments":"{\"z\": 1, \"a\": [2]}"}}]},
		{"role":"tool","content":"3","tool_call_id":"1"}],
		"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"}`), testModel)
	require.Nil(t, fault)
	got, err := json.Marshal(o.Prompts[0].Chat.Messages)
	require.NoError(t, err)
	require.Equal(t, `[{"role":"system","content":"Be brief."},{"role":"user","content":"a\nb"},`+
		`{"role":"assistant","content":"","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"z":1,"a":[2]}}}]},`+
		`{"role":"tool","content":"3","tool_call_id":"1","name":"f"}]`, string(got))
	require.NotNil(t, o.Prompts[0].Chat.Tools)
}

// tooled is a request with a tool, but for its last brace.
func tooled(function string) string {
	return `{` + user + `,"tools":[{"type":"function","function":` + function + `}]`
}

// TestTools: what a request says of tools, and whether the template sees them.
func TestTools(t *testing.T) {
	f := answer.Tool{Name: "f", Parameters: `{"type": "object"}`, Strict: true}
	const function = `{"name":"f","strict":true,"parameters":{"type":"object"}}`
	for rest, want := range map[string]*tools.Choice{
		``: {List: []answer.Tool{f}}, `,"tool_choice":"auto"`: {List: []answer.Tool{f}}, `,"tool_choice":"none"`: nil,
		`,"tool_choice":"required","parallel_tool_calls":false`:                 {List: []answer.Tool{f}, Must: true, Single: true},
		`,"tool_choice":{"type":"function","function":{"name":"f"}}`:            {List: []answer.Tool{f}, Must: true, Only: "f"},
		`,"parallel_tool_calls":true,"tool_choice":null,"response_format":null`: {List: []answer.Tool{f}},
	} {
		o, fault := decodeChat(given(tooled(function)+rest+`}`), testModel)
		require.Nil(t, fault, rest)
		require.Equal(t, want, o.Prompts[0].Tools, rest)
		require.Equal(t, want != nil, o.Prompts[0].Chat.Tools != nil, rest)
	}
	o, fault := decodeChat(given(`{`+user+`,"tools":[]}`), testModel)
	require.Nil(t, fault)
	require.Nil(t, o.Prompts[0].Tools)
}

// TestAllowedTools: tools that a request does not allow are neither shown nor called, in both of its shapes.
func TestAllowedTools(t *testing.T) {
	for mode, must := range map[string]bool{"auto": false, "required": true} {
		o, fault := decodeChat(given(`{`+user+`,"tools":[{"type":"function","function":{"name":"f"}},
			{"type":"function","function":{"name":"g"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"`+mode+`",
			"tools":[{"type":"function","function":{"name":"g"}}]}}}`), testModel)
		require.Nil(t, fault)
		require.Equal(t, &tools.Choice{List: []answer.Tool{{Name: "g"}}, Must: must}, o.Prompts[0].Tools)
		require.Len(t, o.Prompts[0].Chat.Tools, 1)

		r, fault := decodeResponse(given(`{"input":"a","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}],
			"tool_choice":{"type":"allowed_tools","mode":"`+mode+`","tools":[{"type":"function","name":"g"}]}}`), testModel, forgotten, false)
		require.Nil(t, fault)
		require.Equal(t, &tools.Choice{List: []answer.Tool{{Name: "g"}}, Must: must}, r.Prompts[0].Tools)
		require.Len(t, r.Prompts[0].Chat.Tools, 1)
		require.Equal(t, `{"type":"allowed_tools","mode":"`+mode+`","tools":[{"type":"function","name":"g"}]}`,
			string(appendToolChoice(nil, &r.tools)))
	}
}

func TestDecodeCompletion(t *testing.T) {
	parse := func(body string) []actors.Request {
		o, fault := decodeCompletion(given(body), testModel)
		require.Nil(t, fault, body)
		return o.Prompts
	}
	require.Equal(t, "Hi", parse(`{"prompt":"Hi"}`)[0].Text)
	require.Equal(t, []int32{1, 2}, parse(`{"prompt":[1,2]}`)[0].Tokens)
	several := parse(`{"prompt":["a",[3,4]],"logprobs":0,"logit_bias":[[3,false],[4,1.5]]}`)
	require.Equal(t, "a", several[0].Text)
	require.Equal(t, []int32{3, 4}, several[1].Tokens)
	require.Zero(t, several[1].Sampling.LogProbs)
	require.Equal(t, []sample.Bias{{ID: 3, Add: float32(math.Inf(-1))}, {ID: 4, Add: 1.5}}, several[0].Sampling.Bias)
}

// TestForm: every way of saying what the answer is to be leads to a grammar that says so.
func TestForm(t *testing.T) {
	for body, texts := range map[string][2]string{ // one that is of the form, one that is not
		`"response_format":{"type":"json_object"}`:                                                 {`{"a":[1]}`, `[1]`},
		`"response_format":{"type":"json_object","schema":{"required":["b"]}}`:                     {`{"b":1}`, `{"a":1}`},
		`"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"const":1}}}`: {`1`, `2`},
		`"response_format":{"type":"json_schema","json_schema":{"schema":{"format":"date"}}}`:      {`"2026-11-23"`, `"soon"`},
		`"json_schema":{"type":"null"}`:                                                            {`null`, `1`},
		`"guided_json":"{\"type\":\"null\"}"`:                                                      {`null`, `1`},
		`"guided_regex":"a+"`:                                                                      {`aa`, `ab`},
		`"regex":"a+"`:                                                                             {`aa`, `ab`},
		`"grammar":"root ::= \"x\" [0-9]"`:                                                         {`x7`, `x`},
		`"ebnf":"root ::= \"x\""`:                                                                  {`x`, `y`},
		`"guided_grammar":"root ::= \"x\""`:                                                        {`x`, `y`},
		`"guided_choice":["yes","no"],"guided_decoding_backend":"xgrammar"`:                        {`no`, `yesno`},
		`"structured_outputs":{"choice":["yes","no"]}`:                                             {`no`, `maybe`},
		`"structured_outputs":{"json":{"type":"boolean"}}`:                                         {`true`, `1`},
		`"structured_outputs":{"regex":"[0-9]{2}"}`:                                                {`42`, `4`},
		`"structured_outputs":{"grammar":"root ::= \"x\""}`:                                        {`x`, `xx`},
	} {
		chat, fault := decodeChat(given(`{`+user+`,`+body+`}`), testModel)
		require.Nil(t, fault, body)
		completion, fault := decodeCompletion(given(`{"prompt":["a","b"],`+body+`}`), testModel)
		require.Nil(t, fault, body)
		for _, r := range append(chat.Prompts, completion.Prompts...) {
			p, err := r.Form.Make()
			require.NoError(t, err)
			for i, text := range texts {
				accept, _, err := p.Matcher().Check(text)
				require.NoError(t, err)
				require.Equal(t, i == 0, accept, "%s: %s", body, text)
			}
		}
	}
	free, fault := decodeChat(given(`{`+user+`,"response_format":{"type":"text"},"grammar":null}`), testModel)
	require.Nil(t, fault)
	require.Nil(t, free.Prompts[0].Form)
}

// faults are requests with one thing wrong, and the whole text that the client reads.
var faults = []struct{ chat, body, param, text string }{
	{"c", ``, "", `the body has 0 bytes and is not JSON at its end: is it complete?`},
	{"c", `{"messages":[}}`, "", `byte 13 of the body: it is not JSON from here on: }}`},
	{"c", `[]`, "", `the body is []: want a JSON object such as {"messages": [...]}`},
	{"c", `null`, "", `the body is null: want a JSON object such as {"messages": [...]}`},
	{"c", strings.Repeat(`{"a":`, 101), "", `byte 500 of the body: nested deeper than 100 levels: want a flatter object`},
	{"c", `{}`, "messages", `messages is missing: want a list such as [{"role": "user", "content": "..."}]`},
	{"c", `{"messages":[]}`, "messages", `messages is empty: want a list such as [{"role": "user", "content": "..."}]`},
	{"c", `{"messages":"Hi"}`, "messages", `messages: want a list: [{"role": "user", "content": "…"}]`},
	{"c", `{"messages":[{"content":"Hi"}]}`, "messages[0].role", `messages[0].role is missing: want "system", "user", "assistant" or "tool"`},
	{"c", `{"messages":[{"role":"user"}]}`, "messages[0].content",
		`messages[0].content is missing: want a string or a list of text parts`},
	{"c", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "messages[0].content",
		`messages[0].content[0].type is "image_url": this model reads text only, leave other parts out`},
	{"c", `{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"input_audio"}]}]}`, "messages[0].content",
		`messages[0].content[1].type is "input_audio": this model reads text only, leave other parts out`},
	{"c", `{` + user + `,"temperature":"hot"}`, "temperature", `temperature is "hot": want a number from 0 to 100`},
	{"c", `{` + user + `,"top_p":1.5}`, "top_p", `top_p is 1.5: want a number from 0 to 1`},
	{"c", `{` + user + `,"n":0}`, "n", `n is 0: want an integer from 1 to 128`},
	{"c", `{` + user + `,"n":1.5}`, "n", `n is 1.5: want an integer from 1 to 128`},
	{"c", `{` + user + `,"stream":"yes"}`, "stream", `stream is "yes": want true or false`},
	{"c", `{` + user + `,"stream_options":{"include_usage":1}}`, "stream_options.include_usage",
		`stream_options.include_usage is 1: want true or false`},
	{"c", `{` + user + `,"stop":["a",""]}`, "stop", `stop: entry 1 has 0 bytes: want 1 to 1024`},
	{"c", `{` + user + `,"stop":{}}`, "stop", `stop is {}: want a string or a list of strings`},
	{"c", `{` + user + `,"max_tokens":0}`, "max_tokens", `max_tokens is 0: want at least 1, or -1 for as many as the context holds`},
	{"c", `{` + user + `,"speculate":"some"}`, "speculate", `speculate is "some": want "auto" or "off"`},
	{"c", `{` + user + `,"prediction":{"type":"file"}}`, "prediction.type", `prediction.type is "file": want "content"`},
	{"c", `{` + user + `,"prediction":"so"}`, "prediction", `prediction is "so": want an object such as {"type": "content", "content": "..."}`},
	{"c", `{` + user + `,"prediction":{"content":[{"type":"image"}]}}`, "prediction.content",
		`prediction.content is [{"type":"image"}]: want a text, or a list such as [{"type": "text", "text": "..."}]`},
	{"c", `{` + user + `,"mirostat":1}`, "mirostat", `mirostat is 1: want 0 (off) or 2`},
	{"c", `{` + user + `,"top_logprobs":2}`, "top_logprobs", `top_logprobs is 2, but logprobs is not true: set it as well`},
	{"c", `{` + user + `,"logit_bias":{"512":1}}`, "logit_bias",
		`logit_bias is {"512":1}: want an object {"token id": bias} or a list [[token id, bias]] with ids of the model, and numbers or false`},
	{"c", `{` + user + `,"tools":[1]}`, "tools", `tools[0] is no object: want a list such as [{"type": "function", "function": {"name": ...}}]`},
	{"c", `{` + user + `,"tools":[],"tool_choice":"required"}`, "tool_choice",
		`tool_choice wants a call, but there are no tools: send some`},
	{"c", `{` + user + `,"tool_choice":"maybe"}`, "tool_choice",
		`tool_choice is "maybe": want "auto", "none", "required" or {"type": "function", "function": {"name": "..."}}`},
	{"c", `{` + user + `,"tool_choice":{"type":"custom"}}`, "tool_choice.type", `tool_choice.type is "custom": want "function" or "allowed_tools"`},
	{"c", tooled(`{"name":"f"}`) + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"none","tools":[]}}}`,
		"tool_choice.allowed_tools.mode", `tool_choice.allowed_tools.mode is "none": want "auto" or "required"`},
	{"c", tooled(`{"name":"f"}`) + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}}`,
		"tool_choice.allowed_tools.tools", `tool_choice.allowed_tools.tools is []: want a list of some of the tools, by their names`},
	{"c", tooled(`{"name":"f"}`) + `,"tool_choice":{"type":"allowed_tools","mode":"auto"}}`, "tool_choice.allowed_tools",
		`tool_choice.allowed_tools is null: want an object such as {"mode": "auto", "tools": [...]}`},
	{"c", tooled(`{"name":"f"}`) + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto",
		"tools":[{"type":"function","function":{"name":"g"}}]}}}`, "tool_choice", `tool_choice allows "g", which is not one of the tools`},
	{"c", tooled(`{"name":"f"}`) + `,"tool_choice":{"type":"function","function":{"name":"g"}}}`, "tool_choice",
		`tool_choice wants a call of "g", which is not one of the tools`},
	{"c", tooled(`{}`) + `}`, "tools[0].function.name", `tools[0].function.name: want a text`},
	{"c", tooled(`{"name":"a b"}`) + `}`, "tools[0].function.name",
		`tools[0].function.name is "a b": want at most 256 characters, and no blanks, brackets or quotes`},
	{"c", tooled(`{"name":"f","parameters":7}`) + `}`, "tools[0].function.parameters",
		`tools[0].function.parameters is 7: want a JSON Schema such as {"type": "object"}`},
	{"c", tooled(`{"name":"f"}},{"type":"namespace","tools":[{"type":"function","function":{}}]`) + `}`,
		"tools[1].tools[0].function.name", `tools[1].tools[0].function.name: want a text`},
	{"c", tooled(`{"name":"f"}},{"type":"function","function":{"name":"f"}`) + `}`, "tools[1].function.name",
		`tools[1].function.name is "f", as another tool's is: want a name of its own`},
	{"c", `{` + user + `,"response_format":{"type":"xml"}}`, "response_format.type",
		`response_format.type is "xml": want {"type": "text"}, {"type": "json_object"} or ` +
			`{"type": "json_schema", "json_schema": {"schema": {...}}}`},
	{"c", `{` + user + `,"response_format":{"type":"json_schema"}}`, "response_format.json_schema",
		`response_format.json_schema has no schema: want response_format as {"type": "text"}, {"type": "json_object"} or ` +
			`{"type": "json_schema", "json_schema": {"schema": {...}}}`},
	{"c", `{"messages":[{"role":"root","content":"Hi"}]}`, "messages[0].role",
		`messages[0].role is "root": want one of system, developer, user, assistant, tool, ipython`},
	{"c", `{` + user + `,"guided_json":{},"regex":"a"}`, "regex",
		`guided_json and regex both say what the answer is to be: give one of them`},
	{"", `{"prompt":"a","structured_outputs":{"structural_tag":{}}}`, "structured_outputs.structural_tag",
		`structured_outputs.structural_tag is not supported here: leave it out`},
	{"c", `{` + user + `,"x":"` + "\xff" + `"}`, "", `byte 50 of the body: it is not UTF-8 from here on: send JSON in UTF-8`},
	{"c", `{` + user + `,"chat_template_kwargs":[]}`, "chat_template_kwargs",
		`chat_template_kwargs is []: want an object such as {"enable_thinking": false}`},
	{"c", `{` + user + `,"reasoning_format":"x"}`, "reasoning_format",
		`reasoning_format is "x": want "auto", or "none" to leave the thinking in the text`},
	{"", `{}`, "prompt", `prompt is missing: want a string, a list of strings, a list of token ids, or a list of such lists`},
	{"", `{"prompt":[]}`, "prompt", `prompt is []: want a string, a list of strings, a list of token ids, or a list of such lists`},
	{"", `{"prompt":[1,512]}`, "prompt", `token 1 of the prompt is 512: the vocabulary has 0 to 511`},
	{"", `{"prompt":["a","b","c"],"n":43}`, "n", `3 prompts with n = 43 make 129 choices: want at most 128`},
	{"", `{"prompt":"a","echo":true}`, "echo", `echo is not supported here: put the prompt in front of the answer yourself; sluice logits has probabilities of a prompt's own tokens`},
	{"", `{"prompt":"a","suffix":"b"}`, "suffix", `suffix: the model empty has no tokens for a gap in a text: ask one that was ` +
		`trained to fill in`},
	{"", `{"prompt":[1],"suffix":"b"}`, "suffix", `suffix goes with a prompt that is a text: send the text of the tokens`},
	{"c", `{` + user + `,"reasoning_effort":"huge"}`, "reasoning_effort",
		`reasoning_effort is "huge": want "none", "minimal", "low", "medium", "high", "xhigh" or "max"`},
	{"c", `{` + user + `,"functions":[{"name":"f"}]}`, "functions", `functions is not supported here: send them as tools`},
	{"c", `{` + user + `,"audio":{"voice":"x"}}`, "audio", `audio is not supported here: leave it out: answers are texts`},
	{"c", `{` + user + `,"modalities":["text","audio"]}`, "modalities", `modalities is ["text","audio"]: want ["text"]`},
	{"c", `{` + user + `,"web_search_options":{}}`, "web_search_options",
		`web_search_options is not supported here: leave it out: the server has no tools of its own`},
	{"", `{"prompt":"a","best_of":2}`, "best_of", `best_of is 2: want an integer from 1 to 1`},
}

// TestAsksForText: what asks for text alone, or for nothing, is no fault.
func TestAsksForText(t *testing.T) {
	_, fault := decodeChat(given(`{`+user+`,"functions":[],"modalities":[ "text" ],"audio":null,"web_search_options":null}`), testModel)
	require.Nil(t, fault)
}

func TestFaults(t *testing.T) {
	for _, c := range faults {
		parse := decodeCompletion
		if c.chat != "" {
			parse = decodeChat
		}
		_, fault := parse(given(c.body), testModel)
		require.NotNil(t, fault, c.body)
		require.Equal(t, c.text, fault.Text, c.body)
		require.Equal(t, c.param, fault.Param, c.body)
		require.Equal(t, 400, fault.Status)
	}
}

func FuzzChatRequest(f *testing.F) { fuzzRequest(f, decodeChat, "c") }

func FuzzCompletionRequest(f *testing.F) { fuzzRequest(f, decodeCompletion, "") }

// foreign are words of other packages' errors, which no client is told; guided_json: is a field.
var foreign = regexp.MustCompile(`\bjson:|strconv|unmarshal|cannot parse`)

// fuzzRequest: a body is refused with an error in OpenAI's shape, or what was decoded keeps all limits.
func fuzzRequest(f *testing.F, parse func(answer.Body, decode.Finder) (request, *wire.Fault), which string) {
	for _, c := range faults {
		if c.chat == which {
			f.Add([]byte(c.body))
		}
	}
	f.Add([]byte(`{` + user + `,"prompt":"a","guided_json":""}`))
	f.Add([]byte(`{` + user + `,"prompt":[[1,2],"x"],"seed":1e3,"stop":["a","b"],"logit_bias":[[1,false]],"dry_multiplier":1}`))
	m, _ := testModel("")
	f.Fuzz(func(t *testing.T, body []byte) {
		o, fault := parse(given(string(body)), testModel)
		if fault != nil {
			require.NotEmpty(t, fault.Text)
			require.Equal(t, 400, fault.Status)
			require.Less(t, len(fault.Text), 4096)
			var shape struct {
				Error struct{ Message, Type string }
			}
			require.NoError(t, json.Unmarshal(appendFault(nil, fault), &shape))
			require.Equal(t, "invalid_request_error", shape.Error.Type)
			if word := foreign.FindString(fault.Text); word != "" {
				require.True(t, bytes.Contains(body, []byte(word)), fault.Text)
			}
			return
		}
		require.NotEmpty(t, o.Prompts)
		require.LessOrEqual(t, len(o.Prompts)*o.N, answer.MaxChoices)
		require.GreaterOrEqual(t, o.N, 1)
		for _, r := range o.Requests() {
			require.LessOrEqual(t, len(r.Stop), answer.MaxStops)
			require.GreaterOrEqual(t, r.MaxTokens, 0)
			require.NoError(t, r.Sampling.Check(m.Vocab), fmt.Sprintf("%q", body))
			if r.Chat != nil {
				require.NotEmpty(t, r.Chat.Messages)
				require.LessOrEqual(t, len(r.Chat.Messages), answer.MaxMessages)
			}
		}
	})
}
