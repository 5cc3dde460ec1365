package anthropic

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestRequestIsTheTalk: what a request's blocks say comes to the prompt of the conversation.
func TestRequestIsTheTalk(t *testing.T) {
	decodetest.Same(t, "", func(talk decodetest.Talk, h chat.Habits) (*chat.Input, *wire.Fault) {
		var messages, tools []json.RawMessage
		system := "" // which stands for none
		for _, m := range talk.Messages {
			texts, thoughts := decodetest.Parts(m)
			role, blocks := m.Role, append(decodetest.Blocks("thinking", "thinking", thoughts), decodetest.Blocks("text", "text", texts)...)
			for _, c := range m.Calls {
				blocks = append(blocks, decodetest.Object("type", "tool_use", "id", c.ID, "name", c.Name, "input", decodetest.Arguments(c)))
			}
			switch role {
			case "system":
				system = texts[0]
				continue
			case "tool":
				role = "user"
				blocks = []json.RawMessage{decodetest.Object("type", "tool_result", "tool_use_id", m.Result.Call, "content", blocks)}
			}
			messages = append(messages, decodetest.Object("role", role, "content", blocks))
		}
		for _, tool := range talk.Tools {
			tools = append(tools, decodetest.Object("name", tool.Name, "description", tool.Description, "input_schema", tool.Parameters))
		}
		body := decodetest.Object("max_tokens", 5, "system", system, "messages", messages, "tools", tools)
		o, fault := parse(answer.NewBody(context.Background(), string(body)), decodetest.With(h, testModel), true)
		if fault != nil {
			return nil, fault
		}
		return o.Prompts[0].Chat, nil
	})
}
