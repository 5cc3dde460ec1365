package text

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/sluice-ai/sluice/cmd/sluice/internal/env"
	"github.com/sluice-ai/sluice/cmd/sluice/internal/models"
	"github.com/sluice-ai/sluice/internal/namedmodel"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/tools"
)

type Parse struct {
	models.Flag
	Template string `placeholder:"FILE" help:"Chat template (Jinja2) of the model that wrote the answer. Without it: the model's own."`
	Tools    string `placeholder:"FILE" help:"JSON: the tools of the request. Without any, every name may be one's."`
	Tail     string `placeholder:"TEXT" help:"How the prompt ended: it may have begun a thought."`
	Cuts     []int  `placeholder:"N" help:"Cut the answer at these code points, and print what comes of each piece, as it would be streamed."`
}

func (Parse) Examples() [2]string {
	return [2]string{
		`sluice parse --template chat.jinja --tools tools.json < answer.txt`,
		`sluice parse -m model.gguf --tail "<think>" --cuts 3,17 < answer.txt`,
	}
}

// Run reads what a model wrote from standard input.
func (c *Parse) Run(e *env.Env) error {
	syntax, err := c.syntax(e)
	if err != nil {
		return err
	}
	var set *tools.Set
	if c.Tools != "" {
		text, err := e.ReadFile(c.Tools, env.MostDescription)
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
	text, err := e.ReadInput(env.MostText)
	if err != nil {
		return err
	}
	p := syntax.Parser(c.Tail, set)
	if len(c.Cuts) > 0 {
		return c.stream(e, p, string(text))
	}
	answer := Answered{Calls: []CalledWhole{}}
	answer.add(p.Push(text))
	answer.add(p.End())
	return c.encoder(e).Encode(answer)
}

// encoder writes JSON in which <, > and & are not escaped.
func (c *Parse) encoder(e *env.Env) *json.Encoder {
	out := json.NewEncoder(e.Stdout)
	out.SetEscapeHTML(false)
	return out
}

// syntax is how the model writes tool calls, as its template shows.
func (c *Parse) syntax(e *env.Env) (*tools.Syntax, error) {
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

func (c *Parse) source(e *env.Env) (string, error) {
	switch {
	case c.Template != "" && c.Model != "":
		return "", env.Usagef("--template and -m both say whose answer it is: give one")
	case c.Template != "":
		text, err := e.ReadFile(c.Template, env.MostDescription)
		return string(text), err
	}
	f, err := namedmodel.Open(e.Lookup, c.Model)
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

// Answered is the parts of a whole answer.
type Answered struct {
	Content   string        `json:"content"`
	Reasoning string        `json:"reasoning"`
	Calls     []CalledWhole `json:"tool_calls"`
}

type CalledWhole struct {
	Name      string    `json:"name"`
	Arguments Arguments `json:"arguments"`
}

// Arguments are the arguments of a call: a JSON object, or its beginning if the answer ended within it.
type Arguments string

// MarshalJSON writes valid JSON as it is, and other text as a string.
func (a Arguments) MarshalJSON() ([]byte, error) {
	if json.Valid([]byte(a)) {
		return []byte(a), nil
	}
	return json.Marshal(string(a))
}

func (a *Answered) add(parts []tools.Part) {
	for _, p := range parts {
		switch p.Kind {
		case tools.Text:
			a.Content += string(p.Text)
		case tools.Thought:
			a.Reasoning += string(p.Text)
		case tools.Call:
			a.Calls = append(a.Calls, CalledWhole{Name: p.Name})
		case tools.Arguments:
			a.Calls[p.Index].Arguments += Arguments(p.Text)
		}
	}
}

// Streamed is the parts that one piece of an answer adds.
type Streamed struct {
	Content   string       `json:"content"`
	Reasoning string       `json:"reasoning"`
	Calls     []calledPart `json:"tool_calls"`
}

type calledPart struct {
	Index     int    `json:"index"`
	Name      string `json:"name"` // once
	Arguments string `json:"arguments"`
}

func streamOf(parts []tools.Part) Streamed {
	s := Streamed{Calls: []calledPart{}}
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
func (c *Parse) stream(e *env.Env, p *tools.Parser, text string) error {
	runes, from, out := []rune(text), 0, c.encoder(e)
	for _, at := range c.Cuts {
		if at < from || at > len(runes) {
			return env.Usagef("--cuts has %d: want ascending numbers up to %d, the answer's code points", at, len(runes))
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
