package main

import (
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/measure"
	"github.com/sluice-ai/sluice/internal/testref"
)

// TestDraft: a draft model changes no answer, is counted by the plan, and is refused with words where it does not fit.
func TestDraft(t *testing.T) {
	draft := filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf")
	ask := []string{"run", "What is the capital of France?", "--temp", "0", "--ctx", "512"}
	without := sluice("", append(ask, "--speculate", "off")...)
	require.Equal(t, exitDone, without.code, without.stderr)
	for _, how := range []string{"auto", "draft"} {
		with := sluice("", append(ask, "--draft", draft, "--speculate", how)...)
		require.Equal(t, exitDone, with.code, with.stderr)
		require.Equal(t, without.stdout, with.stdout)
	}
	o := plan(t, "--draft", draft)
	require.Contains(t, o.stdout, "The draft model takes as well: weights 10.0 MiB, KV cache 4.0 MiB, scratch ")
	var p measure.PlanJSON
	require.NoError(t, json.Unmarshal([]byte(plan(t, "--draft", draft, "--json").stdout), &p))
	require.Equal(t, "draft of Sluice Mini Dense", p.Draft.Name)
	require.EqualValues(t, 4<<20, p.Draft.KV)
	for flags, want := range map[[2]string]string{
		{"--speculate", "draft"}: "--speculate draft needs a model that guesses: give --draft MODEL",
		{"--draft", "../../actors/testdata/qwen3.gguf"}: "cannot guess tokens for Sluice Mini Dense, since their " +
			"vocabularies differ: one has 8192 tokens, the other 512: they may differ by 128",
		{"--draft", "nowhere.gguf"}: "--draft: nowhere.gguf",
	} {
		o := sluice("", append(ask, flags[0], flags[1])...)
		require.NotEqual(t, exitDone, o.code)
		require.Contains(t, o.stderr, want)
	}
	o = sluice("", append(ask, "--draft", draft, "--speculate", "ngram")...)
	require.Contains(t, o.stderr, "--draft guesses tokens, and --speculate ngram has no use for it: leave one out")
}

// TestServeDraft: a server has room for a model and its draft model where there is enough, and guesses.
func TestServeDraft(t *testing.T) {
	draft := filepath.Join(testref.Dir(t), "models", "draft-bf16.gguf")
	s := launchWith(t, func(*env.Env) {}, "--ctx", "512", "--draft", draft)
	r := s.open(t, `{"messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0}`)
	text, err := io.ReadAll(r)
	require.NoError(t, errors.Join(err, r.Close()))
	require.Contains(t, string(text), "The capital of France is Paris.")
	s.ctrlC()
	require.Equal(t, exitDone, <-s.code)
	require.NotContains(t, s.stderr.String(), "streams")
}
