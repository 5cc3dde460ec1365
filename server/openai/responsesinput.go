package openai

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// input reads instructions, what came before, and input: the messages that templates know. It notes the items of all.
func (f fields) input(m *answer.Model, o *responseRequest) []chat.Message {
	const want = `a string, or a list such as [{"role": "user", "content": "..."}]`
	t, instructions, before := ask.Turns{}, "", o.items
	if f.Text("instructions", &instructions); instructions != "" {
		t.Begin("system")
		t.Say(instructions)
	}
	raw, ok := f.Get("input")
	if !ok {
		f.Missing("input", want)
		return nil
	}
	own, n := raw, 0
	if f.Reader(raw).Next() == '"' {
		text := ""
		f.Text("input", &text)
		own = `[{"role":"user","content":` + raw + `}]`
	}
	if before != "" {
		if err := f.items(&t, "previous_response_id", "["+before+"]", &n); err != nil {
			f.Broken("previous_response_id", o.previous, err, "a shorter conversation")
		}
	}
	past := n
	err := f.items(&t, "input", own, &n)
	if err == nil && n == past {
		err = errItem
	}
	if err != nil {
		f.Broken("input", raw, err, want)
	}
	messages := t.Messages()
	if len(messages) == 0 && f.Fault == nil {
		f.Fault = wire.Invalid("input", "invalid_value", "input says nothing: want "+want)
	}
	if f.Fault != nil {
		return nil
	}
	own = strings.TrimSpace(own)
	o.items = own[1 : len(own)-1]
	if before != "" {
		o.items = before + "," + o.items
	}
	return f.Normal(messages, m)
}

// items takes those of a list; n counts them.
func (f fields) items(t *ask.Turns, place, list string, n *int) error {
	r, i := f.Reader(list), 0
	return r.Array(func() error {
		if *n == answer.MaxMessages && f.Fault == nil {
			f.Fault = wire.Invalid(place, "invalid_value", "%s has more than %d items: leave the oldest out", place, *n)
		}
		if f.Fault != nil {
			return errItem
		}
		v, err := jinja.ReadJSON(r)
		if err == nil {
			d, _ := v.(*jinja.Dict)
			f.Fault = f.item(t, fmt.Sprintf("%s[%d]", place, i), d)
		}
		i++
		*n++
		return err
	})
}

// errItem ends the reading of items that are none.
var errItem = fmt.Errorf("no item")

// item takes the next one of a conversation: a message, a thought, a call or its result.
func (f fields) item(t *ask.Turns, place string, d *jinja.Dict) *wire.Fault {
	kind := ask.Text(d, "type")
	switch {
	case d == nil:
		return wire.Invalid(place, "invalid_value", `%s: want an object such as {"role": "user", "content": "..."}`, place)
	case kind == "" || kind == "message":
		role := ask.Text(d, "role")
		switch role {
		case "developer":
			role = "system"
		case "system", "user", "assistant":
		default:
			return wire.Invalid(place+".role", "invalid_value",
				`%s.role is %q: want "user", "assistant", "system" or "developer"`, place, wire.Shown(role))
		}
		t.Begin(role)
		return spoken(place+".content", ask.Value(d, "content"), t.Say)
	case kind == "reasoning":
		t.Begin("assistant")
		thought := ask.Value(d, "content")
		if list, ok := thought.(*jinja.List); !ok || len(list.Items) == 0 {
			thought = ask.Value(d, "summary")
		}
		return spoken(place+".content", thought, t.Think)
	case kind == "function_call":
		id, name := ask.Text(d, "call_id"), ask.Text(d, "name")
		if id == "" || name == "" {
			return wire.Invalid(place, "invalid_value", "%s: a function_call needs a call_id and a name", place)
		}
		t.Begin("assistant")
		t.Call(id, name, jinja.Str(ask.Text(d, "arguments"))) // an object, once the conversation is normal
		return nil
	case kind == "function_call_output":
		return result(t, place, d)
	}
	return wire.Invalid(place+".type", "unsupported_value", "%s.type is %q: want messages, reasoning, function_call and "+
		"function_call_output, all of them whole", place, wire.Shown(kind))
}

func result(t *ask.Turns, place string, d *jinja.Dict) *wire.Fault {
	id := ask.Text(d, "call_id")
	if _, called := t.Called(id); !called {
		return wire.Invalid(place+".call_id", "invalid_value",
			"%s.call_id is %q: no function_call before it has that id", place, wire.Shown(id))
	}
	var out ask.Turns
	fault := spoken(place+".output", ask.Value(d, "output"), out.Say)
	t.Result(id, out.Text())
	return fault
}

// spoken hands out the texts of a content: a string, or parts.
func spoken(place string, v jinja.Value, say func(string)) *wire.Fault {
	switch content := v.(type) {
	case jinja.Str:
		say(string(content))
		return nil
	case *jinja.List:
		for i, item := range content.Items {
			d, _ := item.(*jinja.Dict)
			switch kind := ask.Text(d, "type"); kind {
			case "input_text", "output_text", "text", "reasoning_text", "summary_text":
				say(ask.Text(d, "text"))
			case "refusal":
				say(ask.Text(d, "refusal"))
			default:
				return wire.Invalid(place, "unsupported_value",
					"%s[%d].type is %q: this model reads text only, leave other parts out", place, i, wire.Shown(kind))
			}
		}
		return nil
	}
	return wire.Invalid(place, "invalid_value", "%s is missing: want a string or a list of text parts", place)
}
