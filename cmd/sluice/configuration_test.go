package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

// withSettings runs the program with a file of settings and variables of the environment.
func withSettings(t *testing.T, file string, variables map[string]string, args ...string) outcome {
	t.Helper()
	path := filepath.Join(t.TempDir(), configName)
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	e := envtest.NewEnv("", args...)
	e.Lookup = func(name string) (string, bool) {
		if name == configVariable {
			return path, true
		}
		v, ok := variables[name]
		return v, ok
	}
	code := run(e)
	tidy := func(b any) string { return strings.ReplaceAll(fmt.Sprint(b), path, configName) }
	return outcome{code, tidy(e.Stdout), tidy(e.Stderr)}
}

// TestConfigSaysWhatWon: flags before the environment before a command's table before the rest of the file.
func TestConfigSaysWhatWon(t *testing.T) {
	const file = `
ram = "4G"
kv = "q8"
kv-k = "f16"
ctx = 2048
parallel = 3
model = "everybody.gguf"
fast-prefill = true
[serve]
ram = "6G"
keep-alive = "5m"
model = ["a=x.gguf", "y.gguf"]
api-key = ["secret one"]
ctx = 4096
join = ["h:1", "etcd://u:secret three@h/x"]
[chat]
ram = "1G"
`
	variables := map[string]string{"SLUICE_RAM": "5G", "SLUICE_KV": "f32", "SLUICE_KV_V": "f32", "SLUICE_ADDR": ":9000", "SLUICE_PARALLEL": "",
		"SLUICE_API_KEY": "secret two", "SLUICE_JOIN": "consul://:secret four@h", "SLUICE_FORCE": "true"}
	o := withSettings(t, file, variables, "config", "--json", "serve", "--ram", "8G")
	require.Equal(t, exitDone, o.code, o.stderr)
	var got struct {
		Command, File string
		Settings      []setting
	}
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
	require.Equal(t, "serve", got.Command)
	require.Equal(t, configName, got.File)
	lines := map[string]string{}
	for _, s := range got.Settings {
		lines[s.Name] = fmt.Sprintf("%v | %s | %s", s.Value, s.From, strings.Join(s.Over, "; "))
	}
	for name, want := range map[string]string{
		"ram":          "8.0 GiB | flag | SLUICE_RAM = 5G; sluice.toml [serve] = 6G; sluice.toml = 4G",
		"kv":           "f32 | SLUICE_KV | sluice.toml = q8",
		"kv-k":         "f16 | sluice.toml | ",
		"kv-v":         "f32 | SLUICE_KV_V | ",
		"ctx":          "4096 | sluice.toml [serve] | sluice.toml = 2048",
		"keep-alive":   "5m0s | sluice.toml [serve] | ",
		"addr":         ":9000 | SLUICE_ADDR | ",
		"parallel":     "3 | sluice.toml | ",
		"model":        "[a=x.gguf y.gguf] | sluice.toml [serve] | sluice.toml = everybody.gguf",
		"fast-prefill": "true | sluice.toml | ",
		"api-key":      "(secret) | sluice.toml [serve] | ",
		"log-format":   "text | default | ",
		"join":         "[consul://(secret)@h] | SLUICE_JOIN | sluice.toml [serve] = [h:1 etcd://(secret)@h/x]",
	} {
		require.Equal(t, want, lines[name], name)
	}
	require.NotContains(t, lines, "force")
	require.NotContains(t, lines, "help")
	require.NotContains(t, o.stdout, "secret ")

	o = withSettings(t, file, variables, "config", "chat")
	require.Regexp(t, `(?m)^ram +5\.0 GiB +SLUICE_RAM, over sluice.toml \[chat\] = 1G, sluice.toml = 4G$`, o.stdout)
	require.Regexp(t, `(?m)^file: sluice.toml$`, o.stdout)
	require.NotContains(t, o.stdout, "keep-alive")
	o = withSettings(t, "", nil, "config", "synth")
	require.Regexp(t, `(?m)^config +- +default$`, o.stdout, "SLUICE_CONFIG is no shape of a model")
}

// TestConfigDefaults: a default that is nothing, or 0, is shown by what it means.
func TestConfigDefaults(t *testing.T) {
	o := withSettings(t, "ctx = 0\n", nil, "config", "serve")
	require.Equal(t, exitDone, o.code, o.stderr)
	for _, line := range []string{
		`threads +one for each core +default`, `ram +all of them, if they fit this machine +default`, `ctx +0 +sluice.toml`,
		`keep-alive +only when others need their memory +default`, `parallel +32 +default`, `device +\S.*, else cpu +default`,
		`model +the models of the store, or, if that is empty, the small embedded model +default`, `host-name +- +default`,
	} {
		require.Regexp(t, `(?m)^`+line+`$`, o.stdout)
	}
	o = withSettings(t, "", nil, "config", "--json", "chat")
	require.Contains(t, o.stdout, `"value": 0,
      "means": "one for each core",
      "from": "default"`)
}

