package server

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOllamaLists: the models are listed in Ollama's shape, what changes them is refused, and so is what is not there.
func TestOllamaLists(t *testing.T) {
	r := startToy(t, Options{})
	status, body := r.get(t, "/api/tags")
	require.Equal(t, 200, status, body)
	var got struct {
		Models []struct {
			Name, Model string
			Size        int64
			Details     struct{ Format, Family string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	require.Len(t, got.Models, 1)
	m, info := got.Models[0], r.engine.Info
	require.Equal(t, []string{info.Name, info.Name, "gguf", info.Architecture},
		[]string{m.Name, m.Model, m.Details.Format, m.Details.Family})
	require.Equal(t, info.WeightBytes, m.Size)

	for _, verb := range []string{"pull", "push", "create", "copy", "delete"} {
		status, body = r.post(t, "/api/"+verb, `{"model":"x"}`)
		require.Equal(t, 501, status, body)
		require.Equal(t, `{"error":"`+verb+` is not possible here: the models are those that the server was started with"}`, body)
	}
	status, body = r.post(t, "/api/generate", `{}`)
	require.Equal(t, 404, status, body)
	require.Contains(t, body, `{"error":"there is nothing at`)
}
