package ollama

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestChatIsTheTalk: what a request says comes to the prompt of the conversation. Templates that know thinking by
// Ollama's name see it twice, and are left out.
func TestChatIsTheTalk(t *testing.T) {
	decodetest.Same(t, ".thinking", func(talk decodetest.Talk, h chat.Habits) (*chat.Input, *wire.Fault) {
		var messages []json.RawMessage
		for _, m := range talk.Messages {
			texts, thoughts := decodetest.Parts(m)
			o := []any{"role", m.Role}
			if texts != nil {
				o = append(o, "content", strings.Join(texts, "\n"))
			}
			if thoughts != nil {
				o = append(o, "thinking", strings.Join(thoughts, "\n"))
			}
			var calls []json.RawMessage
			for _, c := range m.Calls {
				calls = append(calls, decodetest.Object("id", c.ID, "function", decodetest.Object("name", c.Name, "arguments", decodetest.Arguments(c))))
			}
			if calls != nil {
				o = append(o, "tool_calls", calls)
			}
			if m.Role == "tool" {
				o = append(o, "tool_name", m.Result.Name, "tool_call_id", m.Result.Call)
			}
			messages = append(messages, decodetest.Object(o...))
		}
		body := decodetest.Object("messages", messages, "tools", decodetest.Functions(talk.Tools))
		o, fault := decodeChat(answer.NewBody(context.Background(), string(body)), decodetest.With(h, testModel))
		if fault != nil {
			return nil, fault
		}
		return o.Prompts[0].Chat, nil
	})
}
