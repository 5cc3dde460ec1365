package jinja

import (
	"strings"
	"unicode"
)

// Full case mappings, beyond what package unicode does one character at a time. Source: Unicode SpecialCasing.txt,
// unconditional mappings, and the final sigma.

func upper(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return specialUpper[r] != "" }) {
		return strings.ToUpper(s)
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteString(upperRune(r))
	}
	return b.String()
}

func upperRune(r rune) string {
	if u := specialUpper[r]; u != "" {
		return u
	}
	return string(unicode.ToUpper(r))
}

func titleRune(r rune) string {
	if t := specialTitle[r]; t != "" {
		return t
	}
	if u := specialUpper[r]; u != "" && !isGreekIota(r) {
		return u
	}
	return string(unicode.ToTitle(r))
}

// isGreekIota: letters with iota subscript, whose title case is one character.
func isGreekIota(r rune) bool {
	switch {
	case r >= 0x1f80 && r <= 0x1faf, r == 0x1fb3, r == 0x1fbc, r == 0x1fc3, r == 0x1fcc, r == 0x1ff3, r == 0x1ffc:
		return true
	}
	return false
}

func lower(s string) string {
	if !strings.ContainsAny(s, "İΣ") {
		return strings.ToLower(s)
	}
	chars := []rune(s)
	var b strings.Builder
	for i := range chars {
		b.WriteString(lowerRune(chars, i))
	}
	return b.String()
}

// lowerRune is the lower case of one character of a text: a sigma at the end of a word is ς.
func lowerRune(chars []rune, i int) string {
	switch chars[i] {
	case 'İ':
		return "i̇"
	case 'Σ':
		before, after := false, false
		for k := i - 1; k >= 0; k-- {
			if !caseIgnorable(chars[k]) {
				before = isCasedRune(chars[k])
				break
			}
		}
		for k := i + 1; k < len(chars); k++ {
			if !caseIgnorable(chars[k]) {
				after = isCasedRune(chars[k])
				break
			}
		}
		if before && !after {
			return "ς"
		}
		return "σ"
	}
	return string(unicode.ToLower(chars[i]))
}

func isCasedRune(r rune) bool {
	return unicode.IsUpper(r) || unicode.IsLower(r) || unicode.IsTitle(r) ||
		unicode.Is(unicode.Other_Lowercase, r) || unicode.Is(unicode.Other_Uppercase, r)
}

func caseIgnorable(r rune) bool {
	switch r {
	case '\'', '.', ':', 0xb7, 0x387, 0x55f, 0x5f4, 0x2018, 0x2019, 0x2024, 0x2027, 0xfe13, 0xfe52, 0xfe55, 0xff07,
		0xff0e, 0xff1a:
		return true
	}
	return unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Lm, unicode.Sk)
}

// titleCase makes every letter after a non-letter a capital and all others small, as str.title does.
func titleCase(s string) string {
	chars := []rune(s)
	var b strings.Builder
	cased := false
	for i, r := range chars {
		if cased {
			b.WriteString(lowerRune(chars, i))
		} else {
			b.WriteString(titleRune(r))
		}
		cased = isCasedRune(r)
	}
	return b.String()
}

func capitalize(s string) string {
	chars := []rune(s)
	if len(chars) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString(titleRune(chars[0]))
	for i := 1; i < len(chars); i++ {
		b.WriteString(lowerRune(chars, i))
	}
	return b.String()
}

