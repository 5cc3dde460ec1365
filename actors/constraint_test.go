package actors

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-ai/sluice/internal/refusal"
	"github.com/sluice-ai/sluice/stages/constrain"
	"github.com/sluice-ai/sluice/stages/grammar"
	"github.com/sluice-ai/sluice/stages/grammar/schema"
	"github.com/sluice-ai/sluice/stages/sample"
	"github.com/sluice-ai/sluice/stages/token"
)

// forms are what answers are bound to be in these tests.
func forms(t *testing.T) (all []*grammar.Grammar) {
	for _, text := range []string{
		`{"type":"object","properties":{"name":{"type":"string","minLength":2,"maxLength":12},"n":{"type":"integer","minimum":3,
			"maximum":250},"tags":{"type":"array","items":{"enum":["a","bc"]},"maxItems":3}},
			"required":["name","n","tags"],"additionalProperties":false}`,
		`{"type":"array","items":{"type":"string","pattern":"^[a-z]{1,4}-[0-9]+$","maxLength":8},"minItems":2,"maxItems":4}`,
		`{"$ref":"#/$defs/tree","$defs":{"tree":{"type":"object","properties":{"v":{"type":"boolean"},"next":{"anyOf":[
			{"type":"null"},{"$ref":"#/$defs/tree"}]}},"required":["v","next"],"additionalProperties":false}}}`,
	} {
		g, err := schema.Compile(text, schema.Options{}, grammar.DefaultLimits())
		require.NoError(t, err)
		all = append(all, g)
	}
	return all
}

// formed is a grammar as requests have it; nil: none.
func formed(g *grammar.Grammar) *constrain.Form {
	if g == nil {
		return nil
	}
	return &constrain.Form{Field: "grammar", Make: func() (*grammar.Form, error) {
		return grammar.Compile(g, grammar.DefaultLimits())
	}}
}

func bound(g *grammar.Grammar, seed uint64) Request {
	p := sample.Defaults()
	p.Temp, p.TopK, p.TopP, p.MinP, p.Seed = 1.5, 0, 1, 0, seed
	return Request{Text: "Tell me something.", Form: formed(g), Sampling: p, MaxTokens: 300}
}

func of(t *testing.T, f *constrain.Form, text string) bool {
	p, err := f.Make()
	require.NoError(t, err)
	accept, _, err := p.Matcher().Check(text)
	require.NoError(t, err)
	return accept
}

// TestConstrained: whatever the dice say, an answer that ends is of its grammar, and it is the same among others.
func TestConstrained(t *testing.T) {
	e := startMini(t)
	var requests []Request
	for i, g := range forms(t) {
		for seed := range uint64(4) {
			requests = append(requests, bound(g, seed+uint64(10*i)))
		}
	}
	var alone []string
	ended := 0
	for i, r := range requests {
		a := collect(t, begin(t, e, r))
		alone = append(alone, a.text)
		if a.finish == Stopped {
			ended++
			require.True(t, json.Valid([]byte(a.text)), a.text)
			require.True(t, of(t, r.Form, a.text), "%d: %s", i, a.text)
		}
	}
	require.GreaterOrEqual(t, ended, len(requests)*2/3)
	streams := make([]*Stream, len(requests))
	for i, r := range requests {
		streams[i] = begin(t, e, r)
	}
	free := begin(t, e, Request{Text: "Tell me something.", Sampling: greedy(), MaxTokens: 100})
	for i, s := range streams {
		require.Equal(t, alone[i], collect(t, s).text)
	}
	collect(t, free)
}

