package tools

import (
	"bytes"
	"strings"
)

// tag is a mark with a name in it, between open and mid, and then attributes, up to end.
type tag struct{ open, mid, end string }

// tagged is the syntax of calls whose arguments are elements, each with a key and a text.
type tagged struct {
	call      tag // without mid, the name ends at white space or a <
	callClose string
	skip      string // may stand behind the name
	param     tag
	close     string // of a param
	lines     bool   // a value stands on lines of its own: one line end on each side is not its own
	elements  bool   // values nest as elements; a param's close is close, its key and ">"
	objects   bool   // an object may stand in place of the elements
}

func (f *tagged) begin(p *Parser) (call, verdict) {
	if f.call.open != "" {
		return &taggedCall{form: f}, p.starts(f.call.open)
	}
	n := bytes.IndexAny(p.held, " \t\r\n<")
	switch {
	case n < 0 && !p.final && isName(string(p.held)):
		return nil, wait
	case n <= 0 || !isName(string(p.held[:n])):
		return nil, no
	}
	return &taggedCall{form: f}, yes
}

func (f *tagged) texts() []string {
	return []string{f.call.open, f.call.mid, f.call.end, f.callClose, f.skip,
		f.param.open, f.param.mid, f.param.end, f.close}
}

// What comes next in a tagged call.
const (
	atName = iota
	atHead
	atParam
	atParamHead
	atText
	atObject
)

type taggedCall struct {
	form   *tagged
	at     int
	name   string
	fields int
	key    string
	said   string // attributes behind the key
	text   []byte // of a value, where it is needed whole
	open   bool   // the value is a string, and its opening quote was reported
	first  bool   // nothing of the value was read
	close  string
	object *namedCall
}

func (c *taggedCall) step(p *Parser) verdict {
	for {
		v := no
		switch c.at {
		case atName:
			v = c.readName(p)
		case atHead:
			v = c.readHead(p)
		case atParam:
			v = c.nextParam(p)
			if v == yes && c.at == atName {
				return yes
			}
		case atParamHead:
			v = c.readKey(p)
		case atText:
			v = c.readText(p)
		case atObject:
			return c.object.step(p)
		}
		if v == no && c.at > atHead && c.at != atObject {
			p.arguments([]byte("}"))
		}
		if v != yes {
			return v
		}
	}
}

// until returns the text between two marks at the beginning of what is held, without taking it.
func (p *Parser) until(open, mid string, most int) (text string, v verdict) {
	rest := p.held[len(open):]
	at := bytes.Index(rest, []byte(mid))
	if at < 0 {
		if p.final || len(rest) > most+len(mid) {
			return "", no
		}
		return "", wait
	}
	return string(rest[:at]), yes
}

func (c *taggedCall) readName(p *Parser) verdict {
	f := c.form
	if f.call.mid == "" {
		rest := p.held[len(f.call.open):]
		n := bytes.IndexAny(rest, " \t\r\n<")
		if n < 0 {
			if p.final {
				return no
			}
			return wait
		}
		c.name = string(rest[:n])
		p.take(len(f.call.open) + n)
	} else {
		name, v := p.until(f.call.open, f.call.mid, maxName)
		if v != yes {
			return v
		}
		c.name, _, _ = strings.Cut(strings.TrimSpace(name), "<|") // special tokens are no part of it
		p.take(len(f.call.open) + len(name) + len(f.call.mid))
	}
	if !isName(c.name) {
		return no
	}
	c.at = atHead
	return yes
}

func (c *taggedCall) readHead(p *Parser) verdict {
	if end := c.form.call.end; end != "" {
		said, v := p.until("", end, maxName)
		if v != yes {
			return v
		}
		p.take(len(said) + len(end))
	}
	if c.form.call.mid == "" { // the name is a word: what follows it says that it is one
		if v := c.marked(p); v != yes {
			return v
		}
		if c.form.objects && bytes.HasPrefix(p.held, []byte("{")) {
			c.object = &namedCall{form: &named{end: c.form.callClose}, at: inArguments}
			p.begin(c.name, "")
			c.at = atObject
			return yes
		}
	}
	p.begin(c.name, "")
	p.arguments([]byte("{"))
	c.at = atParam
	return yes
}

// marked says whether a mark of calls comes next.
func (c *taggedCall) marked(p *Parser) verdict {
	f := c.form
	p.space()
	if len(p.held) == 0 && !p.final {
		return wait
	}
	object := ""
	if f.objects {
		object = "{"
	}
	undecided := false
	for _, m := range [...]string{f.param.open, f.skip, f.callClose, p.sectionClose(), object} {
		switch p.starts(m) {
		case yes:
			return yes
		case wait:
			undecided = true
		}
	}
	if undecided {
		return wait
	}
	return no
}

