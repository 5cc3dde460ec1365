package jinja

import "slices"

// Roles are the texts that the template compares something called "role" with, sorted: message.role == "x", or in a
// list.
func (t *Template) Roles() []string { return t.roles }

// compared notes the texts that a role is compared with.
func (p *parser) compared(c *compareExpr) {
	all := append([]expr{c.first}, c.rest...)
	if !slices.ContainsFunc(all, isRole) {
		return
	}
	for _, e := range all {
		p.roles = append(p.roles, texts(e)...)
	}
}

func isRole(e expr) bool {
	switch e := e.(type) {
	case *nameExpr:
		return e.name == "role"
	case *attrExpr:
		return e.name == "role"
	case *indexExpr:
		l, ok := e.index.(*literal)
		return ok && l.v == Str("role")
	}
	return false
}

// texts are the texts that an expression is made of, if it is one or a list of them.
func texts(e expr) (all []string) {
	switch e := e.(type) {
	case *literal:
		if s, ok := e.v.(Str); ok {
			all = append(all, string(s))
		}
	case *listExpr:
		for _, item := range e.items {
			all = append(all, texts(item)...)
		}
	case *tupleExpr:
		for _, item := range e.items {
			all = append(all, texts(item)...)
		}
	}
	return all
}
