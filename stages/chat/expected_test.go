package chat_test

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// expected mirrors templates/expected.json.gz of the reference data: what Jinja2 3.1.2 renders.
type expected struct {
	Tokens map[string]struct {
		BOS string `json:"bos_token"`
		EOS string `json:"eos_token"`
	} `json:"tokens"`
	Cases []struct {
		Template     string          `json:"template"`
		Conversation string          `json:"conversation"`
		Kwargs       json.RawMessage `json:"kwargs"`
		Rendered     *string         `json:"rendered"`
		Error        string          `json:"error"`
		ErrorKind    string          `json:"error_kind"`
	} `json:"cases"`
}

var now = time.Date(2026, 11, 20, 12, 34, 56, 0, time.UTC)

func readExpected(t testing.TB, dir string) (e expected) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expected.json.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	require.NoError(t, json.NewDecoder(z).Decode(&e))
	return e
}

func readConversations(t testing.TB, dir string) map[string]chat.Conversation {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "conversations.json"))
	require.NoError(t, err)
	var raw map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &raw))
	out := make(map[string]chat.Conversation, len(raw))
	for name, r := range raw {
		out[name], err = chat.ParseConversation(string(r))
		require.NoError(t, err, name)
	}
	return out
}

// TestRealTemplates renders the templates of real models over our conversations: every byte, and every refusal.
func TestRealTemplates(t *testing.T) {
	dir := filepath.Join(testref.Dir(t), "templates")
	want := readExpected(t, dir)
	conversations := readConversations(t, dir)
	require.Len(t, want.Cases, 5904)
	templates := map[string]*chat.Template{}
	for name := range want.Tokens {
		source, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		templates[name], err = chat.Compile(string(source))
		require.NoError(t, err, name)
	}
	failed := 0
	for _, c := range want.Cases {
		conv := conversations[c.Conversation]
		in := chat.Input{
			Messages: conv.Messages, Tools: conv.Tools, Documents: conv.Documents, Now: now,
			BOS: want.Tokens[c.Template].BOS, EOS: want.Tokens[c.Template].EOS, Extra: &jsontext.Object{},
		}
		kwargs, err := chat.ParseVariables(string(c.Kwargs), nil)
		require.NoError(t, err)
		for name, v := range kwargs.All() {
			switch name {
			case "add_generation_prompt":
				in.AddGenerationPrompt = v == jsontext.Bool(true)
			case "continue_final_message":
				in.ContinueFinalMessage = v == jsontext.Bool(true)
			default:
				in.Extra.Set(name, v)
			}
		}
		out, err := templates[c.Template].Render(in)
		if problem := differs(out, err, c.Rendered, c.Error, c.ErrorKind); problem != "" {
			t.Errorf("%s over %s %s: %s", c.Template, c.Conversation, c.Kwargs, problem)
			if failed++; failed > 2000 {
				t.Fatal("too many differences")
			}
		}
	}
}

// differs compares a rendering with the expected one, errors by their class and refusals word for word.
func differs(out string, err error, rendered *string, message, kind string) string {
	if rendered != nil {
		switch {
		case err != nil:
			return err.Error()
		case out != *rendered:
			at := 0
			for at < len(out) && at < len(*rendered) && out[at] == (*rendered)[at] {
				at++
			}
			tail := func(s string) string { return s[max(0, at-40):min(len(s), at+60)] }
			return "rendered …" + tail(out) + "… instead of …" + tail(*rendered)
		}
		return ""
	}
	var e *jinja.Error
	switch {
	case !errors.As(err, &e):
		return "rendered " + out + " instead of raising " + kind + ": " + message
	case e.Kind.String() != kind:
		return err.Error() + ": wanted " + kind + ": " + message
	case e.Kind == jinja.Raised && err.Error() != message:
		return "refused with " + err.Error() + " instead of " + message
	}
	return ""
}
