package tools

import (
	"bytes"
	"strings"
)

// named is the syntax of calls that are a name between two marks, and arguments as an object.
type named struct {
	open, mid, end string
	quote          string                            // of strings in the arguments, beside those of JSON
	clean          func(raw string) (string, string) // name and id of what stands between the marks; nil: the name
	parts          string                            // the mark by which clean tells them apart, if it is one
}

func (f *named) begin(p *Parser) (call, verdict) {
	if f.open == "" {
		if strings.IndexByte("[]{},;", p.held[0]) >= 0 {
			return nil, no
		}
		return &namedCall{form: f}, yes
	}
	v := p.starts(f.open)
	return &namedCall{form: f}, v
}

func (f *named) texts() []string { return []string{f.open, f.mid, f.end, f.quote, f.parts} }

// What comes next in a call of a name and an object.
const (
	atOpen = iota
	atCallee
	inArguments
	atEnd
)

type namedCall struct {
	form  *named
	at    int // what comes next
	value value
	any   bool
	lost  bool // the arguments could not be read: the rest, up to the end mark, is dropped
}

// maxName bounds the names of functions, in bytes.
const maxName = 256

func (c *namedCall) step(p *Parser) verdict {
	f := c.form
	if c.at == atOpen {
		p.take(len(f.open))
		c.at = atCallee
	}
	if c.at == atCallee {
		at := bytes.Index(p.held, []byte(f.mid))
		if at < 0 {
			if p.final || len(p.held) > maxName+len(f.mid) {
				return no
			}
			return wait
		}
		name, id := strings.TrimSpace(string(p.held[:at])), ""
		if f.clean != nil {
			name, id = f.clean(name)
		}
		if !isName(name) {
			return no
		}
		if f.mid != "{" {
			at += len(f.mid)
		}
		p.take(at)
		p.begin(name, id)
		c.at, c.value = inArguments, value{quote: f.quote}
	}
	if c.at == inArguments {
		switch v := c.arguments(p); {
		case v == no && f.end != "":
			c.lost = true
		case v != yes:
			return v
		}
		c.at = atEnd
	}
	if c.lost {
		at := bytes.Index(p.held, []byte(f.end))
		if at < 0 {
			p.take(len(p.held) - heldBack(p.held, f.end))
			return wait
		}
		p.take(at)
	}
	p.space()
	if f.end == "" {
		return yes
	}
	if len(p.held) == 0 && !p.final {
		return wait
	}
	switch p.starts(f.end) {
	case wait:
		return wait
	case yes:
		p.take(len(f.end))
	}
	return yes
}

func (c *namedCall) arguments(p *Parser) verdict {
	if !c.value.begun {
		p.space()
		if len(p.held) == 0 && !p.final {
			return wait
		}
		if c.form.end != "" {
			if v := p.starts(c.form.end); v == wait {
				return wait
			} else if v == yes {
				p.arguments([]byte("{}"))
				return yes
			}
		}
	}
	if !c.any && len(p.held) > 0 && p.held[0] != '{' {
		return no
	}
	n, out := c.value.take(p.held, nil, p.final)
	p.take(n)
	c.any = c.any || len(out) > 0
	p.arguments(out)
	switch {
	case c.value.bad:
		return no
	case c.value.done:
		return yes
	case p.final && !c.any:
		p.arguments([]byte("{}"))
	}
	return wait
}

// isName says whether a text can be the name of a function. Servers of tools put dots, slashes and colons into them.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsAny(s, " \t\r\n<>{}()[]\"'=,|")
}
