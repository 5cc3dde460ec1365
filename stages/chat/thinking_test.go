package chat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/stages/chat"
)

// labelled is a stream apart: what was thought, and what was said.
type labelled struct{ thought, answer string }

// split labels a whole stream.
func split(t require.TestingT, prompt string, stream ...string) (out labelled) {
	add := func(thought, answer []byte) {
		if len(thought) > 0 {
			require.Empty(t, out.answer, "all thinking comes first")
		}
		out.thought += string(thought)
		out.answer += string(answer)
	}
	thinking := chat.NewThinking(prompt)
	for _, s := range stream {
		add(thinking.Push([]byte(s)))
	}
	add(thinking.End())
	return out
}

func TestThinking(t *testing.T) {
	for _, c := range []struct {
		name, prompt, stream string
		want                 labelled
	}{
		{"no tags", "", "Four.", labelled{answer: "Four."}},
		{"thinking first", "", "<think>2+2</think>Four.", labelled{"2+2", "Four."}},
		{"white space before", "", "\n <think>a</think>\n\nb", labelled{"\n a", "\n\nb"}},
		{"opened by the prompt", "<|im_start|>assistant\n<think>\n", "a</think>b", labelled{"a", "b"}},
		{"a prompt that closed it", "<think>\n\n</think>\n\n", "b", labelled{answer: "b"}},
		{"never closed", "", "<think>a</thin", labelled{thought: "a</thin"}},
		{"twice", "", "<think>a</think> <think>b</think>c", labelled{"a b", "c"}},
		{"an answer about tags", "", "Use <think>x</think>.", labelled{answer: "Use <think>x</think>."}},
		{"half a tag is the answer", "", "<thi", labelled{answer: "<thi"}},
		{"other tags", "", "[THINK]a[/THINK]b", labelled{"a", "b"}},
		{"a longer tag with the same beginning", "", "<thinking>a</think></thinking>b",
			labelled{"a</think>", "b"}},
		{"harmony", "", "<|channel|>analysis<|message|>a<|end|>b", labelled{"a", "b"}},
		{"only white space", "", " \n", labelled{answer: " \n"}},
		{"nothing", "", "", labelled{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, split(t, c.prompt, c.stream))
			require.Equal(t, c.want, split(t, c.prompt, strings.Split(c.stream, "")...), "byte by byte")
		})
	}
}

// TestThinkingChunkFree: how a stream is cut changes nothing, and what was labelled is never taken back.
func TestThinkingChunkFree(t *testing.T) {
	part := rapid.SampledFrom([]string{
		"<think>", "</think>", "<thinking>", "<th", "</", "ink>", ">", "a", "é", " ", "\n", "[THINK]", "[/THINK]", "<|end|>",
	})
	prompt := rapid.SampledFrom([]string{"", "assistant\n<think>\n"})
	rapid.Check(t, func(t *rapid.T) {
		p, whole := prompt.Draw(t, "prompt"), strings.Join(rapid.SliceOf(part).Draw(t, "parts"), "")
		var chunks []string
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			chunks = append(chunks, rest[:n])
			rest = rest[n:]
		}
		require.Equal(t, split(t, p, whole), split(t, p, chunks...))
	})
}

// TestThinkingNoAlloc: a token of an answer, or of thinking, costs no memory.
func TestThinkingNoAlloc(t *testing.T) {
	for _, begin := range []string{"<think>\n", ""} {
		thinking := chat.NewThinking(begin)
		token := []byte(" word </thin")
		thinking.Push(token)
		require.Zero(t, testing.AllocsPerRun(100, func() { thinking.Push(token) }), "after %q", begin)
	}
}
