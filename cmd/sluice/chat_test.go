package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

func TestChat(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Symlink(filepath.Join(here, "testdata"), "testdata"))
	write(t, "talk.json", `{"messages": [{"role": "system", "content": "Be brief."},
		{"role": "user", "content": "What is the capital of France?"}]}`)
	write(t, "not.json", `{"messages": [`)

	talk := func(lines ...string) call {
		return call{[]string{"chat", "--temp", "0", "--seed", "1"}, strings.Join(lines, "\n")}
	}
	golden(t, "chat",
		talk("What is the capital of France?", "", "  12 + 30  "),
		talk(`What is \`, `the capital of Spain?`, `"""What is the`, `capital of Italy?"""`, `"""12 + 30`),
		talk("/help", "/exit", "12 + 30"),
		talk("/load talk.json", "/regen", "/system", "/system -", "/system", "/system Be kind.", "/reset", "/system"),
		talk("12 + 30", "/save saved.json", "/reset", "/load saved.json", "/save saved.json"),
		args("template", "--file", "testdata/roles.jinja", "--conversation", "saved.json"),
		talk(" /etc is a folder?"),
		talk("/nonsense"),
		talk("/save"),
		talk("/stats now"),
		talk("/regen"),
		talk("/load no-such-file.json", "12 + 30"),
		talk("/load not.json"),
		call{[]string{"chat", "--temp", "0", "12", "+ 30"}, "12 + 31"},
		call{[]string{"chat", "--temp", "0", "--load", "talk.json", "And 12 + 30?"}, "/system"},
		call{[]string{"chat", "--temp", "0", "--load", "talk.json", "--system", "Be kind."}, "/system\n/regen"},
		args("chat", "--load", "no-such-file.json"),
		args("chat", "no-such/model"),
		talk("/save no-such-folder/x.json"),
		args("chat", "--n=-2"),
		args("chat", "--temp=-1"),
		call{[]string{"chat", "--temp", "0", "--ctx", "24"}, "Tell me a short story about a fox."},
		call{[]string{"chat", "--temp", "0", "--ctx", "8"}, "Tell me a short story about a fox."},
	)
	info, err := os.Stat("saved.json")
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	left, err := filepath.Glob(".sluice-*")
	require.NoError(t, err)
	require.Empty(t, left)
}

// With NO_COLOR, or on a terminal that knows no escape sequences, a talk has none, and Ctrl-C still clears.
func TestPlainTalk(t *testing.T) {
	e := envtest.NewEnv("12 + 30\n/help\n", "chat", "--temp", "0")
	e.IsTerminal = func(any) bool { return true }
	e.Lookup = func(name string) (string, bool) {
		return map[string]string{"TERM": "xterm", "NO_COLOR": "1"}[name], true
	}
	require.Zero(t, run(e))
	said := fmt.Sprint(e.Stdout, e.Stderr)
	require.Contains(t, said, "› 12 + 30 = 42.")
	require.Contains(t, said, "/undo")
	require.NotContains(t, said, "\x1b")
}
