package answer

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/internal/mini"
	"github.com/sluice-ai/sluice/stages/reply"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
	"github.com/sluice-ai/sluice/storage/gguf"
)

// TestParts: what goes on is one part, what changes is another; a call has its own id, or one that is made.
func TestParts(t *testing.T) {
	part := func(kind tools.Kind, call int, name, id, text string) *actors.Event {
		p := reply.Part{Kind: kind, Call: call, Name: name, ID: id, Len: len(text)}
		return &actors.Event{Text: []byte(text), Parts: []reply.Part{p}}
	}
	events := []*actors.Event{
		part(tools.Thought, 0, "", "", "Hm"), part(tools.Thought, 0, "", "", ", two"), part(tools.Text, 0, "", "", "So"),
		part(tools.Call, 0, "f", "", ""), part(tools.Arguments, 0, "", "", `{"a":`), part(tools.Arguments, 0, "", "", "1}"),
		part(tools.Call, 1, "g", "own", ""), part(tools.Arguments, 1, "", "", "{}"), part(tools.Text, 0, "", "", "Done"),
		{Text: []byte(".")},
	}
	want := []string{"1 0   Hm, two", "0 0   So", `2 0 f made {"a":1}`, "2 1 g own {}", "0 0   Done."}
	for _, every := range []int{1, 2, 3, len(events)} { // how often it is sent
		c := &Choice{}
		var got []string
		send := func() {
			for _, p := range c.New.Parts {
				if p.Name == "f" {
					require.Regexp(t, "^[0-9A-Za-z]{9}$", p.ID)
					p.ID = "made"
				}
				text := fmt.Sprintf("%d %d %s %s %s", p.Kind, p.Call, p.Name, p.ID, p.Text)
				if n := len(got) - 1; n >= 0 && p.Name == "" && strings.HasPrefix(got[n], fmt.Sprintf("%d %d ", p.Kind, p.Call)) {
					got[n] += string(p.Text)
				} else {
					got = append(got, text)
				}
			}
			c.sent()
		}
		for i, e := range events {
			c.add(e)
			if (i+1)%every == 0 {
				send()
			}
		}
		send()
		require.Equal(t, want, got, every)
		require.Equal(t, 2, c.Calls)
		require.False(t, c.news())
	}
	n := News{Parts: []Part{{Text: []byte("a")}, {Kind: Call, Text: []byte("{}")}, {Text: []byte("b")}}}
	require.Equal(t, "ab", string(n.Said(Speech)))
	require.Equal(t, "a", string(n.Parts[0].Text))
	require.Empty(t, n.Said(Thought))
}

// TestUsageOf: choices of one prompt share it.
func TestUsageOf(t *testing.T) {
	u := actors.Usage{Prompt: 10, Cached: 3, Generated: 2}
	sum := Total([]*Choice{{Prompt: 0, Usage: u}, {Prompt: 0, Usage: u}, {Prompt: 1, Usage: u}})
	require.Equal(t, actors.Usage{Prompt: 20, Cached: 6, Generated: 6}, sum)
}

// TestOffsets: a token begins where the text of those before it ends, in characters. Where nobody asked, nothing is
// kept.
func TestOffsets(t *testing.T) {
	v := miniVocab(t)
	var ids []int32
	for id := range int32(v.Size()) { // tokens of whole characters, not all of one byte
		piece := v.Piece(id)
		wide := len(piece) != utf8.RuneCount(piece)
		if utf8.Valid(piece) && (wide || id%1000 == 7) && !v.IsControl(id) {
			ids = append(ids, id)
		}
	}
	wide := 0
	c, other := &Choice{vocab: v, Probs: true}, &Choice{vocab: v}
	text := ""
	for i, id := range ids {
		e := &actors.Event{HasToken: true, Token: id, LogProb: -1, Top: []sample.TokenProb{{ID: id}}}
		c.add(e)
		other.add(e)
		require.Equal(t, utf8.RuneCountInString(text), c.New.Probs[0].Offset, "token %d: %q", i, v.Piece(id))
		require.Equal(t, id, c.New.Probs[0].ID)
		require.Equal(t, e.Top, c.New.Probs[0].Top)
		if len(v.Piece(id)) != utf8.RuneCount(v.Piece(id)) {
			wide++
		}
		text += string(v.Piece(id))
		require.True(t, c.news())
		require.False(t, other.news())
		c.sent()
		require.False(t, c.news())
	}
	require.Positive(t, wide)
}

// TestProbsOfTheLastToken: a token that ends the answer is no part of it and has no log-probability; the one that
// completes a stop string has, and so has an end token that was told not to end it.
func TestProbsOfTheLastToken(t *testing.T) {
	v := miniVocab(t)
	other, err := v.Encode(nil, "a", token.Options{})
	require.NoError(t, err)
	eog := v.EOG()[0]
	for _, c := range []struct {
		token  int32
		finish actors.Finish
		want   int
	}{{other[0], actors.Running, 1}, {other[0], actors.Stopped, 1}, {other[0], actors.Length, 1}, {eog, actors.Stopped, 0},
		{eog, actors.Length, 1}, {eog, actors.Running, 1}} {
		choice := &Choice{vocab: v, Probs: true}
		choice.add(&actors.Event{HasToken: true, Token: c.token, Finish: c.finish})
		require.Len(t, choice.New.Probs, c.want, "%+v", c)
	}
}

func miniVocab(t *testing.T) *token.Vocab {
	f, err := gguf.Parse(mini.Name, mini.GGUF)
	require.NoError(t, err)
	v, err := token.New(&f.Meta)
	require.NoError(t, err)
	return v
}

// TestPondered: thinking ends with the last token that says some of it, whatever tokens say nothing by themselves.
func TestPondered(t *testing.T) {
	c := &Choice{}
	thought := actors.Event{HasToken: true, Text: []byte("Hm"), Parts: []reply.Part{{Kind: tools.Thought, Len: 2}}}
	held := actors.Event{HasToken: true}
	text := actors.Event{HasToken: true, Text: []byte("So")}
	for i, e := range []actors.Event{held, thought, held, thought, held, text, held} {
		c.add(&e)
		require.Equal(t, []int{0, 2, 2, 4, 4, 4, 4}[i], c.Pondered)
	}
}

// TestLate: an answer that was to be short ends with a line, once it has taken its time.
func TestLate(t *testing.T) {
	now := time.Now()
	c := &Choice{within: time.Second}
	for i, step := range []struct {
		text  string
		after time.Duration
		late  bool
	}{{"a\n", 0, false}, {"b\n", time.Second, false}, {"c", 2 * time.Second, false}, {"d\ne", 2 * time.Second, true}} {
		c.event.Text = []byte(step.text)
		require.Equal(t, step.late, c.late(now.Add(step.after)), i)
	}
	patient := &Choice{event: actors.Event{Text: []byte("\n")}}
	require.False(t, patient.late(now) || patient.late(now.Add(time.Hour)))
}
