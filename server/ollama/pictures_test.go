package ollama

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

func TestPictures(t *testing.T) {
	sees := decodetest.With(chat.Habits{Sees: true}, testModel)
	for _, c := range []struct {
		parse func(answer.Body, decode.Finder) (request, *wire.Fault)
		body  string
	}{
		{decodeChat, `{"messages":[{"role":"user","content":"b","images":["cGlj","dHdv"]}]}`},
		{decodeGenerate, `{"prompt":"b","images":["cGlj","data:image/png;base64,dHdv"]}`},
	} {
		o, fault := c.parse(answer.NewBody(context.Background(), c.body), sees)
		require.Nil(t, fault)
		m := o.Prompts[0].Chat.Messages[0]
		require.Equal(t, "\U0010FFFE1\U0010FFFE\U0010FFFE2\U0010FFFEb", m.Text())
		require.Equal(t, []string{"pic", "two"}, []string{string(m.Parts[0].Picture.Data), string(m.Parts[1].Picture.Data)})
	}
	for body, want := range map[string]string{
		`{"prompt":"b","images":["cGlj"],"raw":true}`:   "images have no place in a raw prompt, or before a gap",
		`{"prompt":"b","images":["!"]}`:                 "images: the picture is not whole base64",
		`{"prompt":"b","images":"x"}`:                   "images: there is no picture",
		`{"prompt":"b","images":["cGlj"],"suffix":"x"}`: "images have no place in a raw prompt, or before a gap",
	} {
		_, fault := decodeGenerate(answer.NewBody(context.Background(), body), sees)
		require.NotNil(t, fault, body)
		require.Contains(t, fault.Text, want)
	}
}
