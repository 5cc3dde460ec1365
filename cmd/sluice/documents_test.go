package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/storage/store"
)

// section is what stands in a document between a heading and the next.
func section(t *testing.T, document, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", document))
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "\n"+heading+"\n")
	require.True(t, found, "%s has no %s", document, heading)
	within, _, _ := strings.Cut(after, "\n## ")
	return within
}

// TestReadmeCanBePasted: the commands of README's Use name models that there are, no placeholders, and one that sluice
// suggest knows; what is not here is said.
func TestReadmeCanBePasted(t *testing.T) {
	use, n := section(t, "README.md", "## Use"), 0
	suggested := suggest(t, 0, "--ram", "8G").stdout
	for line := range strings.Lines(use) {
		for _, words := range invocations(strings.TrimSuffix(line, "\n")) {
			n++
			for _, word := range words {
				require.NotRegexp(t, `^([A-Z]+(/[A-Z-]+)?|.*\.gguf|~.*|.*\.\.\.)$`, word, "nobody has that: %s", line)
				if strings.Contains(word, "/") && !strings.Contains(word, " ") {
					_, err := store.ParseName(word)
					require.NoError(t, err, line)
					require.Contains(t, suggested, word, "%s: it is not suggested", line)
				}
			}
		}
	}
	require.GreaterOrEqual(t, n, 8)
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	require.NoError(t, err)
	require.Regexp(t, `(?s)\*\*Not here\*\*: .{0,200}macOS and Windows`, string(text))
}

// TestUseWithNamesPrograms: the page for other programs says of each what to type, and an address that is ours.
func TestUseWithNamesPrograms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "use-with.md"))
	require.NoError(t, err)
	table, rest, found := strings.Cut(string(text), "\n## ")
	require.True(t, found)
	for _, program := range []string{"Open WebUI", "Claude Code", "Codex", "Continue", "Zed", "VS Code", "Aider", "opencode",
		"Home Assistant", "n8n", "LangChain"} {
		row := ""
		for line := range strings.Lines(table) {
			if cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |"); strings.Contains(cell, program) {
				row = line
			}
		}
		require.NotEmpty(t, row, program)
		if strings.Contains(row, "| below |") {
			require.Contains(t, rest, program)
			continue
		}
		require.Contains(t, row, ":8080", program)
	}
	require.Contains(t, rest, "--add-host host.docker.internal")
}
