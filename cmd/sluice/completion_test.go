package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestCompletionNamesAll: each script names every command, and every flag where it belongs.
func TestCompletionNamesAll(t *testing.T) {
	parser, err := newParser(envtest.NewEnv(""), func(int) {})
	require.NoError(t, err)
	table := commandWords(parser.Model.Node)
	all := table.all()
	require.Len(t, all, len(commands(t))+3, "the program, commands, and trace and cluster, which have others below them")
	scripts := map[string]string{}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		o := sluice("", "completion", shell)
		require.Equal(t, exitDone, o.code, o.stderr)
		scripts[shell] = o.stdout
		require.Zero(t, strings.Count(o.stdout, "'")%2, "%s: quotes are closed", shell)
	}
	for _, c := range all {
		at := strings.Join(c.path, "-")
		_, flags := c.words()
		require.Contains(t, scripts["bash"], fmt.Sprintf("\n    '%s')\n", at))
		require.Contains(t, scripts["bash"], single(strings.Join(flags, " ")))
		_, function, found := strings.Cut(scripts["zsh"], "\n"+zshFunction(c)+"() {")
		require.True(t, found, at)
		function, _, _ = strings.Cut(function, "\n}")
		for _, f := range c.flags {
			require.Contains(t, function, "*--"+f.name, at)
			require.Contains(t, scripts["fish"], fmt.Sprintf(`complete -c sluice -n "__sluice_at '%s'" -l %s`, at, f.name))
		}
	}
	require.Equal(t, exitUsage, sluice("", "completion", "tcsh").code)
}

// TestCompletionInBash asks a bash what it would offer.
func TestCompletionInBash(t *testing.T) {
	bash := testref.Tool(t, "bash", "bash")
	script := filepath.Join(t.TempDir(), "sluice.bash")
	require.NoError(t, os.WriteFile(script, []byte(sluice("", "completion", "bash").stdout), 0o600))
	for _, c := range []struct{ typed, want string }{
		{"se", "serve"},
		{"serve --mo", "--model --models"},
		{"serve --kv q", "q8 q5 q4 q4_0 q5_0 q8_0"},
		{"plan --kv-v q", "q8 q5 q4 q4_0 q5_0 q8_0"},
		{"serve --addr ", ""},
		{"serve -m x.gguf --keep", "--keep-alive"},
		{"trace ", "record stalls"},
		{"trace stalls --j", "--json"},
		{"config --", "--help --json --version"},
	} {
		words := strings.Split(c.typed, " ")
		out, err := exec.Command(bash, append([]string{"--norc", "-c",
			`source "$0"; COMP_WORDS=(sluice "$@"); COMP_CWORD=$#; _sluice; echo "${COMPREPLY[*]}"`, script}, words...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, c.want, strings.TrimSpace(string(out)), c.typed)
	}
}
