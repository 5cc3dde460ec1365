package gotemplate

import (
	"strconv"
	"strings"
	"text/template/parse"
)

// top maps the names that a template may use at the top to variables in Jinja.
func top() map[string]string {
	return map[string]string{"System": "System", "Prompt": "Prompt", "Response": "Response", "Messages": "messages",
		"Tools": "tools", "Suffix": "''", "Think": "(enable_thinking | default(false))",
		"ThinkLevel": "(reasoning_effort | default(''))", "IsThinkSet": "(enable_thinking is defined)"}
}

// below maps the fields of messages, calls and tools to their names in Jinja.
func below() map[string]string {
	return map[string]string{"Role": "role", "Content": "content", "Thinking": "reasoning_content", "ToolCalls": "tool_calls",
		"ToolName": "name", "ToolCallID": "tool_call_id", "Images": "images", "Function": "function", "ID": "id", "Name": "name",
		"Arguments": "arguments", "Description": "description", "Parameters": "parameters", "Type": "type", "Required": "required",
		"Properties": "properties", "Enum": "enum", "Items": "items"}
}

// objects says whether a field is an object, whose keys a loop goes through.
func objects(field string) bool { return field == "Properties" || field == "Arguments" }

// fields follows names from a value.
func (w *writer) fields(n parse.Node, from value, names []string) value {
	for _, name := range names {
		if from.text == "" {
			text, ok := top()[name]
			if !ok {
				w.fail(n, ".%s is not known", name)
			}
			from = value{text: text}
			continue
		}
		key, ok := below()[name]
		if !ok {
			w.fail(n, ".%s is not known", name)
		}
		from = value{text: from.text + "['" + key + "']", keys: objects(name)}
	}
	return from
}

// pipe writes a pipeline: each command's value is the last argument of the next one.
func (w *writer) pipe(p *parse.PipeNode, dot value) (v value) {
	for i, c := range p.Cmds {
		var more []value
		if i > 0 {
			more = []value{v}
		}
		v = w.command(c, dot, more)
	}
	if v.text == "" {
		w.fail(p, "the dot at the top has no counterpart in Jinja")
	}
	return v
}

func (w *writer) command(c *parse.CommandNode, dot value, more []value) value {
	id, isCall := c.Args[0].(*parse.IdentifierNode)
	if !isCall {
		if len(c.Args)+len(more) > 1 {
			w.fail(c, "is no function")
		}
		return w.argument(c.Args[0], dot)
	}
	var args []value
	for _, arg := range c.Args[1:] {
		args = append(args, w.argument(arg, dot))
	}
	return value{text: w.call(c, id.Ident, append(args, more...))}
}

func (w *writer) argument(n parse.Node, dot value) value {
	switch x := n.(type) {
	case *parse.DotNode:
		if dot.text == "" {
			w.fail(n, "the dot at the top has no counterpart in Jinja")
		}
		return dot
	case *parse.FieldNode:
		return w.fields(n, dot, x.Ident)
	case *parse.VariableNode:
		if x.Ident[0] == "$" {
			return w.fields(n, value{}, x.Ident[1:])
		}
		return w.fields(n, value{text: w.lookup(n, x.Ident[0])}, x.Ident[1:])
	case *parse.ChainNode:
		return w.fields(n, w.argument(x.Node, dot), x.Field)
	case *parse.PipeNode:
		v := w.pipe(x, dot)
		return value{text: "(" + v.text + ")", keys: v.keys}
	case *parse.StringNode:
		return value{text: literal(x.Text)}
	case *parse.NumberNode:
		if !x.IsInt {
			w.fail(n, "is no integer")
		}
		return value{text: strconv.FormatInt(x.Int64, 10)}
	case *parse.BoolNode:
		return value{text: strings.ToLower(x.String())}
	case *parse.NilNode:
		return value{text: "none"}
	case *parse.IdentifierNode:
		return value{text: w.call(n, x.Ident, nil)}
	}
	w.fail(n, "has no counterpart in Jinja")
	return value{text: "none"}
}

// call writes the call of a function.
func (w *writer) call(n parse.Node, name string, args []value) string {
	var texts []string
	for _, arg := range args {
		if arg.text == "" {
			w.fail(n, "the dot at the top has no counterpart in Jinja")
		}
		texts = append(texts, arg.text)
	}
	between := map[string]string{"ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
	switch op := between[name]; {
	case op != "" && len(texts) == 2:
		return "(" + texts[0] + " " + op + " " + texts[1] + ")"
	case (name == "and" || name == "or") && len(texts) > 0:
		return "(" + strings.Join(texts, " "+name+" ") + ")"
	case name == "not" && len(texts) == 1:
		return "(not " + texts[0] + ")"
	case name == "eq" && len(texts) > 1:
		return "(" + texts[0] + " in [" + strings.Join(texts[1:], ", ") + "])"
	case name == "len" && len(texts) == 1:
		return "((" + texts[0] + " or []) | length)"
	case name == "index" && len(texts) > 1:
		return texts[0] + "[" + strings.Join(texts[1:], "][") + "]"
	case name == "slice" && len(texts) == 2:
		return texts[0] + "[" + texts[1] + ":]"
	case name == "slice" && len(texts) == 3:
		return texts[0] + "[" + texts[1] + ":" + texts[2] + "]"
	case name == "json" && len(texts) == 1:
		return "(" + texts[0] + " | tojson(separators=(',', ':')))"
	case name == "currentDate" && len(texts) == 0:
		return "strftime_now('%Y-%m-%d')"
	case name == "print" && len(texts) == 1:
		return "shown(" + texts[0] + ")"
	}
	w.fail(n, "the function %s with %d arguments has no counterpart in Jinja", name, len(texts))
	return "none"
}