// TestConfigSpells: values are shown as they are given.
func TestConfigSpells(t *testing.T) {
	for given, shown := range map[string]string{"--gpu-layers=all": "all", "--gpu-layers=auto": "auto", "--gpu-layers=3": "3",
		"--temp=0.5": "0.5", "--top-k=7": "7", "--keep-alive=90m": "1h30m0s"} {
		o := sluice("", "config", "serve", given)
		name, _, _ := strings.Cut(given[2:], "=")
		if name == "temp" || name == "top-k" {
			o = sluice("", "config", "run", given)
		}
		require.Regexp(t, `(?m)^`+name+` +`+shown+` +flag$`, o.stdout)
	}
	require.Regexp(t, `(?m)^temp +- +default$`, sluice("", "config", "run").stdout)
}

// TestSettingsCount: commands run with what config shows.
func TestSettingsCount(t *testing.T) {
	o := withSettings(t, "[tokenize]\nmodel = 'no-such.gguf'\n", nil, "tokenize", "hello")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "no-such.gguf")
	o = withSettings(t, "[run]\nn = 2\ntemp = 0\njson = true\nlogit-bias = '1+0.5'\n", nil, "run", "hello")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, `"generated_tokens":2`)
	o = withSettings(t, "[run]\nn = 2\njson = true\n", map[string]string{"SLUICE_N": "3"}, "run", "hello")
	require.Contains(t, o.stdout, `"generated_tokens":3`)
	o = withSettings(t, "[run]\nn = 2\njson = true\n", map[string]string{"SLUICE_N": "3"}, "run", "-n", "4", "hello")
	require.Contains(t, o.stdout, `"generated_tokens":4`)
	o = withSettings(t, "nonsense", nil, "--version")
	require.Equal(t, exitDone, o.code, "it is asked for help first")
}

func TestSettingsRefused(t *testing.T) {
	for _, c := range []struct{ file, says string }{
		{"rma = '4G'", "sluice.toml: rma is no setting: did you mean ram?"},
		{"[serve]\nkeepalive = '5m'", "sluice.toml: serve.keepalive is no setting: did you mean keep-alive?"},
		{"[serv]\nram = 1", "sluice.toml: [serv] is no command: did you mean serve?"},
		{"[chat]\naddr = ':1'", "sluice.toml: chat.addr is no setting: there are "},
		{"[trace.recrd]\nseconds = 3", "sluice.toml: [trace.recrd] is no command: did you mean record?"},
		{"serve = 3", "sluice.toml: serve is a command: its settings are in a table, [serve]"},
		{"force = true", "sluice.toml: force is no setting"},
		{"version = true", "sluice.toml: version is no setting"},
		{"ram = 1\nram = 2", "sluice.toml: line 2: Key 'ram' has already been defined"},
		{"ram = ", "sluice.toml: line 1: "},
		{"ctx = 2026-11-23", "sluice.toml: ctx is 2026-11-23"},
		{"ctx = nan", "want a text, a number, true, false, or a list of them"},
		{"model = [['a']]", "is a list of lists"},
		{"ctx = ['1', '2']", "--ctx: sluice.toml: is a list: want one value"},
		{"ctx = 'many'", `--ctx: sluice.toml: "many" is no whole number`},
		{"[serve]\nkv = 'q7'", `--kv: sluice.toml [serve]: "q7" is no type: want f32, f16, q8, q5, q4, tq4 or tq3, or auto[:BITS]`},
		{"ram = 'much'", `sluice.toml: "much" is no amount of memory`},
		{"keep-alive = 'soon'", `--keep-alive: sluice.toml: `},
		{strings.Repeat("#", mostConfig+1), "it has 1048577 bytes"},
	} {
		o := withSettings(t, c.file, nil, "serve", "--addr", "nonsense")
		require.Equal(t, exitUsage, o.code, "%s: %s", c.file, o.stderr)
		require.Contains(t, o.stderr, c.says)
	}
	o := withSettings(t, "ctx = 'many'", nil, "config")
	require.Contains(t, o.stderr, `--ctx: sluice.toml: "many" is no whole number`)
	e := envtest.NewEnv("", "serve")
	e.Lookup = func(name string) (string, bool) { return "no-such-file.toml", name == configVariable }
	require.Equal(t, exitUsage, run(e))
	require.Contains(t, fmt.Sprint(e.Stderr), "SLUICE_CONFIG: open no-such-file.toml")
}

