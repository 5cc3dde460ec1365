package chat_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/sluice-ai/sluice/stages/chat"
)

// split labels a whole stream, neighbouring pieces of one kind joined.
func split(prompt string, stream ...string) (out []chat.Piece) {
	t := chat.NewThinking(prompt)
	var pieces []chat.Piece
	for _, s := range stream {
		pieces = append(pieces, t.Push(s)...)
	}
	for _, p := range append(pieces, t.End()...) {
		if n := len(out); n > 0 && out[n-1].Thinking == p.Thinking {
			out[n-1].Text += p.Text
			continue
		}
		out = append(out, p)
	}
	return out
}

func TestThinking(t *testing.T) {
	think := func(s string) chat.Piece { return chat.Piece{Text: s, Thinking: true} }
	say := func(s string) chat.Piece { return chat.Piece{Text: s} }
	for _, c := range []struct {
		name, prompt, stream string
		want                 []chat.Piece
	}{
		{"no tags", "", "Four.", []chat.Piece{say("Four.")}},
		{"thinking first", "", "<think>2+2</think>Four.", []chat.Piece{think("2+2"), say("Four.")}},
		{"white space before", "", "\n <think>a</think>\n\nb", []chat.Piece{think("\n a"), say("\n\nb")}},
		{"opened by the prompt", "<|im_start|>assistant\n<think>\n", "a</think>b", []chat.Piece{think("a"), say("b")}},
		{"a prompt that closed it", "<think>\n\n</think>\n\n", "b", []chat.Piece{say("b")}},
		{"never closed", "", "<think>a</thin", []chat.Piece{think("a</thin")}},
		{"twice", "", "<think>a</think> <think>b</think>c", []chat.Piece{think("a b"), say("c")}},
		{"an answer about tags", "", "Use <think>x</think>.", []chat.Piece{say("Use <think>x</think>.")}},
		{"half a tag is the answer", "", "<thi", []chat.Piece{say("<thi")}},
		{"other tags", "", "[THINK]a[/THINK]b", []chat.Piece{think("a"), say("b")}},
		{"a longer tag with the same beginning", "", "<thinking>a</think></thinking>b",
			[]chat.Piece{think("a</think>"), say("b")}},
		{"harmony", "", "<|channel|>analysis<|message|>a<|end|>b", []chat.Piece{think("a"), say("b")}},
		{"only white space", "", " \n", []chat.Piece{say(" \n")}},
		{"nothing", "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, split(c.prompt, c.stream))
			require.Equal(t, c.want, split(c.prompt, strings.Split(c.stream, "")...), "byte by byte")
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
		require.Equal(t, split(p, whole), split(p, chunks...))
	})
}
