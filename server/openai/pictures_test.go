package openai

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/stages/chat"
)

// shown are the text of a message and the pictures in it.
func shown(m *chat.Message) (text string, pictures []string) {
	for _, p := range m.Parts {
		if p.Picture != nil {
			pictures = append(pictures, string(p.Picture.Data))
		}
	}
	return m.Text(), pictures
}

const one, two = "\U0010FFFE1\U0010FFFE", "\U0010FFFE2\U0010FFFE"

func TestPictures(t *testing.T) {
	sees := decodetest.With(chat.Habits{Sees: true}, testModel)
	o, fault := decodeChat(given(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,cGlj","detail":"low"}},{"type":"text","text":"b"},
		{"type":"image_url","image_url":"DATA:;BASE64,dHdv"}]}]}`), sees)
	require.Nil(t, fault)
	text, pictures := shown(&o.Prompts[0].Chat.Messages[0])
	require.Equal(t, "a"+one+"b"+two, text)
	require.Equal(t, []string{"pic", "two"}, pictures)

	r, fault := decodeResponse(given(`{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,cGlj"},
		{"type":"input_text","text":"b"}]},{"type":"function_call","call_id":"i","name":"f","arguments":"{}"},
		{"type":"function_call_output","call_id":"i","output":[{"type":"input_image","image_url":"data:image/png;base64,dHdv"}]}]}`), sees, nil, false)
	require.Nil(t, fault)
	said := r.Prompts[0].Chat.Messages
	text, pictures = shown(&said[0])
	require.Equal(t, one+"b", text)
	require.Equal(t, []string{"pic"}, pictures)
	text, pictures = shown(&said[len(said)-1])
	require.Equal(t, two, text)
	require.Equal(t, []string{"two"}, pictures)
}

func TestPicturesFaults(t *testing.T) {
	sees := decodetest.With(chat.Habits{Sees: true}, testModel)
	for _, c := range []struct{ url, want string }{
		{`""`, "messages[0].content[0]: there is no picture: want a data: URL such as data:image/png;base64,..., or base64"},
		{`7`, "messages[0].content[0]: there is no picture"},
		{`"data:image/png,x"`, "messages[0].content[0]: its data: URL is not in base64"},
		{`"data:image/png;base64"`, "messages[0].content[0]: its data: URL is not in base64"},
		{`"data:image/png;base64,secret!"`, "messages[0].content[0]: the picture is not whole base64"},
		{`"data:image/png;base64,"`, "messages[0].content[0]: the picture is not whole base64"},
		{`"file:///etc/passwd"`, "messages[0].content[0]: the picture's address is neither data: nor http"},
		{`"https://a/secret.png"`, "messages[0].content[0]: this server does not fetch pictures (serve --fetch-images has it do so)"},
	} {
		_, fault := decodeChat(given(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":`+c.url+`}}]}]}`), sees)
		require.NotNil(t, fault, c.url)
		require.Contains(t, fault.Text, c.want)
		require.NotContains(t, fault.Text, "secret")
		require.Equal(t, "messages[0].content[0]", fault.Param)
	}
}

func TestPicturesAreFetched(t *testing.T) {
	sees := decodetest.With(chat.Habits{Sees: true}, testModel)
	body := func(got []byte, err error) (asked []string, text string) {
		b := given(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"HTTPS://a/x.png"}}]}]}`)
		b.Fetch = func(url string) ([]byte, error) {
			asked = append(asked, url)
			return got, err
		}
		o, fault := decodeChat(b, sees)
		if fault != nil {
			return asked, fault.Text
		}
		_, pictures := shown(&o.Prompts[0].Chat.Messages[0])
		return asked, pictures[0]
	}
	asked, got := body([]byte("pic"), nil)
	require.Equal(t, []string{"HTTPS://a/x.png"}, asked)
	require.Equal(t, "pic", got)
	_, got = body(nil, errors.New("the picture could not be fetched"))
	require.Equal(t, "messages[0].content[0]: the picture could not be fetched", got)

	b := given(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a/x.png"}}]}]}`)
	b.Fetch = func(string) ([]byte, error) { panic("a model that reads text only has nothing fetched") }
	_, fault := decodeChat(b, testModel)
	require.Contains(t, fault.Text, "this model reads text only")
}
