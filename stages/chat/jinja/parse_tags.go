package jinja

import "slices"

func (p *parser) ifTag(line int) (stmt, error) {
	soft := p.soft
	p.soft = true
	defer func() { p.soft = soft }()
	s := &ifStmt{line: line}
	for {
		test, err := p.tuple(tupleRules{})
		if err != nil {
			return nil, err
		}
		body, err := p.blockBody("elif", "else", "endif")
		if err != nil {
			return nil, err
		}
		s.tests, s.bodies = append(s.tests, test), append(s.bodies, body)
		switch end := p.next(); end.text {
		case "elif":
			continue
		case "else":
			body, err := p.closed("endif")
			s.bodies = append(s.bodies, body)
			return s, err
		}
		_, err = p.expect(tokBlockEnd)
		return s, err
	}
}

func (p *parser) forTag(line int) (stmt, error) {
	s := &forStmt{line: line}
	var err error
	if s.target, err = p.targets("in", false); err != nil {
		return nil, err
	}
	if !p.skipWord("in") {
		return nil, syntaxError(p.peek().line, "expected 'in', got '%s'", p.peek().describe())
	}
	if s.over, err = p.tuple(tupleRules{end: "recursive"}); err != nil {
		return nil, err
	}
	if p.skipWord("if") {
		if s.test, err = p.expression(); err != nil {
			return nil, err
		}
	}
	s.recursive = p.skipWord("recursive")
	s.body, err = p.inner(func() ([]stmt, error) {
		p.loops++
		defer func() { p.loops-- }()
		return p.blockBody("endfor", "else")
	})
	if err != nil {
		return nil, err
	}
	if p.next().text == "else" {
		s.other, err = p.inner(func() ([]stmt, error) { return p.closed("endfor") })
		return s, err
	}
	_, err = p.expect(tokBlockEnd)
	return s, err
}

func (p *parser) setTag(line int) (stmt, error) {
	to, err := p.targets("", true)
	if err != nil {
		return nil, err
	}
	if p.skipOp("=") {
		value, err := p.tuple(tupleRules{cond: true})
		if err == nil {
			_, err = p.expect(tokBlockEnd)
		}
		return &setStmt{to, value, line}, err
	}
	filter, err := p.filters(nil)
	if err != nil {
		return nil, err
	}
	body, err := p.inner(func() ([]stmt, error) { return p.closed("endset") })
	return &setBlockStmt{to, filter, body, line}, err
}

// targets parses what is assigned: a, b or ns.attr; end is the word that follows a bogus last comma.
func (p *parser) targets(end string, namespaces bool) (target, error) {
	line := p.peek().line
	if namespaces && p.ahead().is(".") {
		name, err := p.assignable()
		if err != nil {
			return target{}, err
		}
		p.next()
		attr, err := p.expect(tokName)
		return target{name: name, attr: attr.text, line: line}, err
	}
	first, err := p.targetItem()
	if err != nil || !p.peek().is(",") {
		return first, err
	}
	items := []target{first}
	for p.skipOp(",") {
		if t := p.peek(); t.kind == tokBlockEnd || t.is("=") || t.is(")") || end != "" && t.word(end) {
			break
		}
		item, err := p.targetItem()
		if err != nil {
			return target{}, err
		}
		items = append(items, item)
	}
	return target{items: items, line: line}, nil
}

func (p *parser) targetItem() (target, error) {
	line := p.peek().line
	if !p.skipOp("(") {
		name, err := p.assignable()
		return target{name: name, line: line}, err
	}
	if err := p.nest(); err != nil {
		return target{}, err
	}
	defer p.unnest()
	t, err := p.targets("", false)
	if err == nil {
		err = p.expectOp(")")
	}
	return t, err
}

func (p *parser) assignable() (string, error) {
	t, err := p.expect(tokName)
	if err != nil {
		return "", err
	}
	if _, ok := constants(t.text); ok {
		return "", syntaxError(t.line, "can't assign to 'const'")
	}
	return t.text, nil
}

