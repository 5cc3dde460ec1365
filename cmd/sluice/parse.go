package main

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/tools"
)

type parseCmd struct {
	modelFlag
	Template string `placeholder:"FILE" help:"Chat template (Jinja2) of the model that wrote the answer. Without it: the model's own."`
	Tools    string `placeholder:"FILE" help:"JSON: the tools of the request. Without any, every name may be one's."`
	Tail     string `placeholder:"TEXT" help:"How the prompt ended: it may have begun a thought."`
	Cuts     []int  `placeholder:"N" help:"Cut the answer at these code points, and print what comes of each piece, as it would be streamed."`
}

func (parseCmd) examples() [2]string {
	return [2]string{
		`sluice parse --template chat.jinja --tools tools.json < answer.txt`,
		`sluice parse -m model.gguf --tail "<think>" --cuts 3,17 < answer.txt`,
	}
}

// Run reads what a model wrote from standard input.
func (c *parseCmd) Run(e *env) error {
	syntax, err := c.syntax(e)
	if err != nil {
		return err
	}
	var set *tools.Set
	if c.Tools != "" {
		text, err := e.readFile(c.Tools, mostDescription)
		if err != nil {
			return err
		}
		if set, err = tools.ParseSet(text); err != nil {
			return fmt.Errorf("%s: %w", c.Tools, err)
		}
		if !set.Some() {
			set = nil
		}
	}
	text, err := e.readInput(mostText)
	if err != nil {
		return err
	}
	p := syntax.Parser(c.Tail, set)
	if len(c.Cuts) > 0 {
		return c.stream(e, p, string(text))
	}
	answer := answered{Calls: []calledWhole{}}
	answer.add(p.Push(text))
	answer.add(p.End())
	return c.encoder(e).Encode(answer)
}

// encoder leaves marks readable.
func (c *parseCmd) encoder(e *env) *json.Encoder {
	out := json.NewEncoder(e.stdout)
	out.SetEscapeHTML(false)
	return out
}

// syntax is what the template shows of how the model writes calls.
func (c *parseCmd) syntax(e *env) (*tools.Syntax, error) {
	source, err := c.source(e)
	if err != nil {
		return nil, err
	}
	t, err := chat.Compile(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(c.Template, c.Model), err)
	}
	return tools.Shown(source, t.RenderConversation), nil
}

func (c *parseCmd) source(e *env) (string, error) {
	switch {
	case c.Template != "" && c.Model != "":
		return "", usagef("--template and -m both say whose answer it is: give one")
	case c.Template != "":
		text, err := e.readFile(c.Template, mostDescription)
		return string(text), err
	}
	f, err := e.openModel(c.Model)
	if err != nil {
		return "", err
	}
	defer f.Close()
	source, err := chat.Own(&f.Meta)
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.Name, err)
	}
	return source, nil
}

// answered is a whole answer.
type answered struct {
	Content   string        `json:"content"`
	Reasoning string        `json:"reasoning"`
	Calls     []calledWhole `json:"tool_calls"`
}

type calledWhole struct {
	Name      string    `json:"name"`
	Arguments arguments `json:"arguments"`
}

// arguments are those of a call: an object, or text where the answer ended within it.
type arguments string

// MarshalJSON writes them as they are where they are whole.
func (a arguments) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(a)) {
		return []byte(a), nil
	}
	return json.Marshal(string(a))
}

func (a *answered) add(parts []tools.Part) {
	for _, p := range parts {
		switch p.Kind {
		case tools.Text:
			a.Content += string(p.Text)
		case tools.Thought:
			a.Reasoning += string(p.Text)
		case tools.Call:
			a.Calls = append(a.Calls, calledWhole{Name: p.Name})
		case tools.Arguments:
			a.Calls[p.Index].Arguments += arguments(p.Text)
		}
	}
}

// streamed is what one piece of an answer adds to it.
type streamed struct {
	Content   string       `json:"content"`
	Reasoning string       `json:"reasoning"`
	Calls     []calledPart `json:"tool_calls"`
}

type calledPart struct {
	Index     int    `json:"index"`
	Name      string `json:"name"` // once
	Arguments string `json:"arguments"`
}

func streamOf(parts []tools.Part) streamed {
	s := streamed{Calls: []calledPart{}}
	for _, p := range parts {
		switch p.Kind {
		case tools.Text:
			s.Content += string(p.Text)
		case tools.Thought:
			s.Reasoning += string(p.Text)
		case tools.Call:
			s.Calls = append(s.Calls, calledPart{Index: p.Index, Name: p.Name})
		case tools.Arguments:
			if n := len(s.Calls); n == 0 || s.Calls[n-1].Index != p.Index {
				s.Calls = append(s.Calls, calledPart{Index: p.Index})
			}
			s.Calls[len(s.Calls)-1].Arguments += string(p.Text)
		}
	}
	return s
}

// stream prints a line for each piece that adds something.
func (c *parseCmd) stream(e *env, p *tools.Parser, text string) error {
	runes, from, out := []rune(text), 0, c.encoder(e)
	for _, at := range c.Cuts {
		if at < from || at > len(runes) {
			return usagef("--cuts has %d: want ascending numbers up to %d, the answer's code points", at, len(runes))
		}
		from = at
	}
	from = 0
	say := func(parts []tools.Part) error {
		if len(parts) == 0 {
			return nil
		}
		return out.Encode(streamOf(parts))
	}
	for _, to := range append(c.Cuts, len(runes)) {
		if err := say(p.Push([]byte(string(runes[from:to])))); err != nil {
			return err
		}
		from = to
	}
	return say(p.End())
}
