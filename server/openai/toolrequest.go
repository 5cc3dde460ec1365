package openai

import (
	"fmt"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// tools hands the tools to the template, and says what the engine is to make of them.
func (f fields) tools(in *chat.Input) *actors.Tools {
	box, list := answer.Toolbox{}, &jinja.List{}
	f.choice(&box)
	parallel := true
	f.Flag("parallel_tool_calls", &parallel)
	box.Single = !parallel
	if raw, ok := f.Get("tools"); ok {
		var err error
		if list, err = chat.ParseTools(raw, f.Budget); err != nil {
			f.Refuse(err)
			return nil
		}
	}
	for i, item := range list.Items {
		if f.Fault == nil {
			f.Fault = add(&box, fmt.Sprintf("tools[%d]", i), item)
		}
	}
	if f.Fault != nil {
		return nil
	}
	if box.Shown() {
		in.Tools = list
	}
	var t *actors.Tools
	t, f.Fault = box.Tools("tool_choice")
	return t
}

// choice reads tool_choice.
func (f fields) choice(box *answer.Toolbox) {
	const want = `"auto", "none", "required" or {"type": "function", "function": {"name": "..."}}`
	raw, ok := f.Get("tool_choice")
	if !ok {
		return
	}
	if text, err := f.Reader(raw).String(); err == nil {
		switch text {
		case "auto":
		case "none":
			box.Choice = answer.NoTool
		case "required":
			box.Choice = answer.SomeTool
		default:
			f.Wrong("tool_choice", raw, want)
		}
		return
	}
	f.Object("tool_choice", want, func(o *wire.Fields) {
		kind := ""
		if o.Text("type", &kind); kind != "function" {
			shown, _ := o.Get("type")
			o.Wrong("type", shown, `"function"`)
		}
		box.Choice = answer.OneTool
		o.Object("function", `an object such as {"name": "..."}`, func(o *wire.Fields) { o.Text("name", &box.Name) })
	})
}

// add puts a tool into the box.
func add(box *answer.Toolbox, place string, v jinja.Value) *wire.Fault {
	d, _ := v.(*jinja.Dict)
	if kind, ok := member(d, "type").(jinja.Str); ok && kind != "function" {
		return wire.Invalid(place+".type", "unsupported_value", `%s.type is %q: want "function"`, place, wire.Shown(string(kind)))
	}
	function, _ := member(d, "function").(*jinja.Dict)
	place += ".function"
	name, _ := member(function, "name").(jinja.Str)
	strict, _ := member(function, "strict").(jinja.Bool)
	t := answer.Tool{Name: string(name), Strict: bool(strict)}
	switch p := member(function, "parameters").(type) {
	case nil, jinja.None:
	default:
		text, err := jinja.ToJSON(p)
		if err != nil {
			return wire.Invalid(place+".parameters", "invalid_value", "%s.parameters: %v", place, err)
		}
		t.Parameters = string(text)
	}
	return box.Add(t, place+".name", place+".parameters")
}

// member is a member of an object, nil where there is none.
func member(d *jinja.Dict, key string) jinja.Value {
	if d == nil {
		return nil
	}
	v, _ := d.Get(key)
	return v
}