// TestSettingsFound: this person's file counts before the machine's.
func TestSettingsFound(t *testing.T) {
	home := t.TempDir()
	e := envtest.NewEnv("", "config", "plan")
	e.Root = fstest.MapFS{"etc/sluice/sluice.toml": {Data: []byte("ctx = 1111")}}
	e.Lookup = func(name string) (string, bool) { return home, name == "HOME" }
	require.Equal(t, exitDone, run(e))
	require.Regexp(t, `(?m)^ctx +1111 +/etc/sluice/sluice.toml$`, fmt.Sprint(e.Stdout))
	own := filepath.Join(home, ".config", "sluice")
	require.NoError(t, os.MkdirAll(own, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(own, configName), []byte("ctx = 2222"), 0o600))
	e2 := envtest.NewEnv("", "config", "plan")
	e2.Root, e2.Lookup = e.Root, e.Lookup
	require.Equal(t, exitDone, run(e2))
	require.Regexp(t, `(?m)^ctx +2222 +`+own+`/sluice.toml$`, fmt.Sprint(e2.Stdout))
}

// FuzzConfiguration: whatever a file holds is an error, or a value for each flag that it names, or an error of that.
func FuzzConfiguration(f *testing.F) {
	for _, text := range []string{
		"ram = '4G'\n[serve]\nmodel = ['a', 'b']\nparallel = 3\n", "[trace.record]\nseconds = 1e3", "a.b.c = {d = [1, [2]]}",
		"ctx = 0x_1", "serve = [{ram = 1}]", "[serve]\nopen = 'yes'\nkeep-alive = -1", "'' = ''", "[bench]\np = [1, 2]",
	} {
		f.Add(text)
	}
	parser, err := newParser(envtest.NewEnv(""), func(int) {})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text string) {
		tree, err := decodeSettings([]byte(text))
		if err != nil || checkSettings(tree, parser.Model.Node, nil) != nil {
			return
		}
		c := newConfiguration(envtest.NewEnv(""))
		c.path, c.file = "f", tree
		found := 0
		for _, node := range parser.Model.Leaves(true) {
			for _, flag := range node.Flags {
				for _, o := range c.origins(node, flag) {
					found++
					if _, err := valueFor(flag, o.value); err != nil && err.Error() == "" {
						t.Errorf("%s: an error says nothing", flag.Name)
					}
				}
			}
		}
		if found == 0 && scalars(tree) > 0 {
			t.Errorf("%q sets nothing, and is no error", text)
		}
	})
}

// scalars counts what a file sets.
func scalars(tree map[string]any) (n int) {
	for _, v := range tree {
		if table, ok := v.(map[string]any); ok {
			n += scalars(table)
		} else {
			n++
		}
	}
	return n
}

// TestConfigCluster: what makes a server a member has a table of its own, which counts after that of the command and
// before the rest of the file.
func TestConfigCluster(t *testing.T) {
	const file = `
pass = "everywhere.pem"
[cluster]
cluster = "home"
pass = "desk.pem"
member-addr = "10.0.0.1:7777"
join = ["10.0.0.2:7777", "10.0.0.3:7777"]
days = 5
[serve]
member-addr = "10.0.0.9:7777"
`
	o := withSettings(t, file, nil, "config", "--json", "serve")
	require.Equal(t, exitDone, o.code, o.stderr)
	var got struct{ Settings []setting }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &got))
	lines := map[string]string{}
	for _, s := range got.Settings {
		lines[s.Name] = fmt.Sprintf("%v | %s | %s", s.Value, s.From, strings.Join(s.Over, "; "))
	}
	require.Equal(t, "home | sluice.toml [cluster] | ", lines["cluster"])
	require.Equal(t, "desk.pem | sluice.toml [cluster] | sluice.toml = everywhere.pem", lines["pass"])
	require.Equal(t, "10.0.0.9:7777 | sluice.toml [serve] | sluice.toml [cluster] = 10.0.0.1:7777", lines["member-addr"])
	require.Equal(t, "[10.0.0.2:7777 10.0.0.3:7777] | sluice.toml [cluster] | ", lines["join"])

	o = withSettings(t, file, nil, "config", "--json", "cluster", "cert", "a")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, `"sluice.toml [cluster]"`, "the command has its settings there as before")
	o = withSettings(t, "[cluster]\njoins = [\"a:1\"]\n", nil, "config")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "cluster.joins is no setting: did you mean join?")
	o = withSettings(t, "[chat]\njoin = [\"a:1\"]\n", nil, "config")
	require.Equal(t, exitUsage, o.code)
	require.Contains(t, o.stderr, "chat.join is no setting")
}
