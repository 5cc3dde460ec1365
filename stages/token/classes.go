package token

import "unicode"

// class is the set of a character's classes that splitting rules use. Every character has at least one bit, so that
// the complement of a set is a set.
type class uint8

const (
	letter      class = 1 << iota // \p{L}
	mark                          // \p{M}
	number                        // \p{N}
	punctuation                   // \p{P}
	symbolic                      // \p{S}
	space                         // \s: White_Space, in ASCII "\t\n\v\f\r "
	invisible                     // Cc, Cf, Co and Cs, unless white space
	other                         // the rest
)

// classes is a table of the classes of planes 0 and 1; the few characters of other planes are looked up in package
// unicode.
type classes [0x20000]class

func newClasses() *classes {
	t := new(classes)
	t.mark(unicode.L, letter)
	t.mark(unicode.M, mark)
	t.mark(unicode.N, number)
	t.mark(unicode.P, punctuation)
	t.mark(unicode.S, symbolic)
	for _, table := range invisibles() {
		t.mark(table, invisible)
	}
	t.mark(unicode.White_Space, space)
	for r, c := range t {
		if c == 0 {
			t[r] = other
		}
	}
	return t
}

// invisibles returns the tables of \p{C} without unassigned characters.
func invisibles() []*unicode.RangeTable {
	return []*unicode.RangeTable{unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs}
}

// mark overwrites the class of a range of characters.
func (t *classes) mark(table *unicode.RangeTable, c class) {
	for _, r := range table.R16 {
		for i := rune(r.Lo); i <= rune(r.Hi); i += rune(r.Stride) {
			t[i] = c
		}
	}
	for _, r := range table.R32 {
		for i := rune(r.Lo); i <= rune(r.Hi) && int(i) < len(t); i += rune(r.Stride) {
			t[i] = c
		}
	}
}

func (t *classes) of(r rune) class {
	switch {
	case int(r) < len(t):
		return t[r]
	case unicode.Is(unicode.L, r):
		return letter
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.In(r, invisibles()...):
		return invisible
	}
	return other
}

// utf8Len returns the length that a first byte announces; a continuation byte counts as one character.
func utf8Len(b byte) int {
	switch {
	case b < 0xC0:
		return 1
	case b < 0xE0:
		return 2
	case b < 0xF0:
		return 3
	}
	return 4
}

// chars is a text with its classes, the input of splitting rules.
type chars struct {
	text  string // as sanitize returns it
	table *classes
	looks *int // counts the characters looked at, for tests
}

// at returns the character at i, its class and the position after it; at the end, class 0.
func (t chars) at(i int) (r rune, c class, next int) {
	if t.looks != nil {
		*t.looks++
	}
	if i >= len(t.text) {
		return -1, 0, i
	}
	b := t.text[i]
	if b < 0x80 {
		return rune(b), t.table[b], i + 1
	}
	r, n := decode(t.text[i:])
	return r, t.table.of(r), i + n
}

// run returns the end of the run of characters of a class in set that begins at i.
func (t chars) run(i int, set class) int {
	for {
		_, c, next := t.at(i)
		if c&set == 0 {
			return i
		}
		i = next
	}
}

// runOf is run for a set of characters.
func (t chars) runOf(i int, in func(rune) bool) int {
	for i < len(t.text) {
		r, _, next := t.at(i)
		if !in(r) {
			return i
		}
		i = next
	}
	return i
}

// decode reads a character as llama.cpp does: overlong forms and surrogates are characters too. It returns
// U+FFFD and 1 where there is none.
func decode(s string) (r rune, n int) {
	b := s[0]
	switch {
	case b < 0x80:
		return rune(b), 1
	case b < 0xC0 || b >= 0xF8:
		return 0xFFFD, 1
	}
	n = utf8Len(b)
	if len(s) < n {
		return 0xFFFD, 1
	}
	r = rune(b) & (0x7F >> n)
	for i := 1; i < n; i++ {
		if s[i]&0xC0 != 0x80 {
			return 0xFFFD, 1
		}
		r = r<<6 | rune(s[i]&0x3F)
	}
	if r > 0x10FFFF { // here llama.cpp gives up; such bytes are like any other that are not UTF-8
		return 0xFFFD, 1
	}
	return r, n
}

// encodeRune is utf8.AppendRune, except that surrogates keep their three bytes.
func encodeRune(dst []byte, r rune) []byte {
	switch {
	case r < 0x80:
		return append(dst, byte(r))
	case r < 0x800:
		return append(dst, 0xC0|byte(r>>6), 0x80|byte(r)&0x3F)
	case r < 0x10000:
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return append(dst, 0xF0|byte(r>>18), 0x80|byte(r>>12)&0x3F, 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
}

// sanitize appends text to dst with every character in its shortest form, and U+FFFD for each byte outside one.
func sanitize(dst []byte, text string) []byte {
	for i := 0; i < len(text); {
		r, n := decode(text[i:])
		dst = encodeRune(dst, r)
		i += n
	}
	return dst
}
