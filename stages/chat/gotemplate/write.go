package gotemplate

import (
	"fmt"
	"strings"
	"text/template/parse"
)

// writer writes a template as Jinja.
type writer struct {
	b        strings.Builder
	err      error
	assigned map[string]bool // variables that get another value: these are kept in namespaces, which loops do not hide
	scopes   []map[string]string
	made     int // number of names made so far
}

func (w *writer) text() string { return w.b.String() }

// value is an expression of Jinja. The zero value is the dot at the top.
type value struct {
	text string
	keys bool // it is an object, whose keys a loop goes through in their order
}

func (w *writer) fail(n parse.Node, format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("%.60q: %s", n.String(), fmt.Sprintf(format, args...))
	}
}

// name makes a name that was not used before.
func (w *writer) name() string {
	w.made++
	return fmt.Sprintf("v_%d", w.made)
}

// declare gives a variable a name of Jinja's.
func (w *writer) declare(variable string) string {
	name := w.name()
	w.scopes[len(w.scopes)-1][variable] = name
	return name
}

// lookup is a variable's value.
func (w *writer) lookup(n parse.Node, variable string) string {
	for i := range w.scopes {
		if name, ok := w.scopes[len(w.scopes)-1-i][variable]; ok {
			if w.assigned[variable] {
				return name + ".v"
			}
			return name
		}
	}
	w.fail(n, "the variable %s is not declared", variable)
	return "none"
}

func (w *writer) out(format string, args ...any) { fmt.Fprintf(&w.b, format, args...) }

// list writes the parts of a template, with a dot.
func (w *writer) list(l *parse.ListNode, dot value) {
	w.scopes = append(w.scopes, map[string]string{})
	for _, n := range l.Nodes {
		w.node(n, dot)
	}
	w.scopes = w.scopes[:len(w.scopes)-1]
}

func (w *writer) node(n parse.Node, dot value) {
	switch x := n.(type) {
	case *parse.TextNode: // as an expression: Jinja would take line breaks after tags away
		if len(x.Text) > 0 {
			w.out("{{ %s }}", literal(string(x.Text)))
		}
	case *parse.ActionNode:
		w.action(x, dot)
	case *parse.IfNode:
		w.out("{%%- if %s -%%}", w.pipe(x.Pipe, dot).text)
		w.branch(&x.BranchNode, dot, dot)
		w.out("{%%- endif -%%}")
	case *parse.WithNode:
		name := w.name()
		w.out("{%%- set %s = %s -%%}{%%- if %s -%%}", name, w.pipe(x.Pipe, dot).text, name)
		w.branch(&x.BranchNode, value{text: name}, dot)
		w.out("{%%- endif -%%}")
	case *parse.RangeNode:
		w.loop(x, dot)
	case *parse.BreakNode:
		w.out("{%%- break -%%}")
	case *parse.ContinueNode:
		w.out("{%%- continue -%%}")
	case *parse.CommentNode:
	default:
		w.fail(n, "has no counterpart in Jinja")
	}
}

func (w *writer) branch(b *parse.BranchNode, inner, dot value) {
	if len(b.Pipe.Decl) > 0 {
		w.fail(b.Pipe, "declares a variable in a condition: declare it before")
	}
	w.list(b.List, inner)
	if b.ElseList != nil {
		w.out("{%%- else -%%}")
		w.list(b.ElseList, dot)
	}
}

// action prints a value, or gives it to a variable.
func (w *writer) action(a *parse.ActionNode, dot value) {
	v := w.pipe(a.Pipe, dot)
	if len(a.Pipe.Decl) == 0 {
		w.out("{{ shown(%s) }}", v.text)
		return
	}
	variable := a.Pipe.Decl[0].Ident[0]
	switch {
	case a.Pipe.IsAssign:
		w.out("{%%- set %s = %s -%%}", w.lookup(a, variable), v.text)
	case w.assigned[variable]:
		w.out("{%%- set %s = namespace(v=%s) -%%}", w.declare(variable), v.text)
	default:
		w.out("{%%- set %s = %s -%%}", w.declare(variable), v.text)
	}
}

func (w *writer) loop(r *parse.RangeNode, dot value) {
	over, item := w.pipe(r.Pipe, dot), w.name()
	w.scopes = append(w.scopes, map[string]string{})
	names := map[string]string{}
	for i, d := range r.Pipe.Decl {
		if w.assigned[d.Ident[0]] {
			w.fail(r.Pipe, "%s gets another value", d.Ident[0])
		}
		names[[...]string{"first", "second"}[i]] = w.declare(d.Ident[0])
	}
	first, second := names["first"], names["second"]
	if second == "" { // one variable is the value
		first, second = "", first
	}
	if over.keys {
		key := w.name()
		w.out("{%%- for %s, %s in (%s or {}) | dictsort(case_sensitive=true) -%%}", key, item, over.text)
		if first != "" {
			w.out("{%%- set %s = %s -%%}", first, key)
		}
	} else {
		w.out("{%%- for %s in (%s or []) -%%}", item, over.text)
		if first != "" {
			w.out("{%%- set %s = loop.index0 -%%}", first)
		}
	}
	if second != "" {
		w.out("{%%- set %s = %s -%%}", second, item)
	}
	w.list(r.List, value{text: item})
	if r.ElseList != nil {
		w.out("{%%- else -%%}")
		w.list(r.ElseList, dot)
	}
	w.out("{%%- endfor -%%}")
	w.scopes = w.scopes[:len(w.scopes)-1]
}

// literal is a text as an expression of Jinja.
func literal(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(text) + "'"
}
