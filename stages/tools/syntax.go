package tools

import (
	"slices"
	"strings"
)

// Syntax is how a model writes thoughts and calls. It never changes.
type Syntax struct {
	thinks   []think
	sections []section
	skips    []string // marks that mean nothing to a reader
	channels *channels

	marks []mark // the marks of all of these
	first [256]bool
}

// think is a pair of marks around thoughts.
type think struct {
	open, close string
	anywhere    bool // also behind text of the answer
	solid       bool // a call within is part of the thought
}

// section is a part of an answer that holds calls.
type section struct {
	open, close string // close: "" where it ends with the last call
	bodies      []body
	keep        bool // open is the beginning of the first call
	bare        bool // nothing else marks it: only where an answer begins
}

// body is one way to write calls.
type body interface {
	// begin looks whether what the parser holds begins a call.
	begin(p *Parser) (call, verdict)
	// texts are the marks in it.
	texts() []string
}

// mark is a text with a meaning in an answer: it begins a section of calls, begins or ends a thought, or is dropped.
type mark struct {
	text    string
	section *section
	think   *think
	closes  bool
}

// For is the syntax that a model's chat template shows: that of the families whose marks are in it.
func For(template string) *Syntax {
	s := &Syntax{thinks: append([]think(nil), usualThinks[:]...)}
	for i := range families {
		f := &families[i]
		shown := strings.Contains(template, f.sign) || f.also != "" && strings.Contains(template, f.also)
		if !shown || f.unless != "" && strings.Contains(template, f.unless) {
			continue
		}
		s.thinks = append(append([]think(nil), f.thinks...), s.thinks...)
		s.sections = append(s.sections, f.sections...)
		s.skips = append(s.skips, f.skips...)
		if f.channels != nil {
			s.channels = f.channels
		}
	}
	return s.index()
}

// index lists the marks.
func (s *Syntax) index() *Syntax {
	for i := range s.sections {
		s.marks = append(s.marks, mark{text: s.sections[i].open, section: &s.sections[i]})
	}
	for i := range s.thinks {
		t := &s.thinks[i]
		s.marks = append(s.marks, mark{text: t.open, think: t}, mark{text: t.close, think: t, closes: true})
	}
	for _, skip := range s.skips {
		s.marks = append(s.marks, mark{text: skip})
	}
	for _, m := range s.marks {
		s.first[m.text[0]] = true
	}
	return s
}

// Thoughtless is the syntax in which thoughts are read as text, with their marks.
func (s *Syntax) Thoughtless() *Syntax {
	out := &Syntax{sections: s.sections, skips: s.skips, channels: s.channels}
	return out.index()
}

// Opens says whether a text begins with the mark of calls, which tells them from other text.
func (s *Syntax) Opens(text string) bool {
	return slices.ContainsFunc(s.sections, func(x section) bool { return !x.bare && strings.HasPrefix(text, x.open) })
}

// Mentions says whether a text, such as that of a control token, is a part of a mark.
func (s *Syntax) Mentions(text string) bool {
	all := []string{}
	sections := s.sections
	for _, m := range s.marks {
		all = append(all, m.text)
	}
	if c := s.channels; c != nil {
		all = append(append(all, c.start, c.mark), c.ends...)
		sections = append(sections[:len(sections):len(sections)], c.calls...)
	}
	for i := range sections {
		all = append(all, sections[i].open, sections[i].close)
		for _, b := range sections[i].bodies {
			all = append(all, b.texts()...)
		}
	}
	return text != "" && slices.ContainsFunc(all, func(mark string) bool { return strings.Contains(mark, text) })
}