// TestConstrainedSurvive: an answer is the same if the sampler, the scheduler or the session dies on the way.
func TestConstrainedSurvive(t *testing.T) {
	e := startMini(t)
	r := bound(forms(t)[0], 1)
	want := collect(t, begin(t, e, r)).text
	for _, name := range []string{"sampler", "masks", "scheduler", "session"} {
		for at := range 4 {
			s := begin(t, e, r)
			victim := name
			if name == "session" {
				victim = fmt.Sprintf("sessions/%d", e.opened.Load())
			}
			_, text := listen(t, s, func(n int) {
				if n == 3*at {
					e.crash(victim)
				}
			})
			require.Equal(t, want, text, "%s dead at %d", name, 3*at)
		}
	}
}

// TestConstrainedThoughts: what the prompt lets the model think is free, and what comes after it is not.
func TestConstrainedThoughts(t *testing.T) {
	g, err := grammar.GBNF(`root ::= "yes" | "no"`)
	require.NoError(t, err)
	for said, want := range map[string][2]string{
		"Hm, a maybe</think>yes":   {"Hm, a maybe", "yes"},
		"Hm, so it is</think>no":   {"Hm, so it is", "no"},
		"Hm, who knows</think>who": {"Hm, who knows", ""}, // it is not asked
	} {
		e, r := saying(t, "one <think>", said)
		r.Form = formed(g)
		thought, text := listen(t, begin(t, e, r), func(int) {})
		require.Equal(t, want[0], thought)
		require.Contains(t, text, want[1])
		require.NotContains(t, text, "who")
	}
}

// TestThoughtsEnd: a thought that is as long as it may be ends by its mark, whoever dies then, and the answer goes on;
// a shorter one ends by itself, and what no thought is has no bound.
func TestThoughtsEnd(t *testing.T) {
	const said = "Hm, two and two may be four, and that is all that there is to say of it"
	e, r := saying(t, "one <think>", said)
	ids, err := e.spec.vocab.Encode(nil, said, token.Options{})
	require.NoError(t, err)
	mark, err := e.spec.vocab.Encode(nil, "</think>", token.Options{ParseSpecial: true})
	require.NoError(t, err)
	text := func(ids []int32) string { return strings.TrimSpace(string(e.spec.vocab.Decode(nil, ids, false))) }
	for _, most := range []int{1, 3} {
		r.MostThoughts = most
		want := [2]string{text(ids[:most]), text(ids[most+len(mark):])}
		for _, victim := range []string{"", "sampler", "scheduler", "session"} {
			for _, at := range []int{0, most - 1, most, most + 1, most + len(mark)} {
				e, _ := saying(t, "one <think>", said) // who dies too often is not started again
				s := begin(t, e, r)
				name := victim
				if name == "session" {
					name = fmt.Sprintf("sessions/%d", e.opened.Load())
				}
				thought, answer := listen(t, s, func(n int) {
					if n == at && name != "" {
						e.crash(name)
					}
				})
				require.Equal(t, want, [2]string{strings.TrimSpace(thought), strings.TrimSpace(answer)}, "%s dead at %d", victim, at)
			}
		}
	}
	r.MostThoughts = len(ids) + 1
	thought, answer := listen(t, begin(t, e, r), func(int) {})
	require.Equal(t, [2]string{said, ""}, [2]string{thought, answer})
	g, err := grammar.GBNF(`root ::= "yes" | "no"`)
	require.NoError(t, err)
	r.Form, r.MostThoughts = formed(g), 2
	thought, answer = listen(t, begin(t, e, r), func(int) {})
	require.Equal(t, text(ids[:2]), strings.TrimSpace(thought))
	require.Contains(t, []string{"yes", "no"}, answer)
	e, r = saying(t, "one", said)
	r.MostThoughts = 1
	thought, answer = listen(t, begin(t, e, r), func(int) {})
	require.Equal(t, [2]string{"", said}, [2]string{thought, answer})
}

// TestConstrainedRefusals: what cannot go together is said at once.
func TestConstrainedRefusals(t *testing.T) {
	e := startNull(t, nil)
	r := bound(forms(t)[0], 1)
	r.IgnoreEOG = true
	_, err := e.Generate(r)
	require.ErrorAs(t, err, new(*refusal.Error))
}
