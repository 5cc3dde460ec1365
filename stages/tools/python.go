package tools

import "bytes"

// python is the syntax of calls as Python writes them: name(key=value, …).
type python struct {
	known bool // only names of tools that the request has
	bare  bool // strings in single quotes have no escapes
}

func (f *python) begin(p *Parser) (call, verdict) {
	at := bytes.IndexByte(p.held, '(')
	switch {
	case at < 0 && (p.final || !isName(string(p.held)) || f.known && !p.tools.begins(string(p.held))):
		return nil, no
	case at < 0:
		return nil, wait
	}
	name := string(p.held[:at])
	if !isName(name) || f.known && !p.tools.has(name) {
		return nil, no
	}
	return &pythonCall{bare: f.bare}, yes
}

func (*python) texts() []string { return nil }

type pythonCall struct {
	bare    bool
	begun   bool
	inValue bool
	value   value
	fields  int
}

func (c *pythonCall) step(p *Parser) verdict {
	if !c.begun {
		at := bytes.IndexByte(p.held, '(')
		name := string(p.held[:at])
		p.take(at + 1)
		p.begin(name, "")
		p.arguments([]byte("{"))
		c.begun = true
	}
	for {
		if c.inValue {
			n, out := c.value.take(p.held, nil, p.final)
			p.take(n)
			p.arguments(out)
			switch {
			case c.value.bad:
				return no
			case !c.value.done:
				return wait
			}
			c.inValue = false
		}
		p.take(len(p.held) - len(bytes.TrimLeft(p.held, " \t\r\n,")))
		if len(p.held) == 0 {
			return wait
		}
		if p.held[0] == ')' {
			p.take(1)
			p.arguments([]byte("}"))
			return yes
		}
		at := bytes.IndexByte(p.held, '=')
		if at < 0 {
			if len(p.held) > maxName || p.final {
				return no
			}
			return wait
		}
		key := bytes.Trim(p.held[:at], " \"'")
		if !isName(string(key)) {
			return no
		}
		var out []byte
		if c.fields++; c.fields > 1 {
			out = append(out, ", "...)
		}
		p.arguments(append(quoted(out, string(key)), ": "...))
		p.take(at + 1)
		c.inValue, c.value = true, value{bare: c.bare}
	}
}
