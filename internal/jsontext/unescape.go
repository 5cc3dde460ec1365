package jsontext

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape replaces the escapes of a string, which must be valid. Half a surrogate pair becomes U+FFFD.
func unescape(s string) string {
	var out strings.Builder
	out.Grow(len(s))
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 {
			out.WriteString(s)
			return out.String()
		}
		out.WriteString(s[:at])
		if s[at+1] != 'u' {
			out.WriteByte(short(s[at+1]))
			s = s[at+2:]
			continue
		}
		r := unit(s[at:])
		s = s[at+6:]
		if utf16.IsSurrogate(r) {
			pair := utf16.DecodeRune(r, unit(s))
			if r = utf8.RuneError; pair != utf8.RuneError {
				r, s = pair, s[6:]
			}
		}
		out.WriteRune(r)
	}
}

// short returns the character of a one-letter escape.
func short(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// unit returns the number of \uXXXX at the beginning of s, or 0.
func unit(s string) (r rune) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0
	}
	for i := 2; i < 6; i++ {
		r = r<<4 | rune(nibble(s[i]))
	}
	return r
}

// nibble returns the value of a hexadecimal digit, or -1.
func nibble(c byte) int {
	switch {
	case digit(c):
		return int(c - '0')
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return int(c|0x20-'a') + 10
	}
	return -1
}
