package token

// A rule cuts a piece of text: it appends to dst the end of each part of t.text[from:], the last one included. A
// pre-tokenizer is a list of rules; each cuts the parts that the one before left.
type rule func(dst []int, t chars, from int) []int

// match returns the end of a match that begins at i, or i if there is none. It never looks before i.
type match func(t chars, i int) int

// words makes a rule that cuts at both ends of every match: it finds the matches of a regular expression of these
// alternatives, each tried in turn at each character.
func words(alternatives ...match) rule {
	return func(dst []int, t chars, from int) []int {
		for i := from; i < len(t.text); {
			end := i
			for _, m := range alternatives {
				if end = m(t, i); end > i {
					break
				}
			}
			if end == i {
				_, _, i = t.at(i)
				continue
			}
			if i > from {
				dst = append(dst, i)
			}
			dst = append(dst, end)
			from, i = end, end
		}
		if from < len(t.text) {
			dst = append(dst, len(t.text))
		}
		return dst
	}
}

// split runs rules over text and returns the ends of its words. The slice is valid until the next use of s.
func split(rules []rule, t chars, s *scratch) []int {
	ends, spare := append(s.cuts[0][:0], len(t.text)), s.cuts[1]
	for _, r := range rules {
		spare = spare[:0]
		from := 0
		for _, end := range ends {
			part := t
			part.text = t.text[:end]
			spare = r(spare, part, from)
			from = end
		}
		ends, spare = spare, ends
	}
	s.cuts[0], s.cuts[1] = ends, spare
	return ends
}

// Matches with the regular expressions that they implement; L, M, N, P, S are Unicode categories.

// run is [set]+.
func run(set class) match {
	return func(t chars, i int) int { return t.run(i, set) }
}

// runOf is [in]+.
func runOf(in func(rune) bool) match {
	return func(t chars, i int) int { return t.runOf(i, in) }
}

// oneOf is [in].
func oneOf(in func(rune) bool) match {
	return func(t chars, i int) int {
		if r, _, next := t.at(i); in(r) {
			return next
		}
		return i
	}
}

// upTo is [set]{1,n}.
func upTo(n int, set class) match {
	return func(t chars, i int) int {
		for range n {
			_, c, next := t.at(i)
			if c&set == 0 {
				break
			}
			i = next
		}
		return i
	}
}

// literal is the text itself.
func literal(text string) match {
	return func(t chars, i int) int {
		if len(t.text)-i >= len(text) && t.text[i:i+len(text)] == text {
			return i + len(text)
		}
		return i
	}
}

// afterBlank is " ?" and m.
func afterBlank(m match) match {
	return func(t chars, i int) int {
		if i < len(t.text) && t.text[i] == ' ' {
			if end := m(t, i+1); end > i+1 {
				return end
			}
		}
		return m(t, i)
	}
}

// afterSpace is \s? and m.
func afterSpace(m match) match {
	return func(t chars, i int) int {
		if _, c, next := t.at(i); c&space != 0 {
			if end := m(t, next); end > next {
				return end
			}
		}
		return m(t, i)
	}
}

// afterOne is [^\r\n and not]? and m.
func afterOne(not class, m match) match {
	return func(t chars, i int) int {
		if r, c, next := t.at(i); r != '\r' && r != '\n' && c != 0 && c&not == 0 {
			if end := m(t, next); end > next {
				return end
			}
		}
		return m(t, i)
	}
}

// then is m and the bytes of tail, any number of them.
func then(m match, tail string) match { return thenUpTo(m, tail, -1) }

// thenUpTo is m and at most n of the bytes of tail; n < 0 is without limit.
func thenUpTo(m match, tail string, n int) match {
	return func(t chars, i int) int {
		end := m(t, i)
		if end == i {
			return i
		}
		for k := 0; k != n && end < len(t.text) && containsByte(tail, t.text[end]); k++ {
			end++
		}
		return end
	}
}

func containsByte(s string, b byte) bool {
	for i := range len(s) {
		if s[i] == b {
			return true
		}
	}
	return false
}

// thenMaybe is m and tail?.
func thenMaybe(m, tail match) match {
	return func(t chars, i int) int {
		if end := m(t, i); end > i {
			return tail(t, end)
		}
		return i
	}
}

// lines is \s*[\r\n]+.
func lines(t chars, i int) int {
	end := i
	for {
		r, c, next := t.at(i)
		if c&space == 0 {
			return end
		}
		if r == '\r' || r == '\n' {
			end = next
		}
		i = next
	}
}

// spaces is \s+.
func spaces(t chars, i int) int { return t.run(i, space) }

// spacesButLast is \s+(?!\S): a run of white space, less its last character if a word follows.
func spacesButLast(t chars, i int) int {
	last := i
	for {
		_, c, next := t.at(i)
		if c == 0 {
			return i
		}
		if c&space == 0 {
			return last
		}
		last, i = i, next
	}
}

// shortForms is 's|'t|'re|'ve|'m|'ll|'d.
func shortForms(t chars, i int) int { return shortForm(t.text, i, 0) }

// anyShortForms is shortForms in upper or lower case.
func anyShortForms(t chars, i int) int { return shortForm(t.text, i, 0x20) }

// shortForm matches a short form at i; bits of fold are set in both letters before they are compared.
func shortForm(s string, i int, fold byte) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	first := s[i+1] | fold
	switch first {
	case 's', 't', 'm', 'd':
		return i + 2
	}
	if i+2 >= len(s) {
		return i
	}
	switch second := s[i+2] | fold; {
	case first == 'r' && second == 'e', first == 'v' && second == 'e', first == 'l' && second == 'l':
		return i + 3
	}
	return i
}
