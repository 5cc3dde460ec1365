package anthropic

import (
	"fmt"

	"github.com/sluice-ai/sluice/actors"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// tools hands the tools to the template, in the form that templates know, and says what the engine is to make of them.
func (f fields) tools(in *chat.Input) *actors.Tools {
	box := answer.Toolbox{}
	f.choice(&box)
	list := f.list()
	if list == nil {
		list = &jinja.List{}
	}
	out := &jinja.List{}
	for i, item := range list.Items {
		tool, fault := toolOf(&box, fmt.Sprintf("tools[%d]", i), item)
		if f.Fault == nil {
			f.Fault = fault
		}
		out.Items = append(out.Items, tool)
	}
	if f.Fault != nil {
		return nil
	}
	if box.Shown() {
		in.Tools = out
	}
	var t *actors.Tools
	t, f.Fault = box.Tools("tool_choice")
	return t
}

// choice reads tool_choice.
func (f fields) choice(box *answer.Toolbox) {
	const want = `{"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "..."} or {"type": "none"}`
	f.Object("tool_choice", want, func(o *wire.Fields) {
		kind := "auto"
		o.Text("type", &kind)
		o.Text("name", &box.Name)
		o.Flag("disable_parallel_tool_use", &box.Single)
		switch kind {
		case "auto":
		case "none":
			box.Choice = answer.NoTool
		case "any":
			box.Choice = answer.SomeTool
		case "tool":
			box.Choice = answer.OneTool
		default:
			raw, _ := o.Get("type")
			o.Wrong("type", raw, `"auto", "any", "tool" or "none"`)
		}
	})
}

func (f fields) list() *jinja.List {
	raw, ok := f.Get("tools")
	if !ok {
		return nil
	}
	v, err := jinja.FromJSON(raw, f.Budget)
	list, isList := v.(*jinja.List)
	if err != nil || !isList {
		f.Broken("tools", raw, err, `a list such as [{"name": "...", "description": "...", "input_schema": {"type": "object"}}]`)
		return nil
	}
	return list
}

// toolOf puts a tool into the box, and makes it one as templates know it.
func toolOf(box *answer.Toolbox, place string, v jinja.Value) (*jinja.Dict, *wire.Fault) {
	d, _ := v.(*jinja.Dict)
	if kind := ask.Text(d, "type"); kind != "" && kind != "custom" {
		return nil, wire.Invalid(place+".type", "unsupported_value",
			"%s.type is %q: the server has no tools of its own, want one with an input_schema", place, wire.Shown(kind))
	}
	strict, _ := ask.Value(d, "strict").(jinja.Bool)
	t := answer.Tool{Name: ask.Text(d, "name"), Strict: bool(strict)}
	parameters, ok := ask.Value(d, "input_schema").(*jinja.Dict)
	if ok {
		schema, err := jinja.ToJSON(parameters)
		if err != nil {
			return nil, wire.Invalid(place+".input_schema", "invalid_value", "%s.input_schema: %v", place, err)
		}
		t.Parameters = string(schema)
	}
	if fault := box.Add(t, place+".name", place+".input_schema"); fault != nil {
		return nil, fault
	}
	if !ok {
		return nil, wire.Invalid(place+".input_schema", "invalid_value", `%s.input_schema: want an object such as {"type": "object"}`, place)
	}
	function := ask.Dict("name", jinja.Str(t.Name))
	if description := ask.Text(d, "description"); description != "" {
		function.Set("description", jinja.Str(description))
	}
	function.Set("parameters", parameters)
	return ask.Dict("type", jinja.Str("function"), "function", function), nil
}
