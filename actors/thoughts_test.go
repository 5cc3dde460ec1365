package actors

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/backend"
	"github.com/sluice-ai/sluice/internal/ir"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/token"
	"github.com/sluice-ai/sluice/stages/tools"
)

// scripted is a device that has the model say a text: the token at a position follows from nothing else.
type scripted struct {
	nullDevice
	script []int32 // by position
}

func (d scripted) Compile(p *ir.Bound, c backend.Config) (backend.Model, error) {
	m, err := d.nullDevice.Compile(p, c)
	return scriptedModel{m.(*nullModel), d.script}, err
}

type scriptedModel struct {
	*nullModel
	script []int32
}

func (m scriptedModel) Run(w backend.Work, s *backend.Step) error {
	if w.Segment != m.head {
		return nil
	}
	clear(s.Logits)
	for i, row := range s.Wanted {
		for _, span := range s.Spans {
			if at := int(row) - span.Row; at >= 0 && at < span.Rows {
				s.Logits[i*m.vocab+int(m.script[span.Pos+at+1])] = 1
			}
		}
	}
	return nil
}

// saying starts an engine whose model goes on with text after a prompt.
func saying(t *testing.T, prompt, text string) (e *Engine, r Request) {
	var script []int32
	e = startNull(t, nil)
	before, err := e.spec.vocab.Encode(nil, prompt, token.Options{AddSpecial: true})
	require.NoError(t, err)
	said, err := e.spec.vocab.Encode(nil, text, token.Options{})
	require.NoError(t, err)
	require.Greater(t, len(said), 5)
	script = append(before, said...)
	e = startNull(t, func(c *Config) { c.Device = scripted{script: script} })
	return e, Request{Text: prompt, MaxTokens: len(said), Sampling: greedy(), Thoughts: true}
}

// listen reads an answer; before each event, before is called.
func listen(t *testing.T, s *Stream, before func(n int)) (thought, text string) {
	defer s.Close()
	var e Event
	for n := 0; ; n++ {
		before(n)
		if s.Next(context.Background(), &e) != nil {
			require.Contains(t, []Finish{Length, Stopped}, e.Finish)
			return thought, text
		}
		for p, said := range e.Each() {
			if p.Kind == tools.Thought {
				require.Empty(t, text, "all thinking comes first")
				thought += string(said)
			} else {
				require.Equal(t, tools.Text, p.Kind)
				text += string(said)
			}
		}
	}
}

// TestThoughts: an event says apart what is thought and what is answered, also when the prompt began the thinking,
// and when the session dies at any token; what was held back comes at the end.
func TestThoughts(t *testing.T) {
	for _, c := range []struct{ name, prompt, said, thought, text string }{
		{"by the model", "one", "<think>\nHm</think>\n4", "Hm", "4"},
		{"by the prompt", "one <think>\n", "Hm, 2 + 2</think>4", "Hm, 2 + 2", "4"},
		{"not at all", "one", "Use <think> tags.", "", "Use <think> tags."},
		{"a half tag", "one <think>", "Hm, 2 + 2</thin", "Hm, 2 + 2</thin", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, r := saying(t, c.prompt, c.said)
			thought, text := listen(t, begin(t, e, r), func(int) {})
			require.Equal(t, c.thought, thought)
			require.Equal(t, c.text, text)
			for at := range r.MaxTokens {
				s := begin(t, e, r)
				id := e.opened.Load()
				thought, text := listen(t, s, func(n int) {
					if n == at {
						e.crash("sessions/" + strconv.FormatUint(id, 10))
					}
				})
				require.Equal(t, c.thought, thought, "dead at %d", at)
				require.Equal(t, c.text, text, "dead at %d", at)
			}
			r.Thoughts = false
			thought, text = listen(t, begin(t, e, r), func(int) {})
			require.Empty(t, thought)
			require.Equal(t, c.said, text, "who does not ask for it gets all as it came")
		})
	}
}

// TestStopsInParts: stop strings are looked for in thoughts and in what is said after them, and in each alone.
func TestStopsInParts(t *testing.T) {
	e, r := saying(t, "one", "<think>\nHm, END of it</think>\n4 is all")
	for stop, want := range map[string][2]string{
		"END": {"Hm, ", ""}, "is": {"Hm, END of it", "4 "}, "it\n4": {"Hm, END of it", "4 is all"}, "it4": {"Hm, END of it", "4 is all"},
	} {
		r.Stop = []string{stop}
		thought, text := listen(t, begin(t, e, r), func(int) {})
		require.Equal(t, want, [2]string{thought, text}, stop)
	}
}

// TestChoicesShareThePrompt: n choices render and encode it once, and differ in their seeds.
func TestChoicesShareThePrompt(t *testing.T) {
	e := startNull(t, nil)
	r := Request{
		Chat:     &chat.Input{Messages: []chat.Message{chat.Say("user", strings.Repeat("one two ", 50))}, AddGenerationPrompt: true},
		Sampling: greedy(), MaxTokens: 3,
	}
	r.Sampling.Seed = 7
	all := r.Choices(3)
	first, err := e.spec.promptOf(&all[0], nil)
	require.NoError(t, err)
	for i, c := range all {
		require.EqualValues(t, 7+i, c.Sampling.Seed)
		p, err := e.spec.promptOf(&c, nil)
		require.NoError(t, err)
		require.Same(t, &first.Tokens[0], &p.Tokens[0])
		a := collect(t, begin(t, e, c))
		require.Equal(t, len(first.Tokens), a.usage.Prompt)
		require.Same(t, &first.Tokens[0], &c.prompt.Tokens[0])
	}
	room := make([]int32, 8)
	collect(t, begin(t, e, plain(room[:2], 4)))
	require.Equal(t, make([]int32, 8), room, "an answer is written beside the prompt, which is others' too")
	other, err := e.spec.promptOf(&r, nil)
	require.NoError(t, err)
	require.NotSame(t, &first.Tokens[0], &other.Tokens[0], "another request has its own")

	r.Chat = &chat.Input{Messages: nil, AddGenerationPrompt: true, ContinueFinalMessage: true}
	for _, c := range r.Choices(2) {
		_, err := drain(begin(t, e, c))
		require.ErrorContains(t, err, "the model's chat template refused the conversation")
	}
}
