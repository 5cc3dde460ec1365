package jinja

import (
	"unicode"
)

// every makes a predicate method: true if the text is not empty and every character satisfies p.
func every(p func(r rune) bool) *builtin {
	return takes(0, "", func(r *run, self Value, _ []Value) (Value, error) {
		s, _ := text(self)
		for _, c := range s {
			if !p(c) {
				return Bool(false), nil
			}
		}
		return Bool(s != ""), r.scan(len(s))
	})
}

// isCased tells whether a text has letters with case, all of which mapping leaves as they are.
func isCased(s string, mapping func(string) string) bool {
	cased := false
	for _, r := range s {
		cased = cased || isCasedRune(r)
	}
	return cased && mapping(s) == s
}

func casedMethod(mapping func(string) string) *builtin {
	return takes(0, "", func(r *run, self Value, _ []Value) (Value, error) {
		s, _ := text(self)
		return Bool(isCased(s, mapping)), r.scan(len(s))
	})
}

func isAlpha(r rune) bool { return unicode.IsLetter(r) }
func isDigit(r rune) bool { return unicode.Is(unicode.Nd, r) || isSuperscript(r) }

// isSuperscript: digits that are no decimals (Numeric_Type=Digit), the common ones.
func isSuperscript(r rune) bool {
	switch {
	case r == 0xb2, r == 0xb3, r == 0xb9, r == 0x2070, r >= 0x2074 && r <= 0x2079, r >= 0x2080 && r <= 0x2089,
		r >= 0x2460 && r <= 0x2468:
		return true
	}
	return false
}

var stringPredicates = map[string]*builtin{
	"isalpha":     every(isAlpha),
	"isdigit":     every(isDigit),
	"isdecimal":   every(func(r rune) bool { return unicode.Is(unicode.Nd, r) }),
	"isnumeric":   every(unicode.IsNumber),
	"isalnum":     every(func(r rune) bool { return isAlpha(r) || unicode.IsNumber(r) }),
	"isspace":     every(isSpace),
	"isupper":     casedMethod(upper),
	"islower":     casedMethod(lower),
	"istitle":     casedMethod(titleCase),
	"isprintable": orEmpty(every(unicode.IsPrint)),
	"isascii":     orEmpty(every(func(r rune) bool { return r < 0x80 })),
	"isidentifier": takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		s, _ := text(self)
		return Bool(s != "" && scanName(s) == len(s)), nil
	}),
}

// orEmpty makes a predicate true for the empty text too.
func orEmpty(b *builtin) *builtin {
	return takes(0, "", func(r *run, self Value, a []Value) (Value, error) {
		if s, _ := text(self); s == "" {
			return Bool(true), nil
		}
		return b.fn(r, self, a)
	})
}