// nextParam finds the next element, or the end of the call: then at is atName again.
func (c *taggedCall) nextParam(p *Parser) verdict {
	f := c.form
	p.space()
	if len(p.held) == 0 && !p.final {
		return wait
	}
	marks := [...]string{f.callClose, f.skip, p.sectionClose(), f.param.open}
	found := -1
	for i, m := range marks {
		switch p.starts(m) {
		case wait: // a longer one than any that was found
			return wait
		case yes:
			if found < 0 {
				found = i
			}
		}
	}
	switch found {
	case 0:
		p.take(len(f.callClose))
	case 1:
		p.take(len(f.skip))
		return yes
	case 3:
		c.at = atParamHead
		return yes
	}
	return c.finish(p) // a call may lack an end of its own
}

func (c *taggedCall) finish(p *Parser) verdict {
	p.arguments([]byte("}"))
	c.at = atName
	return yes
}

func (c *taggedCall) readKey(p *Parser) verdict {
	f := c.form
	key, v := p.until(f.param.open, f.param.mid, maxName)
	if v != yes {
		return v
	}
	n, said := len(f.param.open)+len(key)+len(f.param.mid), ""
	if f.param.end != "" {
		rest := p.held[n:]
		at := bytes.Index(rest, []byte(f.param.end))
		if at < 0 {
			if p.final || len(rest) > maxName {
				return no
			}
			return wait
		}
		said = string(rest[:at])
		n += at + len(f.param.end)
	}
	p.take(n)
	c.key, c.said, c.text = strings.TrimSpace(key), said, c.text[:0]
	c.close = f.close
	if f.elements {
		c.close = f.close + c.key + ">"
	}
	var out []byte
	if c.fields++; c.fields > 1 {
		out = append(out, ", "...)
	}
	out = append(quoted(out, c.key), ": "...)
	c.open = c.isString(p)
	if c.open {
		out = append(out, '"')
	}
	p.arguments(out)
	c.at, c.first = atText, true
	return yes
}

// isString says whether a value is a string before it is read.
func (c *taggedCall) isString(p *Parser) bool {
	switch {
	case c.form.elements:
		return false
	case strings.Contains(c.said, `string="true"`), strings.Contains(c.said, `type="string"`):
		return true
	case strings.Contains(c.said, `string="false"`), strings.Contains(c.said, `type="`):
		return false
	}
	return p.tools.field(c.name, c.key).onlyText()
}

func (c *taggedCall) readText(p *Parser) verdict {
	f := c.form
	if c.first {
		if len(p.held) == 0 {
			return wait
		}
		if v := p.starts("<![CDATA["); v == wait {
			return wait
		} else if v == yes {
			p.take(len("<![CDATA["))
			c.close = "]]>" + c.close
		}
		if f.lines && len(p.held) > 0 && p.held[0] == '\n' {
			p.take(1)
		}
		c.first = false
	}
	at, done := bytes.Index(p.held, []byte(c.close)), true
	end := at
	if at < 0 {
		at, done = len(p.held)-heldBack(p.held, c.close), false
		if p.final {
			at = len(p.held)
		}
		end = at
	}
	if f.lines && at > 0 && p.held[at-1] == '\n' {
		if end--; !done {
			at--
		}
	}
	c.tell(p, p.held[:end])
	p.take(at)
	if !done {
		if p.final {
			c.endValue(p)
			return wait
		}
		return wait
	}
	p.take(len(c.close))
	c.endValue(p)
	c.at = atParam
	return yes
}

func (c *taggedCall) tell(p *Parser, text []byte) {
	if c.open {
		p.arguments(appendJSON(nil, text))
		return
	}
	c.text = append(c.text, text...)
}

func (c *taggedCall) endValue(p *Parser) {
	switch {
	case c.open:
		p.arguments([]byte{'"'})
	case c.form.elements:
		p.arguments(c.form.element(nil, string(c.text), p.tools.field(c.name, c.key), 0))
	default:
		p.arguments(p.tools.field(c.name, c.key).json(nil, string(c.text), c.said != ""))
	}
}

// heldBack is how many bytes at the end of a text may be the beginning of a mark.
func heldBack(text []byte, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if strings.HasPrefix(mark, string(text[len(text)-n:])) {
			return n
		}
	}
	return 0
}
