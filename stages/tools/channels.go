package tools

import (
	"bytes"
	"strings"
)

// channels is the syntax of answers that are made of messages, each with a heading that says whom or what it is for.
type channels struct {
	start   string    // what a prompt ends with: a heading comes next
	mark    string    // ends a heading
	thought [2]string // around a message that is a thought, where it is the answer's first
	ends    []string  // end a message
	route   func(heading string) route
	calls   []section // in messages that are no thoughts; nil: the message of a call is its arguments, as JSON
}

// route is what a heading says of its message.
type route struct {
	thought, drop bool
	call          string // the function that is called
}

// channel is the message that is being read.
type channel struct {
	heading bool
	route
	body call
}

func (p *Parser) inChannel() bool {
	c, form := p.channel, p.syntax.channels
	if c.heading {
		at := bytes.Index(p.held, []byte(form.mark))
		if at < 0 {
			return false
		}
		r := form.route(string(p.held[:at]))
		if !p.tools.Some() {
			r.call = "" // there is nothing to call: it is text
		}
		p.take(at + len(form.mark))
		p.channel = &channel{route: r}
		p.fresh, p.blank = true, nil
		if r.call != "" && form.calls == nil {
			p.begin(r.call, "")
			p.channel.body = &namedCall{form: &named{}, at: inArguments}
		}
		return true
	}
	if c.body != nil {
		if v := c.body.step(p); v == wait {
			return false
		}
		c.body, c.drop = nil, true
		return true
	}
	return p.message(form)
}

// message passes the text of a message on, up to its end.
func (p *Parser) message(form *channels) bool {
	c := p.channel
	first, length := -1, 0
	hold := 0
	for _, end := range form.ends {
		if at := bytes.Index(p.held, []byte(end)); at >= 0 && (first < 0 || at < first) {
			first, length = at, len(end)
		}
		hold = max(hold, heldBack(p.held, end))
	}
	var calls *section
	for i := range form.calls {
		s := &form.calls[i]
		if c.thought || !p.fresh || !p.tools.Some() || c.call == "" && p.tools == nil {
			break
		}
		at := bytes.Index(p.held, []byte(s.open))
		if at >= 0 && (first < 0 || at < first) && len(bytes.TrimSpace(p.held[:at])) == 0 {
			first, calls = at, s
		}
		hold = max(hold, heldBack(p.held, s.open))
	}
	text := p.held
	if first >= 0 {
		text = p.held[:first]
	} else if !p.final {
		text = p.held[:len(p.held)-hold]
	}
	if !c.drop {
		p.say(text)
	}
	if calls != nil {
		p.held = p.held[:copy(p.held, p.held[first:])]
		p.follow(&mark{text: calls.open, section: calls})
		return true
	}
	if first < 0 {
		p.held = p.held[:copy(p.held, p.held[len(text):])]
		return false
	}
	p.held = p.held[:copy(p.held, p.held[first+length:])]
	p.channel, p.fresh, p.blank = &channel{heading: true}, true, nil
	return true
}

// harmony is the format of gpt-oss (OpenAI, "Harmony response format").
func harmony(heading string) route {
	if _, to, ok := strings.Cut(heading, "to=functions."); ok {
		name, _, _ := strings.Cut(to, "<|")
		name, _, _ = strings.Cut(name, " ")
		return route{call: strings.TrimSpace(name)}
	}
	_, to, addressed := strings.Cut(heading, "to=")
	if addressed && !strings.HasPrefix(to, "assistant") {
		return route{drop: true} // a tool of the model's own that nobody here has
	}
	if at := strings.LastIndex(heading, "<|channel|>"); at >= 0 {
		heading = heading[at:]
	}
	return route{thought: !strings.Contains(heading, "final")}
}
