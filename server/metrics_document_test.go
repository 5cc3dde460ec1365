package server

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricsDocument: docs/metrics.md says of each metric what it is, and of none that is not there.
func TestMetricsDocument(t *testing.T) {
	r := start(t, Options{Painter: newEasel("painter")}, nil)
	r.post(t, "/v1/images/generations", `{"prompt": "a cat", "size": "64x64"}`)
	r.post(t, "/v1/chat/completions", `{"max_tokens": 2, "messages": [{"role": "user", "content": "hello"}]}`)
	answer, err := r.http.Get(r.url + "/metrics")
	require.NoError(t, err)
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	text, err := os.ReadFile("../docs/metrics.md")
	require.NoError(t, err)
	_, table, found := bytes.Cut(text, []byte("| name | labels |"))
	require.True(t, found)
	table, _, _ = bytes.Cut(table, []byte("\n\n")) // others follow
	var cells []byte
	for _, m := range regexp.MustCompile(`(?m)^\|([^|]*)\|`).FindAllSubmatch(table, -1) {
		cells = append(cells, m[1]...)
	}
	require.Equal(t, names(`(?m)^# TYPE sluice_(\w+)`, page), names("`(\\w+)`", cells))
}

func names(pattern string, text []byte) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
		all = append(all, string(m[1]))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
