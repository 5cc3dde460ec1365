package main

import (
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/internal/testref"
)

// write makes a file in the test's own folder, which is also the working one, so that goldens show bare names.
func write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

func TestTemplate(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	t.Chdir(t.TempDir())
	require.NoError(t, os.Symlink(filepath.Join(here, "testdata"), "testdata"))

	write(t, "t.jinja", `{{ bos_token }}{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}`+
		`{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}>{% endif %}{{ eos_token }}`+
		`{{ mood }}{{ strftime_now(" %d.%m.%Y %H:%M") }}`)
	write(t, "talk.json", `{"messages": [{"role": "user", "content": "a < b"}], "tools": [{"z": 1, "a": 2.0}]}`)
	write(t, "vars.json", `{"messages": [{"role": "user", "content": "a"}], "add_generation_prompt": false,
		"bos_token": "<s>", "eos_token": "</s>", "mood": "calm"}`)
	write(t, "go-on.json", `{"messages": [{"role": "assistant", "content": "I"}], "continue_final_message": true}`)
	write(t, "list.json", `[{"role": "user", "content": "x"}]`)
	write(t, "raises.jinja", `{% if messages %}{{ raise_exception("no system messages, please") }}{% endif %}`)
	write(t, "broken.jinja", "a\n{% if messages %}b")
	write(t, "not.json", `{"messages": [`)
	write(t, "empty.json", `{}`)
	write(t, "wrong.json", `{"messages": [], "add_generation_prompt": "yes"}`)

	template := func(file, talk string, more ...string) call {
		return args(append([]string{"template", "--file", file, "--conversation", talk}, more...)...)
	}
	golden(t, "template",
		template("t.jinja", "talk.json"),
		template("t.jinja", "talk.json", "--now", "2024-02-29", "--bos-token", "<bos>"),
		template("t.jinja", "talk.json", "--now", "2024-02-29T23:59:00"),
		template("t.jinja", "vars.json"),
		template("t.jinja", "vars.json", "--bos-token", "<bos>"),
		template("t.jinja", "go-on.json"),
		template("t.jinja", "list.json"),
		template("t.jinja", "talk.json", "--now", "yesterday"),
		template("t.jinja", "no-such-file.json"),
		template("no-such-file.jinja", "talk.json"),
		template("raises.jinja", "talk.json"),
		template("broken.jinja", "talk.json"),
		template("t.jinja", "not.json"),
		template("t.jinja", "empty.json"),
		template("t.jinja", "wrong.json"),
		args("template", "--file", "t.jinja"),
	)
}

// TestTemplateReference runs the command over one template of a real model as its reference was made: variables
// beside the conversation in the file. All templates are compared in stages/chat.
func TestTemplateReference(t *testing.T) {
	const name = "Qwen-Qwen3-0.6B.jinja"
	dir := filepath.Join(testref.Dir(t), "templates")
	var conversations map[string]map[string]any
	data, err := os.ReadFile(filepath.Join(dir, "conversations.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &conversations))

	n := 0
	for _, c := range referenceCases(t, dir) {
		if c.Template != name || c.Conversation != "user" && c.Conversation != "multi" && c.Conversation != "no_messages" {
			continue
		}
		n++
		talk := maps.Clone(conversations[c.Conversation])
		maps.Copy(talk, c.Kwargs)
		text, err := json.Marshal(talk)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "talk.json")
		write(t, file, string(text))
		o := sluice("", "template", "--now", "2026-11-20T12:34:56",
			"--file", filepath.Join(dir, name), "--conversation", file)
		if c.Rendered == nil {
			require.Equal(t, exitFailed, o.code, "%s %v", c.Conversation, c.Kwargs)
			continue
		}
		require.Equal(t, outcome{stdout: *c.Rendered}, o, "%s %v", c.Conversation, c.Kwargs)
	}
	require.Greater(t, n, 2)
}

type referenceCase struct {
	Template, Conversation string
	Kwargs                 map[string]any
	Rendered               *string
}

func referenceCases(t *testing.T, dir string) []referenceCase {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "expected.json.gz"))
	require.NoError(t, err)
	defer f.Close()
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	var expected struct{ Cases []referenceCase }
	require.NoError(t, json.NewDecoder(z).Decode(&expected))
	return expected.Cases
}

// Without --file a model's own template is shown, and renders with the model's own tokens.
func TestTemplateOfModel(t *testing.T) {
	f, err := namedmodel.Open(envtest.NewEnv("").Lookup, "")
	require.NoError(t, err)
	source, err := f.Meta.String("tokenizer.chat_template")
	require.NoError(t, err)
	require.Equal(t, outcome{stdout: source}, sluice("", "template"))

	talk := `{"messages": [{"role": "user", "content": "12 + 30"}]}`
	o := sluice(talk, "template", "--conversation", "-")
	require.Zero(t, o.code, o.stderr)
	require.Contains(t, o.stdout, "12 + 30<|im_end|>")

	bare := writeModel(t, "general.architecture", "llama", "tokenizer.ggml.model", "gpt2", "tokenizer.ggml.tokens", []string{"a"})
	o = sluice("", "template", "-m", bare)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "it has no chat template")
}
