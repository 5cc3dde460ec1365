package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/storage/gguf"
)

var update = flag.Bool("update", false, "rewrite the golden files of testdata")

// call is one run of the program.
type call struct {
	args  []string
	stdin string
}

// outcome is all that a run leaves.
type outcome struct {
	code           int
	stdout, stderr string
}

// cachesOf in the environment is the folder in which tests that run this program again, and maybe kill it, remove what
// they leave.
const cachesOf = "SLUICE_TEST_CACHES"

// killedRun in the environment makes a test the process that it kills: a command line, parted by line breaks.
const killedRun = "SLUICE_TEST_KILLED_RUN"

// TestMain keeps what the program remembers of a machine out of the cache of the person who runs the tests.
func TestMain(m *testing.M) {
	if os.Getenv(killedRun) != "" { // the cache is its parent's: it has no time to remove one
		os.Exit(m.Run())
	}
	folder, err := os.MkdirTemp(os.Getenv(cachesOf), "sluice-cache-")
	if err == nil {
		err = errors.Join(os.Setenv("XDG_CACHE_HOME", folder), os.Setenv(cachesOf, folder))
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// interrupted is what a command sees of a person who presses Ctrl-C at once.
func interrupted(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	cancel()
	return ctx, cancel
}

// sluice runs the program in process.
func sluice(stdin string, args ...string) outcome {
	e := envtest.NewEnv(stdin, args...)
	code := run(e)
	return outcome{code, fmt.Sprint(e.Stdout), fmt.Sprint(e.Stderr)}
}

// golden runs the program for each call and compares all that it prints with testdata/NAME.txt.
func golden(t *testing.T, name string, calls ...call) {
	t.Helper()
	t.Setenv("COLUMNS", "100") // kong folds help to the terminal's width
	var text strings.Builder
	for _, c := range calls {
		o := sluice(c.stdin, c.args...)
		fmt.Fprintf(&text, "$ sluice %s\n", strings.Join(c.args, " "))
		if c.stdin != "" {
			fmt.Fprintf(&text, "stdin: %q\n", c.stdin)
		}
		fmt.Fprintf(&text, "exit %d\n", o.code)
		block(&text, "stdout", o.stdout)
		block(&text, "stderr", o.stderr)
		text.WriteString("\n")
	}
	matches(t, name, text.String())
}

// matches compares a text with a golden file.
func matches(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run make golden")
	require.Equal(t, string(want), text, "%s: if this is what it should print, run make golden", path)
}

func block(b *strings.Builder, name, text string) {
	if text == "" {
		return
	}
	fmt.Fprintf(b, "--- %s\n%s", name, text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("<no newline>\n")
	}
}

func args(words ...string) call { return call{args: words} }

// commands lists the words of all commands.
func commands(t *testing.T) [][]string {
	t.Helper()
	parser, err := newParser(envtest.NewEnv(""), func(int) {})
	require.NoError(t, err)
	var all [][]string
	for _, node := range parser.Model.Leaves(true) {
		all = append(all, strings.Fields(node.FullPath())[1:])
	}
	return all
}

func TestHelp(t *testing.T) {
	calls := []call{args("--help")}
	for _, words := range commands(t) {
		calls = append(calls, args(append(words, "--help")...))
	}
	golden(t, "help", calls...)
}

func TestUsage(t *testing.T) {
	golden(t, "usage",
		args("nonsense"),
		args("inspekt"),
		args("inspect", "--nonsense"),
		args("inspect", "a.gguf", "b.gguf"),
		args("tokenize", "-m"),
		args("run", "--n=-2", "hello"),
		args("run", ""),
		call{[]string{"run", "-"}, " \n"},
		args("run", "--ctx=99999999999", "hello"),
		args("run", "-t", "5000", "hello"),
		args("run", "--log", "loud", "hello"),
		args("run", "--vram", "1G", "hello"),
		args("run", "--temp", "-1", "--top-k", "-3", "--logit-bias", "9999+1", "hello"),
		args("run", "-m", "testdata", "hello"),
		args("convert", "nonsense", "-o", "m.gguf"),
		args("convert", "main.go", "-o", "m.gguf"),
		args("serve", "--addr", "127.0.0.1:0", "--models", "nonsense"),
		args("run", "--tokens", "1,2", "hello"),
		args("run", "--tokens", "1,2", "--system", "Be brief."),
		args("run", "--tokens", "1,9999"),
		args("perplexity", "-f", "README.md", "-c", "3"),
		args("perplexity", "-f", "README.md", "--ctx", "100"),
		args("synth", "--shape", "qwen3-8b"),
		args("synth", "--shape", "qwen3-8b", "--config", "config.json", "-o", "m.gguf"),
		args("synth", "--shape", "gpt-9", "-o", "m.gguf"),
		args("synth", "--shape", "qwen3-8b", "--quant", "Q9", "-o", "m.gguf"),
		args("bench", "-t", "5000"),
		args("bench", "--seqs", "0"),
		args("bench", "-p", "16", "-n", "16", "--ctx", "20"),
		args("bench", "-p", "128,0"),
		args("bench", "--depth", "0,-1"),
		args("bench", "--compare", "peer -m {model}"),
		args("trace"),
		args("trace", "-o", "t.json", "--seconds", "301"),
		args("trace", "stalls"),
	)
	o := sluice("")
	require.Equal(t, exitUsage, o.code)
	require.Empty(t, o.stdout)
	require.Contains(t, o.stderr, "Usage: sluice <command>")

	o = sluice("", "--version")
	require.Equal(t, exitDone, o.code)
	require.True(t, strings.HasPrefix(o.stdout, "sluice "), o.stdout)
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
		says string
	}{
		{nil, 0, ""},
		{fmt.Errorf("step 3: %w", context.Canceled), 130, "sluice: stopped\n"},
		{env.Usagef("-n is %d, want 1 or more", 0), 2, "sluice: -n is 0, want 1 or more\n"},
		{os.ErrNotExist, 1, "sluice: file does not exist\n"},
	} {
		e := envtest.NewEnv("")
		require.Equal(t, c.want, exitCode(e, c.err))
		require.Equal(t, c.says, fmt.Sprint(e.Stderr))
	}
}

// TestDocumentedCommands parses, without running them, the commands of the documents and those at the end of helps.
func TestDocumentedCommands(t *testing.T) {
	var lines []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/api/*.md"} {
		documents, err := filepath.Glob(filepath.Join("..", "..", pattern))
		require.NoError(t, err)
		require.NotEmpty(t, documents)
		for _, name := range documents {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			lines = append(lines, strings.Split(string(text), "\n")...)
		}
	}
	parser, err := newParser(envtest.NewEnv(""), func(int) {})
	require.NoError(t, err)
	for _, node := range append(parser.Model.Leaves(true), parser.Model.Node) {
		try := node.Target.Addr().Interface().(exampler).Examples()
		lines = append(lines, "    "+try[0], "    "+try[1])
	}
	n := 0
	for _, line := range lines {
		for _, words := range invocations(line) {
			n++
			parser, err := newParser(envtest.NewEnv(""), func(int) {})
			require.NoError(t, err)
			_, err = parser.Parse(words)
			require.NoError(t, err, line)
		}
	}
	require.Greater(t, n, 10)
}

// invocations finds the words after sluice in an indented line of shell.
func invocations(line string) (all [][]string) {
	code, indented := strings.CutPrefix(line, "    ")
	if !indented {
		return nil
	}
	code, _, _ = strings.Cut(code, "   ") // what follows describes it
	for part := range strings.SplitSeq(code, "|") {
		words := shellWords(part)
		switch {
		case len(words) > 1 && words[0] == "sluice":
			all = append(all, words[1:])
		case len(words) > 3 && strings.HasPrefix(part, "go run ./cmd/sluice "):
			all = append(all, words[3:])
		}
	}
	return all
}

// No error makes a terminal obey a file.
func TestErrorsAreVisible(t *testing.T) {
	keys, arch := new(meta.Map), "\x1b[31mred\u202e"
	keys.Set("general.architecture", arch)
	keys.Set(arch+".block_count", "x")
	path := filepath.Join(t.TempDir(), "m.gguf")
	var file bytes.Buffer
	require.NoError(t, gguf.Write(&file, keys, nil, nil))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	o := sluice("", "quantize", path, path+"2", "Q8_0")
	require.Equal(t, "sluice: "+path+`: key \x1b[31mred\u202e.block_count: is of type string, want an integer`+"\n", o.stderr)
	require.Equal(t, `ü \t\x7f`, env.Visible("ü \t\x7f"))
}

// shellWords splits at blanks outside quotes, up to a redirection.
func shellWords(s string) (words []string) {
	s, _, _ = strings.Cut(s, " < ")
	s, _, _ = strings.Cut(s, " > ")
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if quote := s[:1]; quote == `"` || quote == "'" {
			word, rest, _ := strings.Cut(s[1:], quote)
			words, s = append(words, word), rest
			continue
		}
		word, rest, _ := strings.Cut(s, " ")
		words, s = append(words, word), rest
	}
	return words
}

func TestEveryCommandHasExamples(t *testing.T) {
	parser, err := newParser(envtest.NewEnv(""), func(int) {})
	require.NoError(t, err)
	for _, node := range parser.Model.Leaves(true) {
		_, ok := node.Target.Addr().Interface().(exampler)
		require.True(t, ok, "%s has no examples", node.Name)
		require.Equal(t, kong.CommandNode, node.Type)
	}
}

// TestWrongUsage: what is wrong with a command line is said with what is wanted.
func TestWrongUsage(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"plan", "want <model>, as in: sluice plan model.gguf\nSee sluice plan --help."},
		{"quantize a", "want <out> <type>, as in: sluice quantize "},
		{"convert", "want --output=FILE, as in: sluice convert "},
		{"logits", "want --output=FILE, --tokens=IDS, as in: sluice logits "},
		{"run --ctx abc hi", `--ctx: "abc" is no whole number` + "\nSee sluice run --help."},
		{"run --seed x hi", `--seed: "x" is no whole number from 0 up`},
		{"run --temp hot hi", `--temp: "hot" is no number` + "\n"},
		{"serve --keep-alive long", `--keep-alive: "long" is no time: want one such as 10m or 1h30m` + "\n"},
		{"run --kv q7 hi", `--kv: "q7" is no type: want f32, f16, q8, q5, q4, tq4 or tq3, or auto[:BITS]` + "\n"},
		{"run --kv-k q7 hi", `--kv-k is "q7": want f32, f16, q8, q5, q4, tq4, tq3, q4_0, q5_0 or q8_0` + "\n"},
		{"plan --kv-v Q8 hi", `--kv-v is "Q8": want f32, f16, q8, q5, q4, tq4, tq3, tq2, q4_0, q5_0 or q8_0` + "\n"},
		{"serve --cache-type-k q8_0", "unknown flag --cache-type-k: here it is --kv-k\n"},
		{"completion tcsh", `<shell> is "tcsh": want bash, zsh or fish`},
		{"run --temprature 1 hi", `unknown flag --temprature, did you mean "--temp"?`},
		{"run --tmp 1 hi", `unknown flag --tmp, did you mean one of "--stop", "--temp"?`},
		{"run --nothing hi", "unknown flag --nothing\n"},
		{"run -m", "--model: its value is missing\n"},
		{"bench --depth 0,-1", `--depth: "-1" reads as a flag: write --depth="-1"` + "\n"},
		{"serve --port 8081", "unknown flag --port: here it is --addr HOST:PORT\n"},
		{"serve --host 0.0.0.0", "unknown flag --host: here it is --addr HOST:PORT\n"},
		{"run --verbose hi", "unknown flag --verbose: here it is --log debug\n"},
		{"run -ngl 3 hi", "unknown flag --ngl: here it is --gpu-layers\n"},
		{"serve x.gguf", "unexpected argument x.gguf: a model is named by -m x.gguf\n"},
		{"ps", "ps is no command: here it is sluice top\n"},
		{"run llama3.2", "llama3.2 is no file, and no model of the store: pull it (sluice pull llama3.2)"},
		{"run acme/Mini-GGUF Hello", "acme/Mini-GGUF is no file"},
		{"run nothere.gguf Hello", "nothere.gguf is no file"},
		{"rum hi", `rum is no command, did you mean one of "run", "rm"?` + "\nSee sluice --help."},
	} {
		o := sluice("", strings.Fields(c.line)...)
		require.Equal(t, exitUsage, o.code, c.line)
		require.Contains(t, o.stderr, "sluice: "+c.want, c.line)
	}
}

// TestRunTakesTheModel: without -m a word that names a file, or a model of the store, is the model, and no other is.
func TestRunTakesTheModel(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(file, mini.GGUF, 0o600))
	o := sluice("", "run", file, "12 + 30")
	require.Equal(t, outcome{exitDone, "12 + 30 = 42.\n", ""}, o)
	for _, question := range []string{"hello", "Paris?", "12+30", "and/or?"} {
		o = sluice("", "run", question)
		require.Equal(t, exitDone, o.code, "%s: %s", question, o.stderr)
	}
}

// TestOtherWords: what many programs call help, version and list is there.
func TestOtherWords(t *testing.T) {
	require.Equal(t, sluice("", "--version"), sluice("", "version"))
	require.Equal(t, sluice("", "serve", "--help"), sluice("", "help", "serve"))
	require.Equal(t, sluice("", "--help"), sluice("", "help"))
	require.Equal(t, sluice("", "list"), sluice("", "ls"))
}