func swapCase(s string) string {
	chars := []rune(s)
	var b strings.Builder
	for i, r := range chars {
		switch {
		case unicode.IsUpper(r):
			b.WriteString(lowerRune(chars, i))
		case unicode.IsLower(r):
			b.WriteString(upperRune(r))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// caseFold is close to full case folding: small letters of the capitals. It differs from Python for a few
// scripts (Cherokee).
func caseFold(s string) string {
	var b strings.Builder
	for _, r := range s {
		for _, u := range upperRune(r) {
			b.WriteRune(unicode.ToLower(u))
		}
	}
	return b.String()
}

var specialTitle = map[rune]string{
	'ß': "Ss", 'ﬀ': "Ff", 'ﬁ': "Fi", 'ﬂ': "Fl", 'ﬃ': "Ffi", 'ﬄ': "Ffl", 'ﬅ': "St", 'ﬆ': "St", 'և': "Եւ", 'ﬓ': "Մն",
	'ﬔ': "Մե", 'ﬕ': "Մի", 'ﬖ': "Վն", 'ﬗ': "Մխ", 'ᾲ': "Ὰͅ", 'ᾴ': "Άͅ", 'ῂ': "Ὴͅ", 'ῄ': "Ήͅ", 'ῲ': "Ὼͅ", 'ῴ': "Ώͅ",
	'ᾷ': "ᾼ͂", 'ῇ': "ῌ͂", 'ῷ': "ῼ͂",
}

var specialUpper = map[rune]string{
	0xdf: "\u0053\u0053", 0x149: "\u02bc\u004e", 0x1f0: "\u004a\u030c", 0x390: "\u0399\u0308\u0301",
	0x3b0: "\u03a5\u0308\u0301", 0x587: "\u0535\u0552", 0x1e96: "\u0048\u0331", 0x1e97: "\u0054\u0308",
	0x1e98: "\u0057\u030a", 0x1e99: "\u0059\u030a", 0x1e9a: "\u0041\u02be", 0x1f50: "\u03a5\u0313",
	0x1f52: "\u03a5\u0313\u0300", 0x1f54: "\u03a5\u0313\u0301", 0x1f56: "\u03a5\u0313\u0342",
	0x1f80: "\u1f08\u0399", 0x1f81: "\u1f09\u0399", 0x1f82: "\u1f0a\u0399", 0x1f83: "\u1f0b\u0399",
	0x1f84: "\u1f0c\u0399", 0x1f85: "\u1f0d\u0399", 0x1f86: "\u1f0e\u0399", 0x1f87: "\u1f0f\u0399",
	0x1f88: "\u1f08\u0399", 0x1f89: "\u1f09\u0399", 0x1f8a: "\u1f0a\u0399", 0x1f8b: "\u1f0b\u0399",
	0x1f8c: "\u1f0c\u0399", 0x1f8d: "\u1f0d\u0399", 0x1f8e: "\u1f0e\u0399", 0x1f8f: "\u1f0f\u0399",
	0x1f90: "\u1f28\u0399", 0x1f91: "\u1f29\u0399", 0x1f92: "\u1f2a\u0399", 0x1f93: "\u1f2b\u0399",
	0x1f94: "\u1f2c\u0399", 0x1f95: "\u1f2d\u0399", 0x1f96: "\u1f2e\u0399", 0x1f97: "\u1f2f\u0399",
	0x1f98: "\u1f28\u0399", 0x1f99: "\u1f29\u0399", 0x1f9a: "\u1f2a\u0399", 0x1f9b: "\u1f2b\u0399",
	0x1f9c: "\u1f2c\u0399", 0x1f9d: "\u1f2d\u0399", 0x1f9e: "\u1f2e\u0399", 0x1f9f: "\u1f2f\u0399",
	0x1fa0: "\u1f68\u0399", 0x1fa1: "\u1f69\u0399", 0x1fa2: "\u1f6a\u0399", 0x1fa3: "\u1f6b\u0399",
	0x1fa4: "\u1f6c\u0399", 0x1fa5: "\u1f6d\u0399", 0x1fa6: "\u1f6e\u0399", 0x1fa7: "\u1f6f\u0399",
	0x1fa8: "\u1f68\u0399", 0x1fa9: "\u1f69\u0399", 0x1faa: "\u1f6a\u0399", 0x1fab: "\u1f6b\u0399",
	0x1fac: "\u1f6c\u0399", 0x1fad: "\u1f6d\u0399", 0x1fae: "\u1f6e\u0399", 0x1faf: "\u1f6f\u0399",
	0x1fb2: "\u1fba\u0399", 0x1fb3: "\u0391\u0399", 0x1fb4: "\u0386\u0399", 0x1fb6: "\u0391\u0342",
	0x1fb7: "\u0391\u0342\u0399", 0x1fbc: "\u0391\u0399", 0x1fc2: "\u1fca\u0399", 0x1fc3: "\u0397\u0399",
	0x1fc4: "\u0389\u0399", 0x1fc6: "\u0397\u0342", 0x1fc7: "\u0397\u0342\u0399", 0x1fcc: "\u0397\u0399",
	0x1fd2: "\u0399\u0308\u0300", 0x1fd3: "\u0399\u0308\u0301", 0x1fd6: "\u0399\u0342",
	0x1fd7: "\u0399\u0308\u0342", 0x1fe2: "\u03a5\u0308\u0300", 0x1fe3: "\u03a5\u0308\u0301",
	0x1fe4: "\u03a1\u0313", 0x1fe6: "\u03a5\u0342", 0x1fe7: "\u03a5\u0308\u0342", 0x1ff2: "\u1ffa\u0399",
	0x1ff3: "\u03a9\u0399", 0x1ff4: "\u038f\u0399", 0x1ff6: "\u03a9\u0342", 0x1ff7: "\u03a9\u0342\u0399",
	0x1ffc: "\u03a9\u0399", 0xfb00: "\u0046\u0046", 0xfb01: "\u0046\u0049", 0xfb02: "\u0046\u004c",
	0xfb03: "\u0046\u0046\u0049", 0xfb04: "\u0046\u0046\u004c", 0xfb05: "\u0053\u0054", 0xfb06: "\u0053\u0054",
	0xfb13: "\u0544\u0546", 0xfb14: "\u0544\u0535", 0xfb15: "\u0544\u053b", 0xfb16: "\u054e\u0546",
	0xfb17: "\u0544\u053d",
}
