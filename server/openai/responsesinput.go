package openai

import (
	"fmt"
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// input decodes instructions, the stored conversation, and input into the messages that templates read. It records
// the items of all.
func (f fields) input(m *answer.Model, o *responseRequest) []chat.Message {
	const want = `a string, or a list such as [{"role": "user", "content": "..."}]`
	t, instructions, before := decode.Turns{}, "", o.items
	if f.Text("instructions", &instructions); instructions != "" {
		t.Begin("system")
		t.Add(chat.Part{Text: instructions})
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

// items decodes the items of a list; n counts them.
func (f fields) items(t *decode.Turns, place, list string, n *int) error {
	r, i := f.Reader(list), 0
	return r.Array(func() error {
		if *n == answer.MaxMessages && f.Fault == nil {
			f.Fault = wire.Invalid(place, "invalid_value", "%s has more than %d items: leave the oldest out", place, *n)
		}
		if f.Fault != nil {
			return errItem
		}
		v, err := r.Value()
		if err == nil {
			o, _ := v.(*jsontext.Object)
			f.Fault = f.item(t, fmt.Sprintf("%s[%d]", place, i), o)
		}
		i++
		*n++
		return err
	})
}

// errItem ends the decoding of an item of a wrong type.
var errItem = fmt.Errorf("no item")

// item decodes the next item of a conversation: a message, a thought, a call or its result.
func (f fields) item(t *decode.Turns, place string, o *jsontext.Object) *wire.Fault {
	kind := o.Text("type")
	switch {
	case o == nil:
		return wire.Invalid(place, "invalid_value", `%s: want an object such as {"role": "user", "content": "..."}`, place)
	case kind == "" || kind == "message":
		role := o.Text("role")
		switch role {
		case "developer":
			role = "system"
		case "system", "user", "assistant":
		default:
			return wire.Invalid(place+".role", "invalid_value",
				`%s.role is %q: want "user", "assistant", "system" or "developer"`, place, wire.Shown(role))
		}
		t.Begin(role)
		return spoken(t, place+".content", o.Get("content"), chat.Text)
	case kind == "reasoning":
		t.Begin("assistant")
		thought := o.Get("content")
		if list, ok := thought.(jsontext.List); !ok || len(list) == 0 {
			thought = o.Get("summary")
		}
		return spoken(t, place+".content", thought, chat.Thought)
	case kind == "function_call":
		id, name := o.Text("call_id"), o.Text("name")
		if id == "" || name == "" {
			return wire.Invalid(place, "invalid_value", "%s: a function_call needs a call_id and a name", place)
		}
		t.Begin("assistant")
		t.Call(chat.Call{ID: id, Name: name, Arguments: jsontext.String(o.Text("arguments"))})
		return nil
	case kind == "function_call_output":
		return result(t, place, o)
	}
	return wire.Invalid(place+".type", "unsupported_value", "%s.type is %q: want messages, reasoning, function_call and "+
		"function_call_output, all of them whole", place, wire.Shown(kind))
}

func result(t *decode.Turns, place string, o *jsontext.Object) *wire.Fault {
	id := o.Text("call_id")
	if !t.Called(id) {
		return wire.Invalid(place+".call_id", "invalid_value",
			"%s.call_id is %q: no function_call before it has that id", place, wire.Shown(id))
	}
	var out decode.Turns
	fault := spoken(&out, place+".output", o.Get("output"), chat.Text)
	t.Result(id, out.Parts())
	return fault
}

// spoken adds a content, which is a string or a list of parts. Its texts become parts of the kind as.
func spoken(t *decode.Turns, place string, v jsontext.Value, as chat.PartKind) *wire.Fault {
	switch content := v.(type) {
	case jsontext.String:
		t.Add(chat.Part{Kind: as, Text: string(content)})
		return nil
	case jsontext.List:
		for i, entry := range content {
			o, _ := entry.(*jsontext.Object)
			p := chat.Part{Kind: as, Type: o.Text("type")}
			switch p.Type {
			case "input_text", "output_text", "text", "reasoning_text", "summary_text":
				p.Text = o.Text("text")
			case "refusal":
				p.Text = o.Text("refusal")
			default:
				p.Kind, p.At, p.Source = chat.Medium(p.Type), fmt.Sprintf("%s[%d]", place, i), chat.SourceOf(o)
			}
			t.Add(p)
		}
		return nil
	}
	return wire.Invalid(place, "invalid_value", "%s is missing: want a string or a list of text parts", place)
}
