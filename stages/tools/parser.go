package tools

import (
	"bytes"
	"strings"
)

// Kind says what a part of an answer is.
type Kind uint8

// Kinds of parts.
const (
	Text      Kind = iota
	Thought        // what the model says to itself
	Call           // a call begins: Name and ID
	Arguments      // more of the arguments of a call, a piece of an object of JSON
)

// Part is a typed piece of an answer.
type Part struct {
	Kind  Kind
	Index int    // of the call, from 0
	Name  string // of Call
	ID    string // of Call, where the model writes one
	Text  []byte // of the other kinds
}

// Parser follows one answer. It is one goroutine's.
// Wide: the text before a mark is kept by what it may turn out to be.
type Parser struct {
	syntax *Syntax
	tools  *Set
	parts  []Part
	text   []byte // the texts of parts, one after the other
	held   []byte // not yet understood
	final  bool   // nothing comes after what is held

	channel *channel // where messages have headings, the one that we are in
	think   *think   // the thought that we are in
	section *section // the section of calls that we are in
	call    call     // the call that we are in
	raw     []byte   // of the section so far, until it is known to hold a call
	sure    bool     // the section is known to hold a call
	lost    bool     // a call in the section could not be read: the rest of the section is dropped
	calls   int

	blank   []byte // white space that belongs to a text only if more of it comes
	aside   []byte // the same, for the text that a thought interrupts
	fresh   bool   // white space that comes next separates, and belongs to nothing
	visible bool   // the answer's text has begun
}

// call is one call that is being read.
type call interface {
	// step takes what it can from what the parser holds.
	step(p *Parser) verdict
}

// verdict is the outcome of reading a little more.
type verdict uint8

const (
	wait verdict = iota // more text decides
	yes                 // what was looked for is there, or is read to its end
	no                  // it is not there
)

// Parser begins to read an answer. tail is the end of the prompt, behind the last message that is not the model's:
// templates may end it within a thought or a heading.
func (s *Syntax) Parser(tail string, tools *Set) *Parser {
	p := &Parser{syntax: s, tools: tools}
	last := -1
	for i := range s.thinks {
		t := &s.thinks[i]
		if at := strings.LastIndex(tail, t.open); at > last {
			last = at
			if strings.LastIndex(tail, t.close) < at {
				p.think, p.fresh = t, true
			} else {
				p.think = nil
			}
		}
	}
	if c := s.channels; c != nil && (tail == "" || strings.HasSuffix(strings.TrimRight(tail, white), c.start)) {
		p.channel = &channel{heading: true}
	}
	return p
}

// Apart says whether what comes next is a thought, or the heading of a message: no part of the answer itself.
func (p *Parser) Apart() bool { return p.Thinks() || p.channel != nil && p.channel.heading }

// Thinks says whether what comes next is a thought.
func (p *Parser) Thinks() bool { return p.think != nil || p.channel != nil && p.channel.thought }

// Opened returns the text of a section of calls so far, its mark included, while it is not certain that it holds
// calls.
func (p *Parser) Opened() (text []byte, ok bool) {
	if p.section == nil || p.sure || p.section.bare {
		return nil, false
	}
	return append(bytes.Clone(p.raw), p.held...), true
}

// Closes is the mark that ends the present thought; "": there is no thought, or no such mark.
func (p *Parser) Closes() string {
	if p.think == nil {
		return ""
	}
	return p.think.close
}

// Behind is how many bytes of the text last pushed belong to the answer, though maybe not told yet, where it began
// apart and is no longer.
func (p *Parser) Behind() (n int) {
	for i := range p.parts {
		if p.parts[i].Kind != Thought {
			n += len(p.parts[i].Text)
		}
	}
	return n + len(p.blank) + len(p.held)
}

// Push takes the next text and returns what is understood by now, valid until the next call.
func (p *Parser) Push(text []byte) []Part {
	p.parts, p.text = p.parts[:0], p.text[:0]
	for len(text) > 0 {
		n := min(len(text), mostAtOnce)
		p.held = append(p.held, text[:n]...)
		text = text[n:]
		for p.step() {
		}
	}
	return p.parts
}

// mostAtOnce bounds what is held, in bytes, however much comes: what is taken from it moves the rest.
const mostAtOnce = 256

