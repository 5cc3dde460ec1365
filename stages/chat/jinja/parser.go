package jinja

import "slices"

// maxNesting bounds how deep brackets and blocks of a template may nest. Real templates stay below 30.
const maxNesting = 200

type parser struct {
	lib    *library
	tokens []token
	pos    int
	depth  int
	loops  int      // loops around the current statement within the same macro
	soft   bool     // directly within an if: an unknown filter is an error only when reached
	hard   []error  // unknown filters and tests that no condition excuses
	names  []string // every variable read so far, for what a macro's body mentions
	roles  []string // what roles are compared with
}

func parse(source string, lib *library) (*Template, error) {
	tokens, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{lib: lib, tokens: tokens}
	body, err := p.statements()
	if err == nil && len(p.hard) > 0 {
		err = p.hard[0]
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(p.roles)
	return &Template{body, slices.Compact(p.roles)}, nil
}

func (p *parser) peek() token { return p.tokens[p.pos] }

func (p *parser) ahead() token {
	return p.tokens[min(p.pos+1, len(p.tokens)-1)]
}

func (p *parser) next() token {
	t := p.tokens[p.pos]
	if t.kind != tokEnd {
		p.pos++
	}
	return t
}

func (p *parser) skipOp(op string) bool {
	if p.peek().is(op) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipWord(w string) bool {
	if p.peek().word(w) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(k tokenKind) (token, error) {
	t := p.next()
	if t.kind != k {
		return t, syntaxError(t.line, "expected %s, got '%s'", kindText(k), t.describe())
	}
	return t, nil
}

func kindText(k tokenKind) string {
	if k == tokName {
		return "a name"
	}
	return "'" + token{kind: k}.describe() + "'"
}

func (p *parser) expectOp(op string) error {
	if t := p.next(); !t.is(op) {
		return syntaxError(t.line, "expected '%s', got '%s'", op, t.describe())
	}
	return nil
}

// nest counts one more level of nesting; unnest takes it back.
func (p *parser) nest() error {
	p.depth++
	if p.depth > maxNesting {
		return syntaxError(p.peek().line, "nested deeper than %d levels", maxNesting)
	}
	return nil
}

func (p *parser) unnest() { p.depth-- }

// statements parses up to a tag whose name is one of ends, and leaves it at that name; without ends, everything.
func (p *parser) statements(ends ...string) ([]stmt, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.unnest()
	var body []stmt
	for {
		t := p.next()
		switch t.kind {
		case tokEnd:
			if len(ends) > 0 {
				return nil, syntaxError(t.line, "Unexpected end of template. Jinja was looking for: %v", ends)
			}
			return body, nil
		case tokData:
			body = append(body, &textStmt{t.text})
		case tokPrintBegin:
			e, err := p.tuple(tupleRules{cond: true})
			if err == nil {
				_, err = p.expect(tokPrintEnd)
			}
			if err != nil {
				return nil, err
			}
			body = append(body, &outputStmt{e, t.line})
		case tokBlockBegin:
			if n := p.peek(); n.kind == tokName && slices.Contains(ends, n.text) {
				return body, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			body = append(body, s)
		default:
			return nil, syntaxError(t.line, "unexpected '%s'", t.describe())
		}
	}
}

// closed parses a body up to its end tag and the rest of that tag.
func (p *parser) closed(end string) ([]stmt, error) {
	body, err := p.blockBody(end)
	if err == nil {
		p.next() // the end tag's name
		_, err = p.expect(tokBlockEnd)
	}
	return body, err
}

// blockBody finishes the opening tag and parses the body, leaving the parser at the name that ended it.
func (p *parser) blockBody(ends ...string) ([]stmt, error) {
	p.skipOp(":") // Python's habit is accepted
	if _, err := p.expect(tokBlockEnd); err != nil {
		return nil, err
	}
	return p.statements(ends...)
}

// inner parses with a condition's excuse for unknown filters suspended, as a scope of its own does in Jinja2.
func (p *parser) inner(body func() ([]stmt, error)) ([]stmt, error) {
	soft := p.soft
	p.soft = false
	b, err := body()
	p.soft = soft
	return b, err
}

// statement parses the tag whose name comes next.
func (p *parser) statement() (stmt, error) {
	t, err := p.expect(tokName)
	if err != nil {
		return nil, err
	}
	switch t.text {
	case "if":
		return p.ifTag(t.line)
	case "for":
		return p.forTag(t.line)
	case "set":
		return p.setTag(t.line)
	case "macro":
		return p.macroTag(t.line)
	case "call":
		return p.callTag(t.line)
	case "with":
		return p.withTag(t.line)
	case "block":
		return p.blockTag(t.line)
	case "filter":
		return p.filterTag(t.line)
	case "generation":
		body, err := p.functionBody(func() ([]stmt, error) { return p.closed("endgeneration") })
		return &scopeStmt{body: body, line: t.line}, err
	case "autoescape":
		return p.autoescapeTag(t.line)
	case "print":
		e, err := p.tuple(tupleRules{cond: true})
		if err == nil {
			_, err = p.expect(tokBlockEnd)
		}
		return &outputStmt{e, t.line}, err
	case "break", "continue":
		return p.jumpTag(t)
	case "include", "import", "from", "extends":
		return nil, syntaxError(t.line, "{%% %s %%} is not supported: a chat template is one file", t.text)
	}
	return nil, syntaxError(t.line, "Encountered unknown tag '%s'.", t.text)
}

func (p *parser) jumpTag(t token) (stmt, error) {
	if p.loops == 0 {
		return nil, syntaxError(t.line, "'%s' outside loop", t.text)
	}
	how := flowBreak
	if t.text == "continue" {
		how = flowContinue
	}
	_, err := p.expect(tokBlockEnd)
	return &jumpStmt{how}, err
}

// functionBody parses a body that becomes a function: loops outside it cannot be left from within.
func (p *parser) functionBody(body func() ([]stmt, error)) ([]stmt, error) {
	loops := p.loops
	p.loops = 0
	b, err := p.inner(body)
	p.loops = loops
	return b, err
}
