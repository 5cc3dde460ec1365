package anthropic

import (
	"fmt"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/decode"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// tools passes the tools to the template, in the form that templates read, and returns the engine's choice of tools.
// Tools that Anthropic's servers run, which have types such as web_search_20250305, are left out.
func (f fields) tools(in *chat.Input) *answer.Tools {
	box, out := answer.Toolbox{}, jsontext.List{}
	f.choice(&box)
	for i, item := range f.list() {
		o, _ := item.(*jsontext.Object)
		if kind := o.Text("type"); kind != "" && kind != "custom" {
			f.LeftOut(kind)
			continue
		}
		out = append(out, f.tool(&box, fmt.Sprintf("tools[%d]", i), o))
	}
	if box.Shown() {
		in.Tools = out
	}
	return f.Callable(&box)
}

// choice decodes tool_choice.
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

func (f fields) list() jsontext.List {
	raw, ok := f.Get("tools")
	if !ok {
		return nil
	}
	v, err := jsontext.Parse(raw, f.Budget)
	list, isList := v.(jsontext.List)
	if err != nil || !isList {
		f.Broken("tools", raw, err, `a list such as [{"name": "...", "description": "...", "input_schema": {"type": "object"}}]`)
		return nil
	}
	return list
}

// tool adds a tool to the box and returns it in the form that templates read.
func (f fields) tool(box *answer.Toolbox, place string, o *jsontext.Object) *jsontext.Object {
	f.Tool(box, o, place, "input_schema")
	parameters := o.Object("input_schema")
	if parameters == nil && f.Fault == nil {
		f.Fault = wire.Invalid(place+".input_schema", "invalid_value",
			`%s.input_schema: want an object such as {"type": "object"}`, place)
	}
	var description jsontext.Value
	if text := o.Text("description"); text != "" {
		description = jsontext.String(text)
	}
	return decode.Declared(jsontext.String(o.Text("name")), description, parameters)
}
