package jinja

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// operators, longest first where one is the beginning of another.
var operators = [...]string{
	"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".",
	":", "|", ",", ";", "~",
}

// code lexes the inside of a tag up to its end, which counts only outside brackets: {{ {"a": {}} }}.
func (l *lexer) code(end tokenKind) error {
	var open []byte // the closing brackets that are due
	for l.pos < len(l.src) {
		if len(open) == 0 && l.tagEnd(end) {
			return nil
		}
		rest := l.src[l.pos:]
		if r, n := utf8.DecodeRuneInString(rest); isSpace(r) {
			l.advance(l.pos + n)
			continue
		}
		if kind, n := scanNumber(rest, l.pos > 0 && l.src[l.pos-1] == '.'); n > 0 {
			l.emit(kind, strings.ReplaceAll(rest[:n], "_", ""))
			l.advance(l.pos + n)
			continue
		}
		if n := scanName(rest); n > 0 {
			l.emit(tokName, rest[:n])
			l.advance(l.pos + n)
			continue
		}
		if rest[0] == '\'' || rest[0] == '"' {
			if err := l.stringLiteral(rest); err != nil {
				return err
			}
			continue
		}
		op := operatorAt(rest)
		if op == "" {
			r, _ := utf8.DecodeRuneInString(rest)
			return syntaxError(l.line, "unexpected char %q at %d", r, l.pos)
		}
		var err error
		if open, err = l.balance(open, op); err != nil {
			return err
		}
		l.emit(tokOperator, op)
		l.advance(l.pos + len(op))
	}
	return nil
}

// tagEnd consumes the end of the tag if it stands here.
func (l *lexer) tagEnd(end tokenKind) bool {
	rest := l.src[l.pos:]
	sign := byte(0)
	if rest[0] == '-' || rest[0] == '+' && end == tokBlockEnd {
		sign, rest = rest[0], rest[1:]
	}
	want := "%}"
	if end == tokPrintEnd {
		want = "}}"
	}
	if !strings.HasPrefix(rest, want) {
		return false
	}
	l.emit(end, "")
	l.advance(l.closeTag(len(l.src)-len(rest)+2, sign == '-', sign == '+' || end == tokPrintEnd))
	return true
}

func (l *lexer) balance(open []byte, op string) ([]byte, error) {
	switch op {
	case "(":
		return append(open, ')'), nil
	case "[":
		return append(open, ']'), nil
	case "{":
		return append(open, '}'), nil
	case ")", "]", "}":
		if len(open) == 0 {
			return nil, syntaxError(l.line, "unexpected '%s'", op)
		}
		if want := open[len(open)-1]; want != op[0] {
			return nil, syntaxError(l.line, "unexpected '%s', expected '%c'", op, want)
		}
		return open[:len(open)-1], nil
	}
	return open, nil
}

func operatorAt(s string) string {
	for _, op := range operators {
		if strings.HasPrefix(s, op) {
			return op
		}
	}
	return ""
}

// scanName returns the length of the identifier at the beginning of s.
func scanName(s string) int {
	for i, r := range s {
		if r == '_' || unicode.IsLetter(r) || i > 0 && (unicode.IsNumber(r) || unicode.IsMark(r)) {
			continue
		}
		return i
	}
	return len(s)
}

// scanNumber returns the kind and length of the number at the beginning of s. After a dot there are no floats:
// x.0.1 indexes twice.
func scanNumber(s string, afterDot bool) (tokenKind, int) {
	if s[0] < '0' || s[0] > '9' {
		return 0, 0
	}
	if n := scanFloat(s); n > 0 && !afterDot {
		return tokFloat, n
	}
	if s[0] == '0' && len(s) > 1 {
		digits := ""
		switch s[1] | 0x20 {
		case 'b':
			digits = "01"
		case 'o':
			digits = "01234567"
		case 'x':
			digits = "0123456789abcdefABCDEF"
		}
		start := 2
		if len(s) > 2 && s[2] == '_' {
			start = 3
		}
		if n := scanDigits(s[start:], digits); n > 0 {
			return tokInteger, start + n
		}
	}
	if s[0] == '0' {
		return tokInteger, scanDigits(s, "0")
	}
	return tokInteger, scanDigits(s, "0123456789")
}

// scanDigits returns the length of digits with single underscores between them.
func scanDigits(s, digits string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.IndexByte(digits, s[i]) >= 0:
			n = i + 1
		case s[i] != '_' || n != i || i == 0:
			return n
		}
	}
	return n
}

func scanFloat(s string) int {
	const decimal = "0123456789"
	whole := scanDigits(s, decimal)
	end, float := whole, false
	if end < len(s) && s[end] == '.' {
		if n := scanDigits(s[end+1:], decimal); n > 0 {
			end, float = end+1+n, true
		}
	}
	if end < len(s) && s[end]|0x20 == 'e' {
		exp := end + 1
		if exp < len(s) && (s[exp] == '+' || s[exp] == '-') {
			exp++
		}
		if n := scanDigits(s[exp:], decimal); n > 0 {
			end, float = exp+n, true
		}
	}
	if !float {
		return 0
	}
	return end
}

func (l *lexer) stringLiteral(rest string) error {
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			text, err := unescape(rest[1:i])
			if err != nil {
				return at(err, l.line)
			}
			l.emit(tokString, text)
			l.advance(l.pos + i + 1)
			return nil
		}
	}
	return syntaxError(l.line, "the string that begins here has no end: %.20q", rest)
}

var simpleEscapes = map[byte]string{
	'\n': "", '\\': "\\", '\'': "'", '"': "\"", 'a': "\a", 'b': "\b", 'f': "\f", 'n': "\n", 'r': "\r", 't': "\t",
	'v': "\v",
}

// unescape resolves Python's escapes. An unknown escape stays as it is, backslash included. A lone surrogate,
// which UTF-8 cannot hold, becomes U+FFFD.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i >= len(s) {
			return "", fail(Syntax, "\\ at end of string")
		}
		if text, ok := simpleEscapes[s[i]]; ok {
			b.WriteString(text)
			continue
		}
		n, err := numericEscape(&b, s[i:])
		if err != nil {
			return "", err
		}
		i += n - 1
	}
	return b.String(), nil
}

// numericEscape writes the character of an octal, \x, \u or \U escape and returns how much of s it took.
func numericEscape(b *strings.Builder, s string) (int, error) {
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	if digits > 0 {
		if len(s) > digits {
			if v, err := strconv.ParseUint(s[1:1+digits], 16, 32); err == nil && v <= unicode.MaxRune {
				b.WriteRune(rune(v))
				return 1 + digits, nil
			}
		}
		return 0, fail(Syntax, "\\%c in a string needs %d hexadecimal digits of a character", s[0], digits)
	}
	if s[0] == 'N' {
		return 0, fail(Syntax, "\\N{…} in a string is not supported: write \\u or \\U")
	}
	n, v := 0, 0
	for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
		v, n = v*8+int(s[n]-'0'), n+1
	}
	if n == 0 {
		b.WriteByte('\\')
		return 0, nil
	}
	b.WriteRune(rune(v))
	return n, nil
}
