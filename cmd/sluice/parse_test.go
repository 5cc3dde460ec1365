package main

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/text"
	"github.com/sluice-ai/sluice/internal/testref"
)

func TestParse(t *testing.T) {
	const answer = "<think>\nHm.\n</think>\n\nLet me look.\n<tool_call>\n{\"name\": \"find\", \"arguments\": {\"é\": [1]}}\n</tool_call>"
	hermes := func(more ...string) []string {
		return append([]string{"parse", "--template", "testdata/parse/hermes.jinja"}, more...)
	}
	golden(t, "parse",
		call{args: hermes(), stdin: answer},
		call{args: hermes("--cuts", "3,20,40,75,86"), stdin: answer},
		call{args: hermes("--tail", "<think>\n"), stdin: "Hm.\n</think>\nYes."},
		call{args: hermes(), stdin: "<tool_call>\n{\"name\": \"find\", \"arguments\": {\"a"},
		call{args: hermes("--tools", "testdata/parse/tools.json"), stdin: `{"name": "find", "arguments": {}}`},
		call{args: hermes("--tools", "testdata/parse/tools.json"), stdin: `{"name": "lose", "arguments": {}}`},
		call{args: hermes("--tools", "testdata/parse/empty.json"), stdin: `{"name": "lose", "arguments": {}}`},
		call{args: []string{"parse"}, stdin: "4"},
		call{args: []string{"parse", "--template", "testdata/parse/unknown.jinja"}, stdin: `<<DO>> find {"a": 1} <<DONE>>`},
		call{args: []string{"parse", "--template", "testdata/parse/broken.jinja"}, stdin: "4"},
		call{args: hermes("--cuts", "2,1"), stdin: "abc"},
		call{args: hermes("--cuts", "4"), stdin: "abc"},
		call{args: hermes("-m", "model.gguf"), stdin: "abc"},
		call{args: hermes("--tools", "testdata/parse/none.json"), stdin: "abc"},
		call{args: hermes("--tools", "testdata/parse/hermes.jinja"), stdin: "abc"},
		call{args: []string{"parse", "--template", "testdata/parse/none.jinja"}, stdin: "abc"},
	)
}

// TestParseReference asks the program what the reference data wants of each template's first case, whole and cut.
func TestParseReference(t *testing.T) {
	dir := testref.Dir(t)
	type roundtrip struct {
		ID, Template, Output string
		Tail                 string `json:"prompt_tail"`
		Expect               struct {
			Content, Reasoning *string
			Calls              []struct {
				Name      string
				Arguments json.RawMessage
			} `json:"tool_calls"`
		}
		Cuts map[string][]int
	}
	seen := map[string]bool{}
	for c := range testref.Cases[roundtrip](t, "refdata", "tools", "roundtrip.jsonl") {
		if seen[c.Template] || len(c.Expect.Calls) == 0 || len(c.Cuts["random"]) == 0 {
			continue
		}
		seen[c.Template] = true
		args := []string{"parse", "--template", filepath.Join(dir, "templates", c.Template), "--tail", c.Tail,
			"--tools", filepath.Join(dir, "refdata", "tools", "tools.json")}
		var cuts []string
		for _, at := range c.Cuts["random"] {
			cuts = append(cuts, strconv.Itoa(at))
		}
		whole := sluice(c.Output, args...)
		require.Equal(t, exitDone, whole.code, whole.stderr)
		var got struct {
			text.Answered
			Calls []struct {
				Name      string
				Arguments json.RawMessage
			} `json:"tool_calls"`
		}
		require.NoError(t, json.Unmarshal([]byte(whole.stdout), &got), c.ID)
		require.Len(t, got.Calls, len(c.Expect.Calls), c.ID)
		pieces := sluice(c.Output, append(args, "--cuts", strings.Join(cuts, ","))...)
		require.Equal(t, exitDone, pieces.code, pieces.stderr)
		joined := join(t, pieces.stdout)
		assert.Equal(t, got.Content, joined.Content, c.ID)
		assert.Equal(t, got.Reasoning, joined.Reasoning, c.ID)
		for i, want := range c.Expect.Calls {
			assert.Equal(t, want.Name, got.Calls[i].Name, c.ID)
			assert.JSONEq(t, string(want.Arguments), string(got.Calls[i].Arguments), c.ID)
			assert.Equal(t, want.Name, joined.Calls[i].Name, c.ID)
			assert.JSONEq(t, string(got.Calls[i].Arguments), string(joined.Calls[i].Arguments), c.ID)
		}
	}
	require.Greater(t, len(seen), 40)
}

// join puts an answer together again from its lines.
func join(t *testing.T, lines string) (a text.Answered) {
	for line := range strings.Lines(lines) {
		var s text.Streamed
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		a.Content, a.Reasoning = a.Content+s.Content, a.Reasoning+s.Reasoning
		for _, c := range s.Calls {
			if c.Index == len(a.Calls) {
				a.Calls = append(a.Calls, text.CalledWhole{})
			}
			a.Calls[c.Index].Name += c.Name
			a.Calls[c.Index].Arguments += text.Arguments(c.Arguments)
		}
	}
	return a
}
