package tools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/testref"
)

// TestEverySplit: an answer in two pieces, wherever it is divided, within a character too, is the whole one. Where it
// is cut there instead, what is told is the beginning of what the whole one says: no mark and no half of one is text.
func TestEverySplit(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 11
	}
	data, err := os.ReadFile(filepath.Join(testref.Dir(t), "refdata", "tools", "tools.json"))
	require.NoError(t, err)
	set, err := ParseSet(data)
	require.NoError(t, err)
	told := 0
	for i, c := range slices.Collect(testref.Cases[roundtrip](t, "refdata", "tools", "roundtrip.jsonl")) {
		s := syntaxOf(t, c.Template)
		whole := parse(t, s, c.Tail, set, c.Output)
		for at := i % step; at < len(c.Output); at += step {
			require.Equal(t, whole, parse(t, s, c.Tail, set, c.Output[:at], c.Output[at:]), "%s at %d", c.ID, at)
			p, cut := s.Parser(c.Tail, set), &answer{}
			cut.add(t, p.Push([]byte(c.Output[:at])))
			cut.add(t, p.Cut(len(c.Expect.ToolCalls) > 0 && whole.content == ""))
			told += len(cut.content)
			require.True(t, strings.HasPrefix(whole.content, cut.content), "%s at %d: text %q of %q in %q", c.ID, at,
				cut.content, whole.content, c.Output)
			require.True(t, strings.HasPrefix(whole.reasoning, cut.reasoning), "%s at %d: thought %q of %q in %q", c.ID, at,
				cut.reasoning, whole.reasoning, c.Output)
			require.LessOrEqual(t, len(cut.names), len(whole.names))
			for j, arguments := range cut.arguments {
				require.Equal(t, whole.names[j], cut.names[j], c.ID)
				require.True(t, strings.HasPrefix(whole.arguments[j], arguments), "%s at %d: arguments %q of %q in %q", c.ID, at,
					arguments, whole.arguments[j], c.Output)
			}
		}
	}
	require.Greater(t, told, 1000)
}
