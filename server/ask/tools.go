package ask

import (
	"fmt"
	"slices"

	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
	"github.com/sluice-ai/sluice/stages/chat/jinja"
)

// Tools reads tools, tool_choice and parallel_tool_calls, as OpenAI's chat completions have them. It hands the tools to
// the template, and says what the engine is to make of them; nil: nothing can be called.
func (f Fields) Tools(in *chat.Input) *answer.Tools {
	box := answer.Toolbox{}
	f.ToolChoice(&box, true)
	list := &jinja.List{}
	if raw, ok := f.Get("tools"); ok {
		var err error
		if list, err = chat.ParseTools(raw, f.Budget); err != nil {
			f.Refuse(err)
			return nil
		}
	}
	for i, item := range list.Items {
		d, _ := item.(*jinja.Dict)
		place := fmt.Sprintf("tools[%d]", i)
		if kind := Text(d, "type"); kind != "" && kind != "function" && f.Fault == nil {
			f.Fault = wire.Invalid(place+".type", "unsupported_value", `%s.type is %q: want "function"`, place, wire.Shown(kind))
		}
		function, _ := Value(d, "function").(*jinja.Dict)
		f.Tool(&box, function, place+".function", "parameters")
	}
	if box.Shown() {
		in.Tools = list
		list.Items = slices.DeleteFunc(list.Items, func(item jinja.Value) bool { return !box.Allows(named(item, true)) })
	}
	return f.Callable(&box)
}

// ToolChoice reads tool_choice and parallel_tool_calls, as OpenAI has them. In chat completions what it says of a type
// is in an object of its own.
func (f Fields) ToolChoice(box *answer.Toolbox, nested bool) {
	const want = `"auto", "none", "required" or {"type": "function", "function": {"name": "..."}}`
	parallel := true
	f.Flag("parallel_tool_calls", &parallel)
	box.Single = !parallel
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
		o.Text("type", &kind)
		read, part, shape := func(o *wire.Fields) { o.Text("name", &box.Name) }, "function", `an object such as {"name": "..."}`
		switch kind {
		case "function":
			box.Choice = answer.OneTool
		case "allowed_tools":
			read = func(o *wire.Fields) { allowed(o, box, nested) }
			part, shape = kind, `an object such as {"mode": "auto", "tools": [...]}`
		default:
			shown, _ := o.Get("type")
			o.Wrong("type", shown, `"function" or "allowed_tools"`)
			return
		}
		if !nested {
			read(o)
			return
		}
		if _, ok := o.Get(part); !ok && kind == "allowed_tools" {
			o.Wrong(part, "null", shape)
		}
		o.Object(part, shape, read)
	})
}

// allowed reads which tools may be called, and whether one must be.
func allowed(o *wire.Fields, box *answer.Toolbox, nested bool) {
	mode := ""
	switch o.Text("mode", &mode); mode {
	case "auto":
	case "required":
		box.Choice = answer.SomeTool
	default:
		shown, _ := o.Get("mode")
		o.Wrong("mode", shown, `"auto" or "required"`)
		return
	}
	raw, _ := o.Get("tools")
	list, err := chat.ParseTools(raw, o.Budget)
	if err != nil || len(list.Items) == 0 || len(list.Items) > answer.MaxTools {
		o.Broken("tools", raw, err, "a list of some of the tools, by their names")
		return
	}
	for _, item := range list.Items {
		box.Allowed = append(box.Allowed, named(item, nested))
	}
}

// named is a tool's name; "" if there is none.
func named(tool jinja.Value, nested bool) string {
	d, _ := tool.(*jinja.Dict)
	if nested {
		d, _ = Value(d, "function").(*jinja.Dict)
	}
	return Text(d, "name")
}

// Tool puts a tool into the box: an object with a name, strict, and a schema under the key given.
func (f Fields) Tool(box *answer.Toolbox, d *jinja.Dict, place, schema string) {
	if f.Fault != nil {
		return
	}
	strict, known := Value(d, "strict").(jinja.Bool)
	if v := Value(d, "strict"); !known && v != nil && v != (jinja.None{}) {
		f.Fault = wire.Invalid(place+".strict", "invalid_value", "%s.strict: want true or false", place)
		return
	}
	t := answer.Tool{Name: Text(d, "name"), Strict: bool(strict)}
	switch p := Value(d, schema).(type) {
	case nil, jinja.None:
	default:
		text, err := jinja.ToJSON(p)
		if err != nil {
			f.Fault = wire.Invalid(place+"."+schema, "invalid_value", "%s.%s: %v", place, schema, err)
			return
		}
		t.Parameters = string(text)
	}
	f.Fault = box.Add(t, place+".name", place+"."+schema)
}

// Callable is what the engine is to make of the tools of a box.
func (f Fields) Callable(box *answer.Toolbox) (t *answer.Tools) {
	if f.Fault == nil {
		t, f.Fault = box.Tools("tool_choice")
	}
	return t
}
