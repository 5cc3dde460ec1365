package sluice_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/sluice-ai/sluice"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/internal/testref"
)

// question is one that the embedded model knows; its answer is paris.
var question = sluice.Request{Messages: []sluice.Message{sluice.User("What is the capital of France?")}, Temperature: new(float32)}

const paris = "The capital of France is Paris."

func open(t *testing.T, name string) *sluice.Model {
	t.Helper()
	m, err := sluice.Open(t.Context(), name, sluice.Options{Context: 512, Device: "cpu"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// TestOpen: options reach the engine, and a model says what it is.
func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	require.NoError(t, os.WriteFile(path, mini.GGUF, 0o600))
	var loaded, all int64
	m, err := sluice.Open(t.Context(), path, sluice.Options{Context: 256, Device: "cpu", Threads: 1, KV: "q8", Sequences: 2,
		Progress: func(done, total int64) { loaded, all = done, total }})
	require.NoError(t, err)
	defer m.Close()
	require.Positive(t, all)
	require.Equal(t, all, loaded)
	info := m.Info()
	require.Equal(t, sluice.Info{Name: "Sluice Mini Dense", Architecture: "qwen3", Parameters: info.Parameters,
		Context: 256, Sequences: 2, KV: "q8"}, info)
	require.Positive(t, info.Parameters)
	a, err := m.Generate(t.Context(), question)
	require.NoError(t, err)
	require.Equal(t, paris, a.Text)
}

// TestOpenRefuses: what cannot be is refused by the name of the option, what is not there with what to do.
func TestOpenRefuses(t *testing.T) {
	t.Setenv("SLUICE_STORE", t.TempDir())
	for _, c := range []struct {
		name    string
		options sluice.Options
		says    string
	}{
		{"", sluice.Options{Context: -1}, "Options.Context is -1: want a number from 1 on, or 0 for the default"},
		{"", sluice.Options{Context: 1 << 31}, "Options.Context is 2147483648: want less than 2147483648 tokens"},
		{"", sluice.Options{Memory: -5}, "Options.Memory is -5"},
		{"", sluice.Options{VRAM: -5}, "Options.VRAM is -5"},
		{"", sluice.Options{Threads: -5}, "Options.Threads is -5"},
		{"", sluice.Options{Threads: 5000}, "5000"},
		{"", sluice.Options{Sequences: -5}, "Options.Sequences is -5"},
		{"", sluice.Options{KV: "f7"}, `Options.KV is "f7": want f32, f16`},
		{"", sluice.Options{Device: "abacus"}, `Options.Device is "abacus": want cpu, cuda`},
		{"", sluice.Options{Device: "vulkan:0+1"}, "only cards of CUDA compute a layer together"},
		{"", sluice.Options{Memory: 1}, "ask for at least"},
		{"none.gguf", sluice.Options{}, "none.gguf"},
		{"Ann/Other", sluice.Options{}, "get it with sluice pull Ann/Other"},
		{t.TempDir(), sluice.Options{}, "is a folder without config.json"},
	} {
		_, err := sluice.Open(t.Context(), c.name, c.options)
		require.ErrorContains(t, err, c.says, "%q %+v", c.name, c.options)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := sluice.Open(ended, "", sluice.Options{Device: "cpu"})
	require.ErrorIs(t, err, context.Canceled)
}

// TestGenerate: settings of a request reach the engine, and what cannot be is refused by the name of the field.
func TestGenerate(t *testing.T) {
	m := open(t, "")
	a, err := m.Generate(t.Context(), sluice.Request{Prompt: "The capital of France is", MaxTokens: 3, Temperature: new(float32)})
	require.NoError(t, err)
	require.Equal(t, sluice.Length, a.Finish)
	require.Equal(t, 3, a.Usage.Generated)
	require.Positive(t, a.Usage.Prompt)
	require.Positive(t, a.Usage.Reading)
	require.Positive(t, a.Usage.Writing)

	stopped := question
	stopped.Stop = []string{" is"}
	a, err = m.Generate(t.Context(), stopped)
	require.NoError(t, err)
	require.Equal(t, "The capital of France", a.Text)
	require.Equal(t, sluice.Stopped, a.Finish)

	one, all, hot, few, zero, seed := 1, float32(1), float32(5), float32(0.001), float32(0), uint64(7)
	drawn := func(change func(*sluice.Request)) string {
		r := sluice.Request{Prompt: "a", MaxTokens: 16, Temperature: &hot, TopK: new(int), TopP: &all, MinP: &zero}
		change(&r)
		a, err := m.Generate(t.Context(), r)
		require.NoError(t, err)
		return a.Text
	}
	wild, seeded := func(*sluice.Request) {}, func(r *sluice.Request) { r.Seed = &seed }
	likeliest := drawn(func(r *sluice.Request) { r.Temperature = &zero })
	require.Equal(t, drawn(seeded), drawn(seeded))
	require.NotEqual(t, drawn(wild), drawn(wild), "another seed each time")
	require.NotEqual(t, likeliest, drawn(seeded))
	require.Equal(t, likeliest, drawn(func(r *sluice.Request) { r.TopK = &one }))
	require.Equal(t, likeliest, drawn(func(r *sluice.Request) { r.TopP = &few }))
	require.Equal(t, likeliest, drawn(func(r *sluice.Request) { r.MinP = &all }))

	far := float32(-1)
	for says, r := range map[string]sluice.Request{
		"neither Messages nor a Prompt": {},
		"both Messages and a Prompt":    {Messages: question.Messages, Prompt: "x"},
		"MaxTokens is negative":         {Prompt: "x", MaxTokens: -1},
		"temperature is -1":             {Prompt: "x", Temperature: &far},
		"Request.Schema":                {Prompt: "x", Schema: "{"},
		"512":                           {Prompt: strings.Repeat("word ", 2000)},
	} {
		_, err := m.Generate(t.Context(), r)
		require.ErrorContains(t, err, says)
	}
	_, err = m.Embed(t.Context(), "x")
	require.ErrorContains(t, err, "has no embeddings")
}

// TestStreamEnds: an answer ends where its reader leaves it or its context ends, and holds nobody else up.
func TestStreamEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m, err := sluice.Open(t.Context(), "", sluice.Options{Context: 512, Device: "cpu", Sequences: 1})
	require.NoError(t, err)
	long := sluice.Request{Prompt: "1", Schema: `{"type": "array", "minItems": 200, "items": {"type": "integer"}}`}
	for range 300 { // more than may be open
		require.Eventually(t, func() bool {
			for _, err := range m.Stream(t.Context(), long) {
				return err == nil
			}
			return false
		}, time.Minute, time.Millisecond)
	}
	ctx, cancel := context.WithCancel(t.Context())
	a, err := func() (sluice.Answer, error) {
		defer cancel()
		var a sluice.Answer
		for p, err := range m.Stream(ctx, long) {
			if err != nil {
				return a, err
			}
			a.Text += p.Text
			cancel()
		}
		return a, nil
	}()
	require.ErrorIs(t, err, context.Canceled)
	require.NotEmpty(t, a.Text)
	_, err = m.Generate(ctx, question)
	require.ErrorIs(t, err, context.Canceled)
	a, err = m.Generate(t.Context(), question) // the only place is free
	require.NoError(t, err)
	require.Equal(t, paris, a.Text)
	require.NoError(t, m.Close())
}

// TestManyAtOnce: requests of several goroutines get the answers that they get alone. Close ends those that are open,
// and later ones are refused.
func TestManyAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	m, err := sluice.Open(t.Context(), "", sluice.Options{Context: 512, Device: "cpu"})
	require.NoError(t, err)
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			a, err := m.Generate(context.Background(), question)
			if err != nil || a.Text != paris {
				t.Errorf("%q, %v", a.Text, err)
			}
		})
	}
	asking.Wait()
	begun := make(chan struct{})
	asking.Go(func() {
		once := sync.OnceFunc(func() { close(begun) })
		defer once()
		long := sluice.Request{Prompt: "1", Schema: `{"type": "array", "minItems": 250, "items": {"type": "integer"}}`}
		for _, err := range m.Stream(context.Background(), long) {
			if once(); err != nil {
				return
			}
		}
		t.Error("it was not cut off")
	})
	<-begun
	require.NoError(t, m.Close())
	asking.Wait()
	_, err = m.Generate(t.Context(), question)
	require.ErrorIs(t, err, sluice.ErrClosed)
	require.NoError(t, m.Close())
}

// TestEmbed: vectors have the length 1, equal texts equal ones; a model that embeds writes no text.
func TestEmbed(t *testing.T) {
	m := open(t, filepath.Join(testref.Dir(t), "fixtures", "bert.gguf"))
	require.True(t, m.Info().Embeds)
	all, err := m.Embed(t.Context(), "a cat", "a dog and a cat", "a cat")
	require.NoError(t, err)
	require.Len(t, all, 3)
	for _, v := range all {
		var sum float64
		for _, x := range v {
			sum += float64(x) * float64(x)
		}
		require.InDelta(t, 1, math.Sqrt(sum), 1e-5)
	}
	require.Equal(t, all[0], all[2])
	require.NotEqual(t, all[0], all[1])
	_, err = m.Generate(t.Context(), question)
	require.ErrorContains(t, err, "turns texts into vectors")
	_, err = m.Embed(t.Context(), "a", strings.Repeat("a ", 5000))
	require.ErrorContains(t, err, "text 2: ")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = m.Embed(ended, "a")
	require.ErrorIs(t, err, context.Canceled)
}
