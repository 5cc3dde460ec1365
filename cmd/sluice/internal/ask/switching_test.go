package ask

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/mini"
)

// switches is a talk in which a person may change the model, beside which lie files: mini.gguf, unknown.gguf of an
// architecture that nobody knows, talk/one and talk.json, conversations.
func switches(t *testing.T, c *Chat, lines ...string) (*talk, *bytes.Buffer) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("mini.gguf", mini.GGUF, 0o600))
	other := bytes.Replace(mini.GGUF, []byte("qwen3"), []byte("nobod"), 1)
	require.NoError(t, os.WriteFile("unknown.gguf", other, 0o600))
	require.NoError(t, os.Mkdir("talk", 0o700))
	for _, name := range []string{filepath.Join("talk", "one"), "talk.json"} {
		writeText(t, name, `{"messages": [{"role": "user", "content": "Hi."}]}`)
	}
	talk, screen := typed(t, c, lines...)
	e, s := envtest.WithStore(t)
	envtest.KeepMini(t, s, "hf.co/acme/mini:latest")
	talk.change = func(ctx context.Context, model string) error { return c.change(ctx, e, talk.dialogue, model) }
	return talk, screen
}

// TestChatSwitches: /load takes a model, by its file or its name in the store, with which the conversation goes on.
func TestChatSwitches(t *testing.T) {
	c := &Chat{}
	talk, screen := switches(t, c, "12 + 30", "/set temperature 0.5", "/load mini.gguf", "12 + 31", "/load acme/mini", "/stats")
	var engines []*actors.Engine
	read := talk.read
	talk.read = func(ctx context.Context, prompt string) (string, error) {
		engines = append(engines, talk.engine)
		return read(ctx, prompt)
	}
	require.NoError(t, talk.run(t.Context()))
	var stayed []bool
	for i := range len(engines) - 1 {
		stayed = append(stayed, engines[i+1] == engines[i])
	}
	require.Equal(t, []bool{true, true, false, true, false, true}, stayed)
	require.Equal(t, "acme/mini", c.Model)
	require.Len(t, talk.Messages, 4)
	require.Contains(t, talk.Messages[3].Text(), "43")
	require.Zero(t, talk.sampling.Temp, "it has its own settings")
	require.Contains(t, screen.String(), "the conversation goes on with it; /reset begins a new one")
	require.Regexp(t, `context +[1-9]\d* of`, screen.String(), "what the new model would read")
	_, err := engines[0].Generate(actors.Request{Text: "a", Sampling: talk.sampling})
	require.ErrorIs(t, err, actors.ErrClosed, "one model is in memory")
}

// TestChatStaysWhereNoOtherLoads: the model that is there goes on, but where it does not come back either.
func TestChatStaysWhereNoOtherLoads(t *testing.T) {
	c := &Chat{}
	talk, screen := switches(t, c, "/load unknown.gguf", "/load talk.json", "/load talk/one", "/load acme/none", "/load none.gguf",
		"/load none/none.json", "12 + 30")
	require.NoError(t, talk.run(t.Context()))
	require.Empty(t, c.Model)
	for _, said := range []string{"nobod", "goes on", "there is no such file, and", "none.gguf: no such file",
		"none/none.json: no such file", "12 + 30 = 42."} {
		require.Contains(t, screen.String(), said)
	}
	require.Equal(t, 2, strings.Count(screen.String(), "1 message loaded"))

	talk, _ = switches(t, c, "/load unknown.gguf", "never")
	c.Model = "gone.gguf"
	err := talk.run(t.Context())
	require.ErrorIs(t, err, errNobody)
	require.ErrorContains(t, err, "gone.gguf")
}
