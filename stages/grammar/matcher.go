package grammar

import "unicode/utf8"

// Matcher is a place in a text that a program reads. It uses its program's memory.
type Matcher struct {
	p     *Program
	close closer
	first []config // configs at the beginning of a text
	set   []config // configs here, complete; empty once the text is not in the language
	spare []config
}

// Matcher makes a matcher that has read nothing.
func (p *Program) Matcher() *Matcher {
	m := &Matcher{p: p, close: closer{p: p}}
	p.allow(readingSteps)
	if p.rules[0].some {
		m.first = append(m.first, config{p.startOf(0), stackEmpty})
	}
	if p.rules[0].nullable {
		m.first = append(m.first, config{stateEnd, none})
	}
	m.first = m.close.complete(m.first, 0)
	m.Reset()
	return m
}

// Reset goes back to the beginning.
func (m *Matcher) Reset() { m.set = append(m.set[:0], m.first...) }

// Done says that the text may end here.
func (m *Matcher) Done() bool {
	for _, x := range m.set {
		if x.state == stateEnd {
			return true
		}
	}
	return false
}

// Read reads bytes, and returns how many of them could follow. The matcher stays behind those, also after an error.
func (m *Matcher) Read(text []byte) (int, error) {
	for i, b := range text {
		m.p.allow(readingSteps)
		next := m.step(m.spare[:0], b)
		if err := m.p.grown(); err != nil {
			return i, err
		}
		if len(next) == 0 {
			m.spare = next
			return i, nil
		}
		m.set, m.spare = next, m.set
	}
	return len(text), nil
}

func (m *Matcher) step(next []config, b byte) []config {
	for _, x := range m.set {
		if s := m.p.step(x.state, b); s != none {
			next = add(next, 0, config{s, x.stack})
			m.p.steps += 1 + len(next)/16
		}
	}
	if len(next) == 0 {
		return next
	}
	return m.close.complete(next, 0)
}

// Check reads a whole text from the beginning: whether it is in the language, and how many of its characters could be
// read before it was certain that it is not.
func (m *Matcher) Check(text string) (accept bool, characters int, err error) {
	m.Reset()
	for len(text) > 0 {
		_, size := utf8.DecodeRuneInString(text)
		n, err := m.Read([]byte(text[:size]))
		if n < size || err != nil {
			return false, characters, err
		}
		characters++
		text = text[size:]
	}
	return m.Done(), characters, nil
}
