package jinja

import "strconv"

// postfix parses attributes, subscripts and calls.
func (p *parser) postfix(e expr) (expr, error) {
	var err error
	for err == nil {
		switch {
		case p.skipOp("."):
			e, err = p.attribute(e)
		case p.skipOp("["):
			e, err = p.subscript(e)
		case p.peek().is("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) attribute(of expr) (expr, error) {
	t := p.next()
	switch t.kind {
	case tokName:
		return &attrExpr{of, t.text}, nil
	case tokInteger:
		if i, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			return &indexExpr{of, &literal{Int(i)}}, nil
		}
	}
	return nil, syntaxError(t.line, "expected name or number, got '%s'", t.describe())
}

func (p *parser) subscript(of expr) (expr, error) {
	var items []expr
	for !p.peek().is("]") {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		if len(items) == 0 {
			s, err := p.sliceOrIndex(of)
			if err != nil {
				return nil, err
			}
			if slice, ok := s.(*sliceExpr); ok {
				return slice, p.expectOp("]")
			}
			items = append(items, s)
			continue
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	switch len(items) {
	case 0:
		return nil, syntaxError(p.peek().line, "expected subscript expression")
	case 1:
		return &indexExpr{of, items[0]}, p.expectOp("]")
	}
	return &indexExpr{of, &tupleExpr{items}}, p.expectOp("]")
}

// sliceOrIndex parses from:to:step into a *sliceExpr of of, or a plain expression.
func (p *parser) sliceOrIndex(of expr) (expr, error) {
	s := &sliceExpr{of: of}
	var err error
	if !p.peek().is(":") {
		if s.from, err = p.expression(); err != nil || !p.peek().is(":") {
			return s.from, err
		}
	}
	p.next()
	if t := p.peek(); !t.is(":") && !t.is("]") && !t.is(",") {
		if s.to, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if p.skipOp(":") && !p.peek().is("]") && !p.peek().is(",") {
		if s.step, err = p.expression(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (p *parser) call(fn expr) (expr, error) {
	args, err := p.arguments()
	return &callExpr{fn, args}, err
}

func (p *parser) arguments() (argExprs, error) {
	var a argExprs
	if err := p.expectOp("("); err != nil {
		return a, err
	}
	for first := true; !p.peek().is(")"); first = false {
		if !first {
			if err := p.expectOp(","); err != nil {
				return a, err
			}
			if p.peek().is(")") {
				break
			}
		}
		if err := p.argument(&a); err != nil {
			return a, err
		}
	}
	return a, p.expectOp(")")
}

func (p *parser) argument(a *argExprs) error {
	t := p.peek()
	var err error
	var ok bool
	switch {
	case p.skipOp("*"):
		ok = a.star == nil && a.starStar == nil
		a.star, err = p.expression()
	case p.skipOp("**"):
		ok = a.starStar == nil
		a.starStar, err = p.expression()
	case t.kind == tokName && p.ahead().is("="):
		ok = a.starStar == nil
		p.next()
		p.next()
		var e expr
		e, err = p.expression()
		a.names, a.named = append(a.names, t.text), append(a.named, e)
	default:
		ok = a.star == nil && a.starStar == nil && len(a.named) == 0
		var e expr
		e, err = p.expression()
		a.pos = append(a.pos, e)
	}
	if err == nil && !ok {
		return syntaxError(t.line, "invalid syntax for function call expression")
	}
	return err
}

// filtersAndTests parses what may follow an operand: filters, tests, and calls of their results.
func (p *parser) filtersAndTests(e expr) (expr, error) {
	var err error
	for err == nil {
		switch {
		case p.peek().is("|"):
			e, err = p.filters(e)
		case p.skipWord("is"):
			e, err = p.test(e)
		case p.peek().is("("):
			e, err = p.call(e)
		default:
			return e, nil
		}
	}
	return nil, err
}

func (p *parser) filters(of expr) (expr, error) {
	var err error
	for err == nil && p.skipOp("|") {
		of, err = p.filterCall(of)
	}
	return of, err
}

func (p *parser) filterCall(of expr) (expr, error) {
	line := p.peek().line
	name, err := p.dotted()
	if err != nil {
		return nil, err
	}
	f := &filterExpr{of: of, name: name, fn: p.lib.filters[name]}
	if f.fn == nil && !p.soft {
		p.hard = append(p.hard, &Error{Assertion, line, "No filter named '" + name + "'."})
	}
	if p.peek().is("(") {
		f.args, err = p.arguments()
	}
	return f, err
}

func (p *parser) dotted() (string, error) {
	t, err := p.expect(tokName)
	name := t.text
	for err == nil && p.skipOp(".") {
		t, err = p.expect(tokName)
		name += "." + t.text
	}
	return name, err
}

func (p *parser) test(of expr) (expr, error) {
	line := p.peek().line
	negated := p.skipWord("not")
	name, err := p.dotted()
	if err != nil {
		return nil, err
	}
	test := &testExpr{of: of, name: name, fn: p.lib.tests[name]}
	if test.fn == nil && !p.soft {
		p.hard = append(p.hard, &Error{Assertion, line, "No test named '" + name + "'."})
	}
	switch t := p.peek(); {
	case t.is("("):
		test.args, err = p.arguments()
	case t.word("is"):
		return nil, syntaxError(t.line, "You cannot chain multiple tests with is")
	case p.startsOperand(t):
		var arg expr
		if arg, err = p.primary(); err == nil {
			arg, err = p.postfix(arg)
		}
		test.args.pos = []expr{arg}
	}
	if negated {
		return &notExpr{test}, err
	}
	return test, err
}

// startsOperand tells whether a test's one argument without brackets follows: divisibleby 3.
func (p *parser) startsOperand(t token) bool {
	switch t.kind {
	case tokName:
		return t.text != "else" && t.text != "or" && t.text != "and"
	case tokString, tokInteger, tokFloat:
		return true
	}
	return t.is("[") || t.is("{")
}
