package anthropic

import (
	"fmt"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// tools hands the tools to the template, in the form that templates know, and says what the engine is to make of them.
func (f fields) tools(in *chat.Input) *answer.Tools {
	box, out := answer.Toolbox{}, &jinja.List{}
	f.choice(&box)
	for i, item := range f.list() {
		d, _ := item.(*jinja.Dict)
		out.Items = append(out.Items, f.tool(&box, fmt.Sprintf("tools[%d]", i), d))
	}
	if box.Shown() {
		in.Tools = out
	}
	return f.Callable(&box)
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

func (f fields) list() []jinja.Value {
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
	return list.Items
}

// tool puts a tool into the box, and makes it one as templates know it.
func (f fields) tool(box *answer.Toolbox, place string, d *jinja.Dict) *jinja.Dict {
	if kind := ask.Text(d, "type"); kind != "" && kind != "custom" && f.Fault == nil {
		f.Fault = wire.Invalid(place+".type", "unsupported_value",
			"%s.type is %q: the server has no tools of its own, want one with an input_schema", place, wire.Shown(kind))
	}
	f.Tool(box, d, place, "input_schema")
	parameters, ok := ask.Value(d, "input_schema").(*jinja.Dict)
	if !ok && f.Fault == nil {
		f.Fault = wire.Invalid(place+".input_schema", "invalid_value",
			`%s.input_schema: want an object such as {"type": "object"}`, place)
	}
	if f.Fault != nil {
		return nil
	}
	function := ask.Dict("name", jinja.Str(ask.Text(d, "name")))
	if description := ask.Text(d, "description"); description != "" {
		function.Set("description", jinja.Str(description))
	}
	function.Set("parameters", parameters)
	return ask.Dict("type", jinja.Str("function"), "function", function)
}
