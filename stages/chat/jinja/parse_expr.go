package jinja

import (
	"math/big"
	"strconv"
)

// tupleRules says what may end or stand in a tuple without brackets.
type tupleRules struct {
	cond    bool   // a if b else c may be an element
	bracket bool   // within brackets: it may be empty
	end     string // a word that ends it
}

// tuple parses one expression, or several with commas between them.
func (p *parser) tuple(rules tupleRules) (expr, error) {
	var items []expr
	comma := false
	for {
		t := p.peek()
		if t.kind == tokPrintEnd || t.kind == tokBlockEnd || t.is(")") || rules.end != "" && t.word(rules.end) {
			break
		}
		parse := p.or
		if rules.cond {
			parse = p.expression
		}
		e, err := p.nested(parse)
		if err != nil {
			return nil, err
		}
		items = append(items, e)
		if !p.skipOp(",") {
			break
		}
		comma = true
	}
	if comma {
		return &tupleExpr{items}, nil
	}
	if len(items) == 1 {
		return items[0], nil
	}
	if !rules.bracket {
		t := p.peek()
		return nil, syntaxError(t.line, "Expected an expression, got '%s'", t.describe())
	}
	return &tupleExpr{}, nil
}

func (p *parser) nested(parse func() (expr, error)) (expr, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.unnest()
	return parse()
}

// expression parses a if b else c and all that binds tighter.
func (p *parser) expression() (expr, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.unnest()
	mark := len(p.hard)
	e, err := p.or()
	for err == nil && p.skipWord("if") {
		c := &condExpr{then: e}
		if c.test, err = p.or(); err != nil {
			return nil, err
		}
		if p.skipWord("else") {
			if c.other, err = p.expression(); err != nil {
				return nil, err
			}
		}
		e, p.hard = c, p.hard[:mark]
	}
	return e, err
}

func (p *parser) or() (expr, error) {
	left, err := p.and()
	for err == nil && p.skipWord("or") {
		var right expr
		right, err = p.and()
		left = &orExpr{left, right}
	}
	return left, err
}

func (p *parser) and() (expr, error) {
	left, err := p.not()
	for err == nil && p.skipWord("and") {
		var right expr
		right, err = p.not()
		left = &andExpr{left, right}
	}
	return left, err
}

func (p *parser) not() (expr, error) {
	if !p.skipWord("not") {
		return p.comparison()
	}
	e, err := p.nested(p.not)
	return &notExpr{e}, err
}

func (p *parser) comparison() (expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &compareExpr{first: first}
	for {
		op := p.comparator()
		if op == "" {
			break
		}
		e, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, e)
	}
	if len(c.ops) == 0 {
		return first, nil
	}
	p.compared(c)
	return c, nil
}

// comparator consumes a comparison operator, if there is one.
func (p *parser) comparator() string {
	t := p.peek()
	switch {
	case t.is("==") || t.is("!=") || t.is("<") || t.is("<=") || t.is(">") || t.is(">=") || t.word("in"):
		p.next()
		return t.text
	case t.word("not") && p.ahead().word("in"):
		p.next()
		p.next()
		return "not in"
	}
	return ""
}

// chain parses operands of one precedence, left to right.
func (p *parser) chain(operand func() (expr, error), ops ...string) (expr, error) {
	left, err := operand()
next:
	for err == nil {
		for _, op := range ops {
			if p.skipOp(op) {
				var right expr
				right, err = operand()
				left = &binaryExpr{op, left, right}
				continue next
			}
		}
		break
	}
	return left, err
}

func (p *parser) sum() (expr, error) { return p.chain(p.concat, "+", "-") }

func (p *parser) product() (expr, error) { return p.chain(p.power, "*", "/", "//", "%") }

func (p *parser) power() (expr, error) {
	return p.chain(func() (expr, error) { return p.unary(true) }, "**")
}

func (p *parser) concat() (expr, error) {
	first, err := p.product()
	if err != nil || !p.peek().is("~") {
		return first, err
	}
	parts := []expr{first}
	for p.skipOp("~") {
		e, err := p.product()
		if err != nil {
			return nil, err
		}
		parts = append(parts, e)
	}
	return &concatExpr{parts}, nil
}

func (p *parser) unary(withFilters bool) (expr, error) {
	var e expr
	var err error
	if t := p.peek(); t.is("-") || t.is("+") {
		p.next()
		e, err = p.nested(func() (expr, error) { return p.unary(false) })
		e = &unaryExpr{t.text, e}
	} else {
		e, err = p.primary()
	}
	if err == nil {
		e, err = p.postfix(e)
	}
	if err == nil && withFilters {
		e, err = p.filtersAndTests(e)
	}
	return e, err
}

// constants maps the names that cannot be assigned.
func constants(name string) (Value, bool) {
	switch name {
	case "true", "True":
		return Bool(true), true
	case "false", "False":
		return Bool(false), true
	case "none", "None":
		return None{}, true
	}
	return nil, false
}

func (p *parser) primary() (expr, error) {
	t := p.next()
	switch {
	case t.kind == tokName:
		if v, ok := constants(t.text); ok {
			return &literal{v}, nil
		}
		p.names = append(p.names, t.text)
		return &nameExpr{t.text}, nil
	case t.kind == tokString:
		for p.peek().kind == tokString {
			t.text += p.next().text
		}
		return &literal{Str(t.text)}, nil
	case t.kind == tokInteger || t.kind == tokFloat:
		return number(t)
	case t.is("("):
		e, err := p.tuple(tupleRules{cond: true, bracket: true})
		if err == nil {
			err = p.expectOp(")")
		}
		return e, err
	case t.is("["):
		items, err := p.items("]")
		return &listExpr{items}, err
	case t.is("{"):
		return p.dict()
	}
	return nil, syntaxError(t.line, "unexpected '%s'", t.describe())
}

// maxDigits bounds integer literals, as Python bounds int(text).
const maxDigits = 4300

func number(t token) (expr, error) {
	if t.kind == tokFloat {
		f, _ := strconv.ParseFloat(t.text, 64) // out of range: infinity, as in Python
		return &literal{Float(f)}, nil
	}
	n, ok := new(big.Int).SetString(t.text, 0)
	if !ok {
		n, ok = new(big.Int).SetString(t.text, 10) // 000
	}
	if !ok || len(t.text) > maxDigits {
		return nil, syntaxError(t.line, "%.40s is no integer of at most %d digits", t.text, maxDigits)
	}
	return &literal{normInt(n)}, nil
}

// items parses expressions with commas between them up to a closing bracket.
func (p *parser) items(closing string) ([]expr, error) {
	var items []expr
	for !p.peek().is(closing) {
		if len(items) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.peek().is(closing) {
				break
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
	return items, p.expectOp(closing)
}

func (p *parser) dict() (expr, error) {
	d := &dictExpr{}
	for !p.peek().is("}") {
		if len(d.keys) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
			if p.peek().is("}") {
				break
			}
		}
		key, err := p.expression()
		if err == nil {
			err = p.expectOp(":")
		}
		if err != nil {
			return nil, err
		}
		value, err := p.expression()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
	}
	return d, p.expectOp("}")
}
