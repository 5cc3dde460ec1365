package gotemplate

import (
	"fmt"
	"strings"
	"text/template/parse"
)

// Jinja translates a template of Ollama's to Jinja.
func Jinja(source string) (string, error) {
	trees := map[string]*parse.Tree{}
	t := parse.New("template")
	t.Mode = parse.SkipFuncCheck
	if _, err := t.Parse(source, "", "", trees); err != nil {
		return "", fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "template: "))
	}
	for name := range trees {
		if name != "template" {
			return "", fmt.Errorf("defines the template %q: want one without others in it", name)
		}
	}
	if t.Root == nil || parse.IsEmptyTree(t.Root) {
		return "", fmt.Errorf("is empty")
	}
	w := &writer{assigned: assigned(t.Root)}
	if mentions(t.Root, "Messages") {
		w.list(t.Root, value{})
		return shown + together + w.text(), w.err
	}
	// Older templates are of one turn: what the user says, and what the model answers.
	w.list(t.Root, value{})
	whole := w.text()
	if w.err != nil {
		return "", w.err
	}
	open := &writer{assigned: w.assigned}
	cut, _ := upToAnswer(t.Root)
	open.list(cut, value{})
	return shown + fmt.Sprintf(turns, whole, open.text()), open.err
}

// shown is a macro that prints a value as Go's templates do: nothing if it is absent, JSON if it is no text.
const shown = `{%- macro shown(v) -%}{%- if v is undefined or v is none -%}{%- elif v is mapping -%}` +
	`{{ v | tojson(separators=(',', ':')) }}{%- elif v is string or v is number -%}{{ v }}{%- else -%}` +
	`{{ v | tojson(separators=(',', ':')) }}{%- endif -%}{%- endmacro -%}`

// together is Jinja that joins all system messages into one.
const together = `{%- set said = namespace(system='') -%}{%- for m in messages -%}{%- if m.role == 'system' -%}` +
	`{%- set said.system = said.system ~ ('\n\n' if said.system else '') ~ m.content -%}{%- endif -%}{%- endfor -%}` +
	`{%- set System = said.system -%}{%- set Prompt = '' -%}{%- set Response = '' -%}`

// turns renders a conversation turn by turn, the last one up to the answer.
const turns = `{%%- macro turn(System, Prompt, Response) -%%}%s{%%- endmacro -%%}` +
	`{%%- macro open(System, Prompt) -%%}{%%- set Response = '' -%%}%s{%%- endmacro -%%}` +
	`{%%- set now = namespace(system='', prompt='', response='') -%%}{%%- for m in messages -%%}` +
	`{%%- if (m.role == 'system' and (now.prompt or now.response)) or (m.role == 'user' and now.response) -%%}` +
	`{{ turn(now.system, now.prompt, now.response) }}` +
	`{%%- set now.system = '' -%%}{%%- set now.prompt = '' -%%}{%%- set now.response = '' -%%}{%%- endif -%%}` +
	`{%%- if m.role == 'system' -%%}{%%- set now.system = m.content -%%}{%%- elif m.role == 'user' -%%}` +
	`{%%- set now.prompt = m.content -%%}{%%- elif m.role == 'assistant' -%%}{%%- set now.response = m.content -%%}` +
	`{%%- endif -%%}{%%- endfor -%%}` +
	`{%%- if now.response -%%}{{ turn(now.system, now.prompt, now.response) }}` +
	`{%%- if add_generation_prompt -%%}{{ open('', '') }}{%%- endif -%%}` +
	`{%%- elif add_generation_prompt -%%}{{ open(now.system, now.prompt) }}` +
	`{%%- elif now.system or now.prompt -%%}{{ turn(now.system, now.prompt, '') }}{%%- endif -%%}`

// mentions says whether a part of a template names a field.
func mentions(n parse.Node, field string) (found bool) {
	walk(n, func(n parse.Node) {
		switch x := n.(type) {
		case *parse.FieldNode:
			found = found || x.Ident[0] == field
		case *parse.VariableNode:
			found = found || len(x.Ident) > 1 && x.Ident[0] == "$" && x.Ident[1] == field
		}
	})
	return found
}

// assigned are the variables that get another value somewhere.
func assigned(n parse.Node) map[string]bool {
	names := map[string]bool{}
	walk(n, func(n parse.Node) {
		if p, ok := n.(*parse.PipeNode); ok && p.IsAssign {
			names[p.Decl[0].Ident[0]] = true
		}
	})
	return names
}

// walk visits a part of a template and all in it.
func walk(n parse.Node, visit func(parse.Node)) {
	visit(n)
	branch := func(b *parse.BranchNode) {
		walk(b.Pipe, visit)
		walk(b.List, visit)
		if b.ElseList != nil {
			walk(b.ElseList, visit)
		}
	}
	switch x := n.(type) {
	case *parse.ListNode:
		for _, inner := range x.Nodes {
			walk(inner, visit)
		}
	case *parse.ActionNode:
		walk(x.Pipe, visit)
	case *parse.PipeNode:
		for _, c := range x.Cmds {
			for _, arg := range c.Args {
				walk(arg, visit)
			}
		}
	case *parse.ChainNode:
		walk(x.Node, visit)
	case *parse.IfNode:
		branch(&x.BranchNode)
	case *parse.RangeNode:
		branch(&x.BranchNode)
	case *parse.WithNode:
		branch(&x.BranchNode)
	}
}

// upToAnswer is the part of a list before the place where it prints the answer; ended says whether there is such a
// place. Conditions on the answer itself are dropped: what they hold stays.
func upToAnswer(list *parse.ListNode) (cut *parse.ListNode, ended bool) {
	cut = &parse.ListNode{NodeType: parse.NodeList, Pos: list.Pos}
	for _, n := range list.Nodes {
		switch x := n.(type) {
		case *parse.ActionNode:
			if mentions(x, "Response") {
				return cut, true
			}
		case *parse.IfNode:
			if mentions(x.Pipe, "Response") || mentions(x.List, "Response") {
				inner, _ := upToAnswer(x.List)
				if !mentions(x.Pipe, "Response") {
					c := *x
					c.List = inner
					cut.Nodes = append(cut.Nodes, &c)
				} else {
					cut.Nodes = append(cut.Nodes, inner.Nodes...)
				}
				return cut, true
			}
		}
		cut.Nodes = append(cut.Nodes, n)
	}
	return cut, false
}
