package anthropic

import (
	"fmt"

	"github.com/sluice-ai/sluice/server/ask"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// tools hands the tools to the template, in the form that templates know. What the model then writes is text.
func (f fields) tools(in *chat.Input) {
	choice := "auto"
	f.Object("tool_choice", `{"type": "auto"} or {"type": "none"}`, func(o *wire.Fields) {
		switch o.Text("type", &choice); choice {
		case "auto", "none":
		case "any", "tool":
			o.Fault = wire.Invalid("type", "unsupported_value", `type is %q: a call cannot be forced here, want "auto" or "none"`, choice)
		default:
			raw, _ := o.Get("type")
			o.Wrong("type", raw, `"auto" or "none"`)
		}
	})
	raw, ok := f.Get("tools")
	if !ok {
		return
	}
	const want = `a list such as [{"name": "...", "description": "...", "input_schema": {"type": "object"}}]`
	v, err := jinja.FromJSON(raw, f.Budget)
	list, isList := v.(*jinja.List)
	if err != nil || !isList {
		f.Broken("tools", raw, err, want)
		return
	}
	out, names := &jinja.List{}, map[string]bool{}
	for i, item := range list.Items {
		tool, fault := toolOf(fmt.Sprintf("tools[%d]", i), item, names)
		if fault != nil {
			f.Fault = fault
			return
		}
		out.Items = append(out.Items, tool)
	}
	if choice == "auto" && len(out.Items) > 0 {
		in.Tools = out
	}
}

// toolOf is a tool as templates know it. No other one may have its name: names are those so far.
func toolOf(place string, v jinja.Value, names map[string]bool) (*jinja.Dict, *wire.Fault) {
	d, _ := v.(*jinja.Dict)
	if kind := ask.Text(d, "type"); kind != "" && kind != "custom" {
		return nil, wire.Invalid(place+".type", "unsupported_value",
			"%s.type is %q: the server has no tools of its own, want one with an input_schema", place, wire.Shown(kind))
	}
	name := ask.Text(d, "name")
	if name == "" {
		return nil, wire.Invalid(place+".name", "invalid_value", "%s.name: want a text", place)
	}
	if names[name] {
		return nil, wire.Invalid(place+".name", "invalid_value",
			"%s.name is %q, as another tool's is: want a name of its own", place, wire.Shown(name))
	}
	names[name] = true
	parameters, ok := ask.Value(d, "input_schema").(*jinja.Dict)
	if !ok {
		return nil, wire.Invalid(place+".input_schema", "invalid_value", `%s.input_schema: want an object such as {"type": "object"}`, place)
	}
	function := ask.Dict("name", jinja.Str(name))
	if description := ask.Text(d, "description"); description != "" {
		function.Set("description", jinja.Str(description))
	}
	function.Set("parameters", parameters)
	return ask.Dict("type", jinja.Str("function"), "function", function), nil
}