func (p *parser) macroTag(line int) (stmt, error) {
	name, err := p.assignable()
	if err != nil {
		return nil, err
	}
	def, err := p.signature(name, true)
	if err != nil {
		return nil, err
	}
	err = p.macroBody(&def, "endmacro")
	return &macroStmt{def, line}, err
}

// macroBody parses the body and notes which implicit variables it mentions.
func (p *parser) macroBody(def *macroDef, end string) error {
	before := len(p.names)
	body, err := p.functionBody(func() ([]stmt, error) { return p.closed(end) })
	def.body = body
	read := p.names[before:]
	mentions := func(name string) bool { return slices.Contains(read, name) }
	def.usesCaller, def.usesVarargs, def.usesKwargs = mentions("caller"), mentions("varargs"), mentions("kwargs")
	return err
}

// signature parses (a, b=default); without required, no brackets mean no parameters.
func (p *parser) signature(name string, required bool) (macroDef, error) {
	def := macroDef{name: name}
	if !p.peek().is("(") && !required {
		return def, nil
	}
	if err := p.expectOp("("); err != nil {
		return def, err
	}
	for !p.peek().is(")") {
		if len(def.params) > 0 {
			if err := p.expectOp(","); err != nil {
				return def, err
			}
		}
		param, err := p.assignable()
		if err != nil {
			return def, err
		}
		switch {
		case p.skipOp("="):
			e, err := p.expression()
			if err != nil {
				return def, err
			}
			def.defaults = append(def.defaults, e)
		case len(def.defaults) > 0:
			return def, syntaxError(p.peek().line, "non-default argument follows default argument")
		}
		def.params = append(def.params, param)
	}
	return def, p.expectOp(")")
}

func (p *parser) callTag(line int) (stmt, error) {
	def, err := p.signature("caller", false)
	if err != nil {
		return nil, err
	}
	e, err := p.expression()
	if err != nil {
		return nil, err
	}
	call, ok := e.(*callExpr)
	if !ok {
		return nil, syntaxError(line, "expected call")
	}
	err = p.macroBody(&def, "endcall")
	return &callStmt{call, def, line}, err
}

func (p *parser) withTag(line int) (stmt, error) {
	s := &scopeStmt{line: line}
	for p.peek().kind != tokBlockEnd {
		if len(s.names) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		to, err := p.targetItem()
		if err == nil {
			err = p.expectOp("=")
		}
		if err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		s.names, s.values = append(s.names, to), append(s.values, value)
	}
	var err error
	s.body, err = p.inner(func() ([]stmt, error) { return p.closed("endwith") })
	return s, err
}

func (p *parser) blockTag(line int) (stmt, error) {
	if _, err := p.expect(tokName); err != nil {
		return nil, err
	}
	scoped := p.skipWord("scoped")
	body, err := p.functionBody(func() ([]stmt, error) {
		body, err := p.blockBody("endblock")
		if err != nil {
			return nil, err
		}
		p.next()
		if p.peek().kind == tokName {
			p.next() // the block's name once more
		}
		_, err = p.expect(tokBlockEnd)
		return body, err
	})
	return &scopeStmt{body: body, atRoot: !scoped, line: line}, err
}

func (p *parser) filterTag(line int) (stmt, error) {
	f, err := p.filterCall(nil)
	if err == nil {
		f, err = p.filters(f)
	}
	if err != nil {
		return nil, err
	}
	body, err := p.inner(func() ([]stmt, error) { return p.closed("endfilter") })
	return &filterStmt{f, body, line}, err
}

func (p *parser) autoescapeTag(line int) (stmt, error) {
	on, err := p.expression()
	if err != nil {
		return nil, err
	}
	body, err := p.inner(func() ([]stmt, error) { return p.closed("endautoescape") })
	return &autoescapeStmt{on, body, line}, err
}
