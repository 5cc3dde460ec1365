package anthropic

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/stages/chat"
)

func TestPictures(t *testing.T) {
	b := answer.NewBody(context.Background(), `{"max_tokens":5,"messages":[{"role":"user","content":[
		{"type":"image","source":{"type":"base64","media_type":"image/png","data":"cGlj"}},{"type":"text","text":"b"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"text","text":"r"},
		{"type":"image","source":{"type":"url","url":"https://a/x.png"}}]}]}]}`)
	b.Fetch = func(url string) ([]byte, error) { return []byte(url), nil }
	o, fault := parse(b, decodetest.With(chat.Habits{Sees: true}, testModel), true)
	require.Nil(t, fault)
	var texts, pictures []string
	for _, m := range o.Prompts[0].Chat.Messages {
		texts = append(texts, m.Role+": "+m.Text())
		for _, p := range m.Parts {
			if p.Picture != nil {
				pictures = append(pictures, string(p.Picture.Data))
			}
		}
	}
	require.Equal(t, []string{"user: \U0010FFFE1\U0010FFFEb", "assistant: ", "tool: r\U0010FFFE2\U0010FFFE"}, texts)
	require.Equal(t, []string{"pic", "https://a/x.png"}, pictures)
	_, fault = parse(answer.NewBody(context.Background(), `{"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image",
		"source":{"type":"base64","data":"c"}}]}]}`), decodetest.With(chat.Habits{Sees: true}, testModel), true)
	require.Contains(t, fault.Text, "messages[0].content[0]: the picture is not whole base64")
}