// End returns what was held back: nothing comes after it.
func (p *Parser) End() []Part {
	p.parts, p.text, p.final = p.parts[:0], p.text[:0], true
	for p.step() {
	}
	for p.section != nil && !p.sure {
		p.giveBack()
		for p.step() {
		}
	}
	if p.channel == nil || !p.channel.heading {
		p.say(p.held)
	}
	if p.think == nil && !p.fresh && p.calls == 0 && len(p.blank) > 0 {
		p.add(Text, 0, p.blank, nil)
	}
	p.held, p.blank = nil, nil
	return p.parts
}

// Cut ends an answer that was cut short. Other than with End, where there are tools, what is not understood by then
// is left out: it would have become a mark, a call or more of its arguments. forced: nothing but calls was to come.
func (p *Parser) Cut(forced bool) []Part {
	likeText := p.section != nil && !p.sure && p.section.bare && !forced // nothing but its form says that it is a call
	if likeText || !p.tools.Some() {
		return p.End()
	}
	p.parts, p.held, p.blank = p.parts[:0], nil, nil
	return p.parts
}

func (p *Parser) step() (more bool) {
	switch {
	case p.call != nil:
		switch p.call.step(p) {
		case wait:
			return false
		case no:
			p.giveBack()
		}
		p.call = nil
		return true
	case p.section != nil:
		return p.between()
	case p.channel != nil:
		return p.inChannel()
	}
	return p.scan()
}

// scan passes on text or a thought, up to the next mark.
func (p *Parser) scan() bool {
	for at := range p.held {
		rest := p.held[at:]
		if !p.syntax.first[rest[0]] {
			continue
		}
		m, v := p.mark(rest, len(bytes.TrimSpace(p.held[:at])) == 0)
		if v == no {
			continue
		}
		p.say(p.held[:at])
		p.held = p.held[:copy(p.held, rest)]
		if v == wait {
			return false
		}
		p.follow(m)
		return true
	}
	p.say(p.held)
	p.held = p.held[:0]
	return false
}

// mark finds the mark that a text begins with. first says that nothing but white space came before it in what is held.
func (p *Parser) mark(text []byte, first bool) (*mark, verdict) {
	start := first && !p.visible
	found, undecided := (*mark)(nil), false
	for i := range p.syntax.marks {
		m := &p.syntax.marks[i]
		if !p.allowed(m, first, start) {
			continue
		}
		switch {
		case bytes.HasPrefix(text, []byte(m.text)):
			if found == nil || len(m.text) > len(found.text) {
				found = m
			}
		case !p.final && len(text) < len(m.text) && strings.HasPrefix(m.text, string(text)):
			undecided = true
		}
	}
	switch {
	case undecided: // it would be longer
		return nil, wait
	case found != nil:
		return found, yes
	}
	return nil, no
}

// allowed says whether a mark means anything where we are. first: nothing came before it in what is held; start: nor
// any text of the answer.
func (p *Parser) allowed(m *mark, first, start bool) bool {
	switch {
	case m.section != nil && (!p.tools.Some() || p.think != nil):
		return p.tools.Some() && !p.think.solid && !m.section.bare
	case m.section != nil:
		return !m.section.bare || start
	case p.think != nil:
		return m.closes && m.think == p.think || !m.closes && m.think != nil && first && p.fresh
	case m.think != nil:
		return start || m.think.anywhere
	}
	return true
}

// follow acts on a mark that what is held begins with.
func (p *Parser) follow(m *mark) {
	switch {
	case m.section != nil:
		p.section, p.sure, p.raw = m.section, false, p.raw[:0]
		if m.section.keep {
			return
		}
	case m.think != nil && m.closes:
		p.think, p.fresh, p.blank, p.aside = nil, !p.visible, p.aside, nil
	case m.think != nil:
		if p.think == nil && p.visible {
			p.aside = p.blank
		}
		p.think, p.fresh, p.blank = m.think, true, nil
	default:
		p.fresh = !p.visible
	}
	p.take(len(m.text))
}

// space drops the white space that what is held begins with.
func (p *Parser) space() { p.take(len(p.held) - len(bytes.TrimLeft(p.held, white))) }

const white = " \t\r\n"

// take drops the first n bytes of what is held; those of a section are kept until it is sure to be one.
func (p *Parser) take(n int) {
	if p.section != nil && !p.sure {
		p.raw = append(p.raw, p.held[:n]...)
	}
	p.held = p.held[:copy(p.held, p.held[n:])]
}

