package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestChatIsTheTalk: what a chat completion says comes to the prompt of the conversation.
func TestChatIsTheTalk(t *testing.T) {
	decodetest.Same(t, "", func(talk decodetest.Talk, h chat.Habits) (*chat.Input, *wire.Fault) {
		var messages []json.RawMessage
		for _, m := range talk.Messages {
			texts, thoughts := decodetest.Parts(m)
			var content any = decodetest.Blocks("text", "text", texts)
			if len(texts) == 1 {
				content = texts[0]
			} else if len(texts) == 0 {
				content = nil
			}
			o := []any{"role", m.Role, "content", content}
			if thoughts != nil {
				o = append(o, "reasoning_content", strings.Join(thoughts, "\n"))
			}
			var calls []json.RawMessage
			for i, c := range m.Calls {
				var arguments any = string(decodetest.Arguments(c))
				if i == 1 { // some clients send an object
					arguments = decodetest.Arguments(c)
				}
				calls = append(calls, decodetest.Object("id", c.ID, "type", "function",
					"function", decodetest.Object("name", c.Name, "arguments", arguments)))
			}
			if calls != nil {
				o = append(o, "tool_calls", calls)
			}
			if m.Role == "tool" {
				o = append(o, "tool_call_id", m.Result.Call)
			}
			messages = append(messages, decodetest.Object(o...))
		}
		body := decodetest.Object("messages", messages, "tools", decodetest.Functions(talk.Tools))
		o, fault := decodeChat(given(string(body)), decodetest.With(h, testModel))
		if fault != nil {
			return nil, fault
		}
		return o.Prompts[0].Chat, nil
	})
}

// TestResponseIsTheTalk: what the items of a response say comes to the prompt of the conversation.
func TestResponseIsTheTalk(t *testing.T) {
	decodetest.Same(t, "", func(talk decodetest.Talk, h chat.Habits) (*chat.Input, *wire.Fault) {
		items, tools, instructions := []json.RawMessage{}, []json.RawMessage{}, ""
		for _, m := range talk.Messages {
			texts, thoughts := decodetest.Parts(m)
			kind := "input_text"
			switch m.Role {
			case "system":
				instructions = texts[0]
				continue
			case "tool":
				items = append(items, decodetest.Object("type", "function_call_output", "call_id", m.Result.Call,
					"output", decodetest.Blocks(kind, "text", texts)))
				continue
			case "assistant":
				kind = "output_text"
			}
			if thoughts != nil {
				items = append(items, decodetest.Object("type", "reasoning", "summary", []any{},
					"content", decodetest.Blocks("reasoning_text", "text", thoughts)))
			}
			if texts != nil {
				items = append(items, decodetest.Object("type", "message", "role", m.Role, "content", decodetest.Blocks(kind, "text", texts)))
			}
			for _, c := range m.Calls {
				items = append(items, decodetest.Object("type", "function_call", "call_id", c.ID, "name", c.Name,
					"arguments", string(decodetest.Arguments(c))))
			}
		}
		for _, tool := range talk.Tools {
			tools = append(tools, decodetest.Object("type", "function", "name", tool.Name, "description", tool.Description,
				"parameters", tool.Parameters))
		}
		body := decodetest.Object("instructions", instructions, "input", items, "tools", tools)
		o, fault := decodeResponse(given(string(body)), decodetest.With(h, testModel), forgotten, false)
		if fault != nil {
			return nil, fault
		}
		return o.Prompts[0].Chat, nil
	})
}
