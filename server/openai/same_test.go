package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-ai/sluice/server/ask/asktest"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestChatIsTheTalk: what a chat completion says comes to the prompt of the conversation.
func TestChatIsTheTalk(t *testing.T) {
	asktest.Same(t, "", func(talk asktest.Talk, h chat.Habits) (*chat.Input, *wire.Fault) {
		var messages []json.RawMessage
		for _, m := range talk.Messages {
			texts, thoughts := asktest.Parts(m)
			var content any = asktest.Blocks("text", "text", texts)
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
				var arguments any = string(asktest.Arguments(c))
				if i == 1 { // some clients send an object
					arguments = asktest.Arguments(c)
				}
				calls = append(calls, asktest.Object("id", c.ID, "type", "function",
					"function", asktest.Object("name", c.Name, "arguments", arguments)))
			}
			if calls != nil {
				o = append(o, "tool_calls", calls)
			}
			if m.Role == "tool" {
				o = append(o, "tool_call_id", m.Result.Call)
			}
			messages = append(messages, asktest.Object(o...))
		}
		body := asktest.Object("messages", messages, "tools", asktest.Functions(talk.Tools))
		o, fault := decodeChat(given(string(body)), asktest.With(h, testModel))
		if fault != nil {
			return nil, fault
		}
		return o.Prompts[0].Chat, nil
	})
}

// TestResponseIsTheTalk: what the items of a response say comes to the prompt of the conversation.
func TestResponseIsTheTalk(t *testing.T) {
	asktest.Same(t, "", func(talk asktest.Talk, h chat.Habits) (*chat.Input, *wire.Fault) {
		items, tools, instructions := []json.RawMessage{}, []json.RawMessage{}, ""
		for _, m := range talk.Messages {
			texts, thoughts := asktest.Parts(m)
			kind := "input_text"
			switch m.Role {
			case "system":
				instructions = texts[0]
				continue
			case "tool":
				items = append(items, asktest.Object("type", "function_call_output", "call_id", m.Result.Call,
					"output", asktest.Blocks(kind, "text", texts)))
				continue
			case "assistant":
				kind = "output_text"
			}
			if thoughts != nil {
				items = append(items, asktest.Object("type", "reasoning", "summary", []any{},
					"content", asktest.Blocks("reasoning_text", "text", thoughts)))
			}
			if texts != nil {
				items = append(items, asktest.Object("type", "message", "role", m.Role, "content", asktest.Blocks(kind, "text", texts)))
			}
			for _, c := range m.Calls {
				items = append(items, asktest.Object("type", "function_call", "call_id", c.ID, "name", c.Name,
					"arguments", string(asktest.Arguments(c))))
			}
		}
		for _, tool := range talk.Tools {
			tools = append(tools, asktest.Object("type", "function", "name", tool.Name, "description", tool.Description,
				"parameters", tool.Parameters))
		}
		body := asktest.Object("instructions", instructions, "input", items, "tools", tools)
		o, fault := decodeResponse(given(string(body)), asktest.With(h, testModel), forgotten)
		if fault != nil {
			return nil, fault
		}
		return o.Prompts[0].Chat, nil
	})
}