// between looks for the next call of a section, or its end.
func (p *Parser) between() bool {
	s := p.section
	p.space()
	if len(p.held) == 0 {
		return p.leaveAtEnd()
	}
	if p.lost {
		return p.drop(s.close)
	}
	if v := p.starts(s.close); v == yes {
		p.take(len(s.close))
		return p.leave()
	} else if v == wait {
		return false
	}
	if p.sure && !s.bare {
		if m, v := p.mark(p.held, false); v == wait {
			return false
		} else if m != nil && m.section != nil {
			return p.leave()
		}
	}
	for _, b := range s.bodies {
		c, v := b.begin(p)
		if v == yes {
			p.call = c
			return true
		}
		if v == wait && !p.final {
			return false
		}
	}
	if strings.IndexByte(",;[]", p.held[0]) >= 0 {
		p.take(1)
		return true
	}
	return p.leave()
}

// drop skips the rest of a section, or of the answer if nothing ends the section.
func (p *Parser) drop(end string) bool {
	at := bytes.Index(p.held, []byte(end))
	if at < 0 {
		p.take(len(p.held) - heldBack(p.held, end))
		return p.leaveAtEnd()
	}
	p.take(at + len(end))
	return p.leave()
}

func (p *Parser) leaveAtEnd() bool { return p.final && p.leave() }

// leave ends a section.
func (p *Parser) leave() bool {
	if !p.sure {
		p.giveBack()
	}
	p.section, p.lost = nil, false
	return true
}

// sectionClose is the mark that ends the present section; "": none.
func (p *Parser) sectionClose() string {
	if p.section == nil {
		return ""
	}
	return p.section.close
}

// giveBack treats what looked like a section of calls as text: its first mark, and then what follows is looked at anew.
func (p *Parser) giveBack() {
	if p.section == nil || p.sure { // calls were told already: nothing can be taken back
		if p.call, p.lost = nil, p.sectionClose() != ""; !p.lost {
			p.section = nil
		}
		return
	}
	all := append(bytes.Clone(p.raw), p.held...)
	n := min(len(p.section.open), len(all))
	p.section, p.call, p.raw = nil, nil, p.raw[:0]
	p.say(all[:n])
	p.held = append(p.held[:0], all[n:]...)
}

// starts says whether what is held begins with a text; never with an empty one.
func (p *Parser) starts(text string) verdict {
	switch {
	case text == "":
		return no
	case bytes.HasPrefix(p.held, []byte(text)):
		return yes
	case !p.final && strings.HasPrefix(text, string(p.held)):
		return wait
	}
	return no
}

// begin reports that a call begins; from here on the section is not given back as text.
func (p *Parser) begin(name, id string) {
	p.sure = true
	if p.think != nil || !p.visible || p.channel != nil {
		p.think, p.blank, p.fresh = nil, nil, true
	}
	p.parts = append(p.parts, Part{Kind: Call, Index: p.calls, Name: name, ID: id})
	p.calls++
}

// arguments reports more arguments of the last call.
func (p *Parser) arguments(text []byte) {
	if len(text) > 0 {
		p.add(Arguments, p.calls-1, nil, text)
	}
}

// say reports text or a thought, without white space around it.
func (p *Parser) say(text []byte) {
	if len(text) == 0 {
		return
	}
	kind := Text
	if p.think != nil || p.channel != nil && p.channel.thought {
		kind = Thought
	}
	if p.fresh && len(p.blank) == 0 {
		text = bytes.TrimLeft(text, white)
	}
	bare := bytes.TrimRight(text, white)
	if kind == Text && !p.tools.Some() && (p.visible || len(bare) > 0) {
		bare = text // no call comes that white space would set it apart from
	}
	if len(bare) > 0 {
		p.add(kind, 0, p.blank, bare)
		p.blank, p.fresh = p.blank[:0], false
		p.visible = p.visible || kind == Text
	}
	p.blank = append(p.blank, text[len(bare):]...)
}

// add reports before and after as one part, joined to the part before it if that is of the same kind and call.
func (p *Parser) add(kind Kind, index int, before, after []byte) {
	from := len(p.text)
	p.text = append(append(p.text, before...), after...)
	if n := len(p.parts); n > 0 {
		if last := &p.parts[n-1]; last.Kind == kind && last.Index == index {
			last.Text = p.text[from-len(last.Text):]
			return
		}
	}
	p.parts = append(p.parts, Part{Kind: kind, Index: index, Text: p.text[from:]})
}
