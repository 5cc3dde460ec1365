package chat

import (
	"strings"

	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// spelling is how a model writes calls whose template knows tools and their results, but no calls: they are put into
// the text of the message, where the model wrote them.
type spelling struct {
	sign             string // in the template
	open, and, close string
	call             func(name string, arguments *jinja.Dict) (string, error)
}

var spellings = [...]spelling{
	{"List of tools: ", "<|tool_call_start|>[", ", ", "]<|tool_call_end|>", asPython}, // LFM2
	{"respond only with <|tool_call|>", "<|tool_call|>[", ", ", "]", asObject},        // Granite 3
}

// write spells calls; not ok where one of them is no call with an object of arguments.
func (s *spelling) write(calls *jinja.List) (text string, ok bool) {
	var all []string
	for _, item := range calls.Items {
		call, _ := item.(*jinja.Dict)
		function := dictIn(call, "function")
		name, _ := valueIn(function, "name").(jinja.Str)
		arguments := dictIn(function, "arguments")
		if name == "" || arguments == nil {
			return "", false
		}
		one, err := s.call(string(name), arguments)
		if err != nil {
			return "", false
		}
		all = append(all, one)
	}
	return s.open + strings.Join(all, s.and) + s.close, len(all) > 0
}

// asObject is {"name": "f", "arguments": {…}}.
func asObject(name string, arguments *jinja.Dict) (string, error) {
	d := &jinja.Dict{}
	d.Set("name", jinja.Str(name))
	d.Set("arguments", arguments)
	text, err := jinja.ToJSON(d)
	return string(text), err
}

// asPython is f(a="1", b=True).
func asPython(name string, arguments *jinja.Dict) (string, error) {
	var all []string
	for key, v := range arguments.All() {
		text, err := jinja.ToJSON(v)
		if err != nil {
			return "", err
		}
		switch v := v.(type) {
		case jinja.None:
			text = []byte("None")
		case jinja.Bool:
			text = []byte("False")
			if v {
				text = []byte("True")
			}
		}
		all = append(all, key+"="+string(text))
	}
	return name + "(" + strings.Join(all, ", ") + ")", nil
}
