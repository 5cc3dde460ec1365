package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/ask"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/env/envtest"
	"github.com/sluice-ai/sluice/internal/meta"
	"github.com/sluice-ai/sluice/internal/quant"
	"github.com/sluice-ai/sluice/storage/gguf"
)

func TestRunJSON(t *testing.T) {
	o := sluice("", "run", "--json", "-n", "4", "What is the capital of France?")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Equal(t, 1, strings.Count(o.stdout, "\n"), "one line for a result")
	var a ask.Answer
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &a))
	require.Len(t, a.Tokens, 4)
	require.Equal(t, "The capital of Fr", a.Text)
	require.Equal(t, "length", string(a.Finish))
	require.Positive(t, a.PromptTokens)
}

func TestRunTakesIDsAsTheyAre(t *testing.T) {
	o := sluice("", "run", "--json", "-n", "1", "--tokens", "[523, 1544 304]")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stdout, `"prompt_tokens":3`)

	o = sluice("a prompt that is not asked for", "run", "--tokens", "")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "the prompt has no tokens")
}

// TestRunInAForm: an answer is of the form that was asked for, and a fault in the form is said before the model loads.
func TestRunInAForm(t *testing.T) {
	o := sluice("", "run", "--schema", "testdata/grammar/s.json", "What is 12 + 30?")
	require.Equal(t, exitDone, o.code, o.stderr)
	var form struct{ A *int }
	require.NoError(t, json.Unmarshal([]byte(o.stdout), &form), o.stdout)
	require.NotNil(t, form.A)
	o = sluice("", "run", "--regex", "(yes|no)", "Is it?")
	require.Contains(t, []string{"yes\n", "no\n"}, o.stdout)
	o = sluice("", "run", "--grammar", "testdata/grammar/g.gbnf", "Is it?")
	require.Regexp(t, `^a+é\n$`, o.stdout)
	o = sluice("", "run", "-m", "no-such-model.gguf", "--schema", "testdata/grammar/bad.json", "x")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, "testdata/grammar/bad.json: schema: #/properties/a: pattern")
	o = sluice("", "run", "--regex", "a", "--ignore-eos", "x")
	require.Equal(t, exitUsage, o.code)
}

// TestCtrlCWhileReading: whoever waits for standard input must be able to give up, so the signal is not caught yet.
func TestCtrlCWhileReading(t *testing.T) {
	caught := false
	e := envtest.NewEnv("", "run", "-n", "1")
	e.Interruptible = func(ctx context.Context) (context.Context, context.CancelFunc) {
		caught = true
		return context.WithCancel(ctx)
	}
	e.Stdin = readerFunc(func(p []byte) (int, error) {
		require.False(t, caught)
		return copy(p, "hello"), io.EOF
	})
	require.Equal(t, exitDone, run(e))
	require.True(t, caught)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestRunSaysWhatIsOdd(t *testing.T) {
	o := sluice("", "run", "-n", "1", "--ctx", "16385", "hello")
	require.Equal(t, exitDone, o.code, o.stderr)
	require.Contains(t, o.stderr, "trained for 16384 tokens")
	require.Empty(t, sluice("", "run", "-n", "1", "--ctx", "16384", "hello").stderr)

	path := filepath.Join(t.TempDir(), "vocabulary.gguf")
	var file bytes.Buffer
	m := &meta.Map{}
	m.Set("general.architecture", "llama")
	require.NoError(t, gguf.Write(&file, m, nil, nil))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	o = sluice("", "run", "-m", path, "hello")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, path+": it has no weights")

	file.Reset()
	m.Set("general.type", "adapter")
	a := []gguf.Tensor{{Name: "blk.0.attn_q.weight.lora_a", Type: quant.F32, Shape: []int{8}}}
	require.NoError(t, gguf.Write(&file, m, a, func(_ *gguf.Tensor, w io.Writer) error {
		_, err := w.Write(make([]byte, 32))
		return err
	}))
	require.NoError(t, os.WriteFile(path, file.Bytes(), 0o600))
	o = sluice("", "run", "-m", path, "hello")
	require.Equal(t, exitFailed, o.code)
	require.Contains(t, o.stderr, path+": is an adapter (LoRA), not a model")
}

// TestNoTokens: who asks for no token is told so, in place of a whole answer.
func TestNoTokens(t *testing.T) {
	for _, command := range []string{"run", "chat"} {
		o := sluice("12 + 30", command, "-n", "0")
		require.Equal(t, exitUsage, o.code)
		require.Contains(t, o.stderr, "-n is 0, which leaves no answer")
	}
	require.Equal(t, "12 + 30 = 42.\n", sluice("", "run", "-n", "-1", "12 + 30").stdout)
}

func TestLogitsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logits.f32")
	o := sluice("", "logits", "--tokens", "1,2,3", "-o", path)
	require.Equal(t, exitDone, o.code, o.stderr)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Len(t, whole, 3*8192*4)

	o = sluice("", "logits", "--tokens", "1,2,3", "--ctx", "2", "--force", "-o", path)
	require.Equal(t, exitFailed, o.code)
	kept, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, whole, kept, "a request that is refused leaves the file")
}

func TestRunEndsItsLine(t *testing.T) {
	const question = "What is the capital of France?"
	require.Equal(t, "The capital of France is Paris.\n", sluice("", "run", question).stdout)
	require.NotContains(t, sluice("", "run", "--raw", "-n", "3", "The capital of").stdout, "\n")
	e := envtest.NewEnv("", "run", "--raw", "-n", "3", "The capital of")
	e.IsTerminal = func(stream any) bool { return stream == e.Stdout }
	require.Zero(t, run(e))
	require.Contains(t, fmt.Sprint(e.Stdout), "\n")
}

// Without a seed each answer is another one, and what was drawn can be asked for again.
func TestRunSeed(t *testing.T) {
	seed := func(more ...string) (a ask.Answer) {
		o := sluice("", append([]string{"run", "--json", "-n", "1", "hello"}, more...)...)
		require.NoError(t, json.Unmarshal([]byte(o.stdout), &a), o.stderr)
		return a
	}
	first, second := seed(), seed()
	require.NotEqual(t, first.Seed, second.Seed)
	require.Less(t, first.Seed, uint64(1)<<53)
	require.EqualValues(t, 7, seed("--seed", "7").Seed)
}

func TestNegativeValues(t *testing.T) {
	for _, args := range [][]string{
		{"run", "-n", "1", "--top-n-sigma", "-1", "hello"}, {"run", "--repeat-last-n", "-1", "-n", "1", "hello"},
		{"run", "-n", "-1", "What is the capital of France?"}, {"run", "-n", "1", "--presence-penalty", "-.5", "hello"},
	} {
		o := sluice("", args...)
		require.Zero(t, o.code, "%v: %s", args, o.stderr)
	}
	require.Equal(t, []string{"run", "-n-1", "--x=-2.5", "--y=3", "-4", "--", "-n", "-1"},
		env.JoinNegative([]string{"run", "-n", "-1", "--x", "-2.5", "--y=3", "-4", "--", "-n", "-1"}))
}
