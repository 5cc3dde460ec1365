package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/storage/store"
)

// TestRunThinks: --think reaches the template, by each of the names that templates have for it.
func TestRunThinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	kept, err := store.Open(dir)
	require.NoError(t, err)
	envtest.KeepMini(t, kept, "ollama.com/library/plain:latest")
	for i, name := range []string{"enable_thinking", "thinking"} {
		model := fmt.Sprint("m", i)
		file := filepath.Join(t.TempDir(), "Modelfile")
		text := "FROM plain\nTEMPLATE \"\"\"<|im_start|>user\n{% if " + name + " is defined and not " + name +
			" %}12 + 30{% else %}What is the capital of France?{% endif %}<|im_end|>\n<|im_start|>assistant\n\"\"\"\n"
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		o := here(dir, "create", model, "-f", file)
		require.Equal(t, exitDone, o.code, o.stderr)
		for think, want := range map[string]string{"": "The capital of France is Paris.", "on": "The capital of France is Paris.",
			"off": "12 + 30 = 42.", "false": "12 + 30 = 42."} { // as other programs say it
			args := []string{"run", "-m", model, "x"}
			if think != "" {
				args = append(args, "--think", think)
			}
			o := here(dir, args...)
			require.Equal(t, []any{exitDone, want, ""}, []any{o.code, strings.TrimSpace(o.stdout), o.stderr}, "%s %s", name, think)
		}
	}
	o := sluice("", "run", "--think", "off", "12 + 30")
	require.Equal(t, "12 + 30 = 42.\n", o.stdout)
	require.Contains(t, o.stderr, "has no switch for thinking: it stays as it is")
	require.Equal(t, exitUsage, sluice("", "run", "--think", "maybe", "x").code)
}

// TestRunSaysThatItWasCut: a full context is said, the limit of -n to a person, whose lines are broken between words.
func TestRunSaysThatItWasCut(t *testing.T) {
	o := sluice("", "run", "--ctx", "64", "--raw", "--ignore-eos", "The capital of France is")
	require.Empty(t, o.stderr, "that was asked for")
	o = sluice("", "run", "--ctx", "24", "What is the capital of France?")
	require.Equal(t, exitDone, o.code)
	require.Equal(t, "sluice: the answer was cut: the context of 24 tokens is full (--ctx sets its size)\n", o.stderr, o.stdout)
	require.Empty(t, sluice("", "run", "-n", "3", "What is the capital of France?").stderr)
	e := envtest.NewEnv("", "run", "-n", "5", "What is the capital of France?")
	e.IsTerminal = func(any) bool { return true }
	e.Columns = func(any) int { return 14 }
	require.Equal(t, exitDone, run(e))
	require.True(t, strings.HasSuffix(fmt.Sprint(e.Stderr), "sluice: the answer was cut: -n lets it have 5 tokens\n"), "%s", e.Stderr)
	e = envtest.NewEnv("", "run", "What is the capital of France?")
	e.IsTerminal = func(any) bool { return true }
	e.Columns = func(any) int { return 14 }
	require.Equal(t, exitDone, run(e))
	require.Equal(t, "The capital of\nFrance is\nParis.\n", e.Stdout.(*bytes.Buffer).String())
}

// TestNoPrompt: a terminal without a prompt is told what to type, with the model that was named.
func TestNoPrompt(t *testing.T) {
	for model, said := range map[string]string{
		"":          `sluice: there is no prompt: sluice run "What is the capital of France?"`,
		"acme/Mini": `sluice: there is no prompt: sluice run -m acme/Mini "What is the capital of France?", or sluice chat -m acme/Mini`,
	} {
		args := []string{"run"}
		if model != "" {
			args = append(args, "-m", model)
		}
		e := envtest.NewEnv("", args...)
		e.IsTerminal = func(any) bool { return true }
		require.Equal(t, exitUsage, run(e))
		require.Contains(t, fmt.Sprint(e.Stderr), said)
	}
}
