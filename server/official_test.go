package server

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/testref"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// clientsFolder names a folder with the reference data's client scripts and what npm installs for them.
const clientsFolder = "SLUICE_CLIENTS"

// otherwise are checks of the scripts that we decided differently.
var otherwise = map[string]string{
	"openai-completions.default_length": "an answer without max_tokens ends by itself",
}

// TestOfficialClients runs the reference data's scripts, which ask by the official clients of each API.
func TestOfficialClients(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	dir := officialClients(t)
	bert, err := gguf.Open(filepath.Join(testref.Dir(t), "fixtures", "bert.gguf"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, bert.Close()) })
	writes := startEngine(t, func(c *actors.Config) { c.Name = "demo" })
	embeds := startEngine(t, func(c *actors.Config) { c.Model = actors.Model{File: bert, Name: "small"} })
	r := startServer(t, writes, Options{}, func(o Options) *Server { return New(Engines(writes, embeds), o) })
	scripted(t, dir, "run.mjs", r.url, 80)
}

// TestAgentsOfOfficialClients runs agents by the helpers that the official clients have for calls of tools: several
// forced steps, whole and streamed, and words in the end.
func TestAgentsOfOfficialClients(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	r := start(t, Options{}, nil)
	scripted(t, besideClients(t, "agents.mjs"), "agents.mjs", r.url, 8)
}

// TestImagesOfOfficialClients asks for pictures as programs in JavaScript do.
func TestImagesOfOfficialClients(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	r := painting(t, newEasel("painter"), Options{})
	scripted(t, besideClients(t, "images.mjs"), "images.mjs", r.url, 4)
}

// TestClientTable asks by those clients of the table in docs/use-with.md that are installed for CI; clients.sh installs
// all, and has the same script print the table.
func TestClientTable(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds")
	}
	r := start(t, Options{}, nil)
	node := exec.CommandContext(t.Context(), "node", filepath.Join(besideClients(t, "table.mjs"), "table.mjs"))
	node.Env = append(os.Environ(), "BASE_URL="+r.url, "MODEL="+r.engine.Info.Name)
	out, err := node.CombinedOutput()
	t.Log(string(out))
	require.NoError(t, err)
	for _, client := range []string{"openai", "@anthropic-ai/sdk", "ollama", "ai (openai-compatible)"} {
		require.Contains(t, string(out), "full | "+client+" ")
	}
}

// besideClients makes a folder with a script of ours and what the official clients' folder has installed.
func besideClients(t *testing.T, script string) string {
	dir := t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(officialClients(t), "node_modules"), filepath.Join(dir, "node_modules")))
	text, err := os.ReadFile(filepath.Join("testdata", "clients", script))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, script), text, 0o600))
	return dir
}

// officialClients is the folder in which the official clients are installed.
func officialClients(t *testing.T) string {
	dir := os.Getenv(clientsFolder)
	if dir == "" {
		testref.Missing(t, "clients", "%s is not set: see CONTRIBUTING.md", clientsFolder)
	}
	return dir
}

// scripted runs a script of a folder, whose checks of the server are more than some, and pass.
func scripted(t *testing.T, dir, script, url string, some int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	node := exec.CommandContext(ctx, "node", script)
	node.Dir = dir
	node.Env = append(os.Environ(), "BASE_URL="+url, "MODEL=demo", "EMBED_MODEL=small", "CHECK_TIMEOUT=300")
	var out bytes.Buffer
	node.Stdout, node.Stderr = &out, &out
	_ = node.Run() // its status says whether all checks passed
	t.Log(out.String())
	checks := regexp.MustCompile(`(?m)^(not )?ok ([\w.-]+)`).FindAllStringSubmatch(out.String(), -1)
	require.Greater(t, len(checks), some, out.String())
	for _, c := range checks {
		if _, known := otherwise[c[2]]; known {
			require.NotEmpty(t, c[1], "%s passes now", c[2])
			continue
		}
		require.Empty(t, c[1], "%s", strings.Join(regexp.MustCompile(`(?m)^not ok .*`).FindAllString(out.String(), -1), "\n"))
	}
}
