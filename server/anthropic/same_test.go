package anthropic

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask/asktest"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestRequestIsTheTalk: what a request's blocks say comes to the prompt of the conversation.
func TestRequestIsTheTalk(t *testing.T) {
	asktest.Same(t, "", func(talk asktest.Talk, h chat.Habits) (*chat.Input, *wire.Fault) {
		var messages, tools []json.RawMessage
		system := "" // which stands for none
		for _, m := range talk.Messages {
			texts, thoughts := asktest.Parts(m)
			role, blocks := m.Role, append(asktest.Blocks("thinking", "thinking", thoughts), asktest.Blocks("text", "text", texts)...)
			for _, c := range m.Calls {
				blocks = append(blocks, asktest.Object("type", "tool_use", "id", c.ID, "name", c.Name, "input", asktest.Arguments(c)))
			}
			switch role {
			case "system":
				system = texts[0]
				continue
			case "tool":
				role = "user"
				blocks = []json.RawMessage{asktest.Object("type", "tool_result", "tool_use_id", m.Result.Call, "content", blocks)}
			}
			messages = append(messages, asktest.Object("role", role, "content", blocks))
		}
		for _, tool := range talk.Tools {
			tools = append(tools, asktest.Object("name", tool.Name, "description", tool.Description, "input_schema", tool.Parameters))
		}
		body := asktest.Object("max_tokens", 5, "system", system, "messages", messages, "tools", tools)
		o, fault := decode(answer.NewBody(context.Background(), string(body)), asktest.With(h, testModel), true)
		if fault != nil {
			return nil, fault
		}
		return o.Prompts[0].Chat, nil
	})
}
