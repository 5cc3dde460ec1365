package jinja

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/internal/testref"
)

// FuzzRender: no template over no data panics, overruns its limits, changes its input or renders differently the
// second time.
func FuzzRender(f *testing.F) {
	for _, c := range langCases(f) {
		f.Add(c.Template, []byte(c.Context))
	}
	context := []byte(`{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "",
		"tool_calls": [{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]}],
		"tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
		"add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"}`)
	files, err := filepath.Glob(filepath.Join(testref.Dir(f), "templates", "*.jinja"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(source), context)
	}
	limits := Limits{Steps: 100_000, Output: 1 << 16, Memory: 1 << 20, Depth: 500}
	f.Fuzz(func(t *testing.T, source string, data []byte) {
		v, err := jsontext.Parse(string(data), nil)
		vars, ok := Of(v).(*Dict)
		if err != nil || !ok {
			return
		}
		before, err := ToJSON(vars)
		require.NoError(t, err)
		require.True(t, json.Valid(before))
		tmpl, err := Parse(source)
		if err != nil {
			require.ErrorAs(t, err, new(*Error))
			return
		}
		out, err := tmpl.Render(vars, testNow, limits)
		require.LessOrEqual(t, len(out), limits.Output)
		if err != nil {
			require.ErrorAs(t, err, new(*Error))
		}
		again, errAgain := tmpl.Render(vars, testNow, limits)
		require.Equal(t, out, again)
		require.Equal(t, err, errAgain)
		after, err := ToJSON(vars)
		require.NoError(t, err)
		require.Equal(t, before, after, "rendering changed its input")
	})
}
