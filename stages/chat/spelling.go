package chat

import (
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// spelling is how a model writes calls, for a template that knows tools and their results but no calls: they are put
// into the text of the message, where the model wrote them.
type spelling struct {
	sign             string // text in the template by which it is recognised
	open, and, close string
	call             func(name string, arguments *jsontext.Object) (string, error)
}

var spellings = [...]spelling{
	{"List of tools: ", "<|tool_call_start|>[", ", ", "]<|tool_call_end|>", asPython}, // LFM2
	{"respond only with <|tool_call|>", "<|tool_call|>[", ", ", "]", asObject},        // Granite 3
}

// write spells calls; not ok where one of them is no call with an object of arguments.
func (s *spelling) write(calls []Call) (text string, ok bool) {
	all := make([]string, len(calls))
	for i, c := range calls {
		arguments, _ := c.Arguments.(*jsontext.Object)
		if c.Name == "" || arguments == nil {
			return "", false
		}
		var err error
		if all[i], err = s.call(c.Name, arguments); err != nil {
			return "", false
		}
	}
	return s.open + strings.Join(all, s.and) + s.close, true
}

// asObject is {"name": "f", "arguments": {…}}.
func asObject(name string, arguments *jsontext.Object) (string, error) {
	o := &jsontext.Object{}
	o.Set("name", jsontext.String(name))
	o.Set("arguments", arguments)
	text, err := ToJSON(o)
	return string(text), err
}

// asPython is f(a="1", b=True).
func asPython(name string, arguments *jsontext.Object) (string, error) {
	var all []string
	for key, v := range arguments.All() {
		text, err := ToJSON(v)
		if err != nil {
			return "", err
		}
		switch v {
		case jsontext.Null{}:
			text = []byte("None")
		case jsontext.Bool(false):
			text = []byte("False")
		case jsontext.Bool(true):
			text = []byte("True")
		}
		all = append(all, key+"="+string(text))
	}
	return name + "(" + strings.Join(all, ", ") + ")", nil
}
