package tools

import (
	"bytes"
	"strings"
)

// channels are answers made of messages, each with a heading that says whom or what it is for.
type channels struct {
	start string   // what a prompt ends with: a heading comes next
	mark  string   // ends a heading
	ends  []string // end a message
	route func(heading string) route
	tags  *tagged // how arguments are written; nil: as JSON
}

// route is what a heading says.
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
		p.take(at + len(form.mark))
		p.channel = &channel{route: r}
		p.fresh, p.blank = true, nil
		if r.call != "" && form.tags == nil {
			p.begin(r.call, "")
			p.channel.body = &namedCall{form: &named{}, at: 2}
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
	if c.call != "" && form.tags != nil && !c.drop {
		if more, handled := p.taggedBody(form.tags); handled {
			return more
		}
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
	text := p.held
	if first >= 0 {
		text = p.held[:first]
	} else if !p.final {
		text = p.held[:len(p.held)-hold]
	}
	if !c.drop {
		p.say(text)
	}
	if first < 0 {
		p.held = p.held[:copy(p.held, p.held[len(text):])]
		return false
	}
	p.held = p.held[:copy(p.held, p.held[first+length:])]
	p.channel, p.fresh, p.blank = &channel{heading: true}, true, nil
	return true
}

// taggedBody looks for the call that a message of one holds.
func (p *Parser) taggedBody(f *tagged) (more, handled bool) {
	at := bytes.Index(p.held, []byte(f.call.open))
	if at < 0 {
		return false, !p.final && !bytes.Contains(p.held, []byte("<|"))
	}
	p.held = p.held[:copy(p.held, p.held[at:])]
	p.channel.body = &taggedCall{form: f}
	return true, true
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
