package llamacpp

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/server/decode/decodetest"
	"github.com/sluice-ai/sluice/stages/chat"
)

// TestImageData: pictures are where a prompt names them, as often as it does; others of a list of prompts have none.
func TestImageData(t *testing.T) {
	sees := decodetest.With(chat.Habits{Sees: true}, testModel)
	const fence = "\U0010FFFE"
	o, fault := decodeCompletion(given(`{"prompt":["a [img-12] `+fence+`1`+fence+` b [img-3][img-12]","c",[5]],
		"image_data":[{"data":"cGlj","id":12},{"id":3,"data":"data:image/png;base64,dHdv","more":1}]}`), sees)
	require.Nil(t, fault)
	require.Len(t, o.Prompts, 3)
	p := o.Prompts[0]
	mark := func(n string) string { return fence + n + fence }
	require.Equal(t, "a "+mark("1")+" 1 b "+mark("2")+mark("1"), p.Text)
	require.Len(t, p.Shown, 2)
	for i, data := range []string{"pic", "two"} {
		require.Equal(t, data, string(p.Shown[i].Picture.Data))
	}
	require.Empty(t, o.Prompts[1].Shown)
	require.Equal(t, []int32{5}, o.Prompts[2].Tokens)
	o, fault = decodeCompletion(given(`{"prompt":"a [img-1]","image_data":[]}`), sees)
	require.Nil(t, fault)
	require.Equal(t, "a [img-1]", o.Prompts[0].Text)
	for body, want := range map[string]string{
		`{"prompt":"a","image_data":[{"data":"cGlj","id":12}]}`:                                "image_data[0]: the prompt has no place for it: want [img-12]",
		`{"prompt":"[img-0]","image_data":[{"data":"!"}]}`:                                     "image_data[0]: the picture is not whole base64",
		`{"prompt":"[img-0]","image_data":[{"id":0}]}`:                                         "image_data[0]: there is no picture",
		`{"prompt":"a","image_data":"cGlj"}`:                                                   "image_data is \"cGlj\": want a list such as",
		`{"prompt":"a","image_data":[{"data":5}]}`:                                             "want a list such as",
		`{"prompt":"[img-0]","image_data":[` + strings.Repeat(`{"data":"cGlj"},`, 64) + `{}]}`: "image_data has more than 64 entries",
	} {
		_, fault := decodeCompletion(given(body), sees)
		require.NotNil(t, fault, body)
		require.Contains(t, fault.Text, want)
	}
	_, fault = decodeInfill(given(`{"input_suffix":"a","image_data":[{"data":"cGlj"}]}`), sees)
	require.Contains(t, fault.Text, "a text with a gap has no places for pictures")
}
