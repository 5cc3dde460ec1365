package decode

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-ai/sluice/internal/jsontext"
	"github.com/sluice-ai/sluice/server/answer"
	"github.com/sluice-ai/sluice/server/wire"
	"github.com/sluice-ai/sluice/stages/chat"
)

// Tools decodes tools, tool_choice and parallel_tool_calls of OpenAI's chat completions. It passes the tools to the
// template and returns the engine's choice of tools; nil if nothing can be called. Tools that are no functions are
// left out: clients always send those that OpenAI's servers run.
func (f Fields) Tools(in *chat.Input) *answer.Tools {
	box := answer.Toolbox{}
	f.ToolChoice(&box, true)
	var functions jsontext.List
	f.EachTool(func(place, _ string, o *jsontext.Object) {
		if !isFunction(o) {
			f.LeftOut(o.Text("type"))
			return
		}
		f.Tool(&box, o.Object("function"), place+".function", "parameters")
		functions = append(functions, o)
	})
	if box.Shown() {
		in.Tools = slices.DeleteFunc(functions, func(item jsontext.Value) bool { return !box.Allows(named(item, true)) })
	}
	return f.Callable(&box)
}

// EachTool calls do with the tools of a request and those in their namespaces, in order, each with its place in the
// request and its namespace; empty: it is in none.
func (f Fields) EachTool(do func(place, namespace string, o *jsontext.Object)) {
	for i, item := range f.ToolList() {
		o, _ := item.(*jsontext.Object)
		place := fmt.Sprintf("tools[%d]", i)
		if o.Text("type") != "namespace" {
			do(place, "", o)
			continue
		}
		inside, _ := o.Get("tools").(jsontext.List)
		for j, item := range inside {
			one, _ := item.(*jsontext.Object)
			do(fmt.Sprintf("%s.tools[%d]", place, j), o.Text("name"), one)
		}
	}
}

// mostKind bounds what the log quotes of a tool's type.
const mostKind = 60

// LeftOut notes that a tool of a provider's own is left out, by its type.
func (f Fields) LeftOut(kind string) {
	if len(kind) > mostKind {
		kind = strings.ToValidUTF8(kind[:mostKind], "")
	}
	f.Note(fmt.Sprintf("a tool of the type %q is left out: it is no function, and nothing here runs it", kind))
}

// isFunction reports whether a tool of chat completions is a function.
func isFunction(o *jsontext.Object) bool { return o.Text("type") == "" || o.Text("type") == "function" }

// ToolList decodes the objects of tools.
func (f Fields) ToolList() jsontext.List {
	raw, ok := f.Get("tools")
	if !ok {
		return nil
	}
	list, err := chat.ParseTools(raw, f.Budget)
	if err != nil {
		f.Refuse(err)
	}
	return list
}

// Declared returns a tool in the form that templates read, without the members that are absent.
func Declared(name, description, parameters jsontext.Value) *jsontext.Object {
	function, tool := &jsontext.Object{}, &jsontext.Object{}
	set := func(key string, v jsontext.Value) {
		if jsontext.Given(v) {
			function.Set(key, v)
		}
	}
	set("name", name)
	set("description", description)
	set("parameters", parameters)
	tool.Set("type", jsontext.String("function"))
	tool.Set("function", function)
	return tool
}

// ToolChoice decodes OpenAI's tool_choice and parallel_tool_calls. If nested is set, as in chat completions, a
// choice's members are in an object of its own.
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

// allowed decodes the type allowed_tools: which tools may be called, and whether one must be.
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
	if err != nil || len(list) == 0 || len(list) > answer.MaxTools {
		o.Broken("tools", raw, err, "a list of some of the tools, by their names")
		return
	}
	for _, item := range list {
		box.Allowed = append(box.Allowed, named(item, nested))
	}
}

// named returns a tool's name; "" if it has none.
func named(tool jsontext.Value, nested bool) string {
	o, _ := tool.(*jsontext.Object)
	if nested {
		o = o.Object("function")
	}
	return o.Text("name")
}

// Tool adds a tool to the box: an object with a name, strict, and a schema under the given key.
func (f Fields) Tool(box *answer.Toolbox, o *jsontext.Object, place, schema string) {
	if f.Fault != nil {
		return
	}
	strict, known := o.Get("strict").(jsontext.Bool)
	if !known && jsontext.Given(o.Get("strict")) {
		f.Fault = wire.Invalid(place+".strict", "invalid_value", "%s.strict: want true or false", place)
		return
	}
	t := answer.Tool{Name: o.Text("name"), Strict: bool(strict)}
	if p := o.Get(schema); jsontext.Given(p) {
		text, err := chat.ToJSON(p)
		if err != nil {
			f.Fault = wire.Invalid(place+"."+schema, "invalid_value", "%s.%s: %v", place, schema, err)
			return
		}
		t.Parameters = string(text)
	}
	f.Fault = box.Add(t, place+".name", place+"."+schema)
}

// Callable returns the engine's choice of the tools in a box; nil if nothing can be called.
func (f Fields) Callable(box *answer.Toolbox) (t *answer.Tools) {
	if f.Fault == nil {
		t, f.Fault = box.Tools("tool_choice")
	}
	return t
}
