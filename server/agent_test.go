package server

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/shared"
	"github.com/stretchr/testify/require"
)

// cities is the schema of a tool that an agent of these tests has.
const cities = `{"type":"object","properties":{"city":{"type":"string","enum":["Oslo","Lima"]},` +
	`"days":{"type":"integer","minimum":1,"maximum":3}},"required":["city","days"],"additionalProperties":false}`

// place is what a call of it says.
type place struct {
	City string
	Days int
}

func (p place) check(t *testing.T) {
	require.Contains(t, []string{"Oslo", "Lima"}, p.City)
	require.True(t, p.Days >= 1 && p.Days <= 3, p.Days)
}

// TestAgent: OpenAI's client streams calls, answers them, and goes on; calls are forced for several steps, until it
// wants words.
func TestAgent(t *testing.T) {
	r := start(t, Options{}, nil)
	client := r.client()
	parameters := shared.FunctionParameters{}
	require.NoError(t, json.Unmarshal([]byte(cities), &parameters))
	p := openai.ChatCompletionNewParams{
		Model: "whatever", MaxTokens: openai.Int(300), Temperature: openai.Float(1.5), Seed: openai.Int(3),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("What is the weather in Oslo?")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: "get_weather", Parameters: parameters, Strict: openai.Bool(true)})},
		ToolChoice: openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")},
	}
	ids := map[string]bool{}
	for step := range 5 {
		if step == 4 {
			p.ToolChoice.OfAuto = openai.String("none")
		}
		stream, sum := client.Chat.Completions.NewStreaming(t.Context(), p), openai.ChatCompletionAccumulator{}
		for stream.Next() {
			require.True(t, sum.AddChunk(stream.Current()))
		}
		require.NoError(t, stream.Err())
		choice := sum.Choices[0]
		if step == 4 {
			require.NotEqual(t, "tool_calls", choice.FinishReason)
			require.NotEmpty(t, choice.Message.Content)
			require.Empty(t, choice.Message.ToolCalls)
			return
		}
		require.Equal(t, "tool_calls", choice.FinishReason)
		require.Empty(t, choice.Message.Content)
		require.NotEmpty(t, choice.Message.ToolCalls)
		p.Messages = append(p.Messages, choice.Message.ToParam())
		for i, call := range choice.Message.ToolCalls {
			require.False(t, ids[call.ID], "an id comes once")
			ids[call.ID] = true
			require.Equal(t, "get_weather", call.Function.Name)
			var at place
			require.NoError(t, json.Unmarshal([]byte(call.Function.Arguments), &at), call.Function.Arguments)
			at.check(t)
			p.Messages = append(p.Messages, openai.ToolMessage(fmt.Sprintf("%d degrees in %s", i, at.City), call.ID))
		}
	}
}

// TestAgentOfMessages: the same by Anthropic's API; what the model is free to do it does, too.
func TestAgentOfMessages(t *testing.T) {
	r := start(t, Options{}, nil)
	type block struct {
		Type      string `json:"type"`
		Text      string `json:"text,omitempty"`
		ID        string `json:"id,omitempty"`
		Name      string `json:"name,omitempty"`
		Input     *place `json:"input,omitempty"`
		ToolUseID string `json:"tool_use_id,omitempty"`
		Content   string `json:"content,omitempty"`
	}
	type message struct {
		Role    string  `json:"role"`
		Content []block `json:"content"`
	}
	talk := []message{{"user", []block{{Type: "text", Text: "What is the weather in Oslo?"}}}}
	for step, choice := range []string{"any", "tool", "auto"} {
		text, err := json.Marshal(talk)
		require.NoError(t, err)
		status, body := r.post(t, "/v1/messages", `{"max_tokens":300,"temperature":0,"messages":`+string(text)+
			`,"tools":[{"name":"get_weather","input_schema":`+cities+`}],"tool_choice":{"type":"`+choice+
			`","name":"get_weather","disable_parallel_tool_use":true}}`)
		require.Equal(t, 200, status, body)
		var got struct {
			Content []block
			Reason  string `json:"stop_reason"`
		}
		require.NoError(t, json.Unmarshal([]byte(body), &got))
		require.Len(t, got.Content, 1, body)
		use := got.Content[0]
		if step == 2 {
			require.Equal(t, "end_turn", got.Reason)
			require.Equal(t, "text", use.Type)
			return
		}
		require.Equal(t, "tool_use", got.Reason)
		require.Equal(t, "get_weather", use.Name)
		use.Input.check(t)
		talk = append(talk, message{"assistant", got.Content}, message{"user",
			[]block{{Type: "tool_result", ToolUseID: use.ID, Content: "sunny, 21 degrees"}}})
	}
}
