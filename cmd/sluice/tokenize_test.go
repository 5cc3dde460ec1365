package main

import (
	"encoding/json"
	"errors"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
)

func TestTokenize(t *testing.T) {
	noTokens := writeModel(t, "general.architecture", "llama")
	golden(t, "tokenize",
		call{args: []string{"tokenize"}, stdin: "Hello, world"},
		args("tokenize"),
		args("tokenize", "Hello,", "world"),
		call{args: []string{"tokenize", "--json", "-"}, stdin: "Hello, world"},
		call{args: []string{"detokenize", "-"}, stdin: "[2769,44]"},
		call{args: []string{"tokenize"}, stdin: "<|im_end|>"},
		call{args: []string{"tokenize", "--parse-special", "--add-bos"}, stdin: "<|im_end|>"},
		args("tokenize", "-m", "no-such-file.gguf"),
		args("detokenize", "9707", "11,1879"),
		call{args: []string{"detokenize"}, stdin: "[2769,44]\n"},
		args("detokenize", "8178"),
		args("detokenize", "12", "abc"),
		args("detokenize", "8192"),
		call{args: []string{"detokenize"}, stdin: "[-1]"},
		call{args: []string{"detokenize"}, stdin: "1 99999999999999999999"},
	)
	o := sluice("", "tokenize", "-m", noTokens)
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, noTokens+": ")
	require.Contains(t, o.stderr, "tokenizer.ggml.")
}

func TestTokenizeUnreadableInput(t *testing.T) {
	for _, command := range []string{"tokenize", "detokenize"} {
		e := envtest.NewEnv("", command)
		e.Stdin = iotest.ErrReader(errors.New("the pipe broke"))
		require.Equal(t, exitFailed, run(e))
	}
}

// TestTokenizeRoundTrip: what tokenize prints, detokenize turns back into the same bytes.
func TestTokenizeRoundTrip(t *testing.T) {
	texts := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching(`(<\|im_(start|end)\|>|user\n|[a-z ]{0,5}|é|日本|\n\n| {1,9})*`),
	)
	rapid.Check(t, func(t *rapid.T) {
		text := texts.Draw(t, "text")
		command := []string{"tokenize"}
		if rapid.Bool().Draw(t, "parse special") {
			command = append(command, "--parse-special")
		}
		ids := sluice(text, command...)
		require.Equal(t, exitDone, ids.code, ids.stderr)
		require.True(t, json.Valid([]byte(ids.stdout)))
		require.Equal(t, outcome{stdout: text}, sluice(ids.stdout, "detokenize"))
	})
}
