package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// search returns the language of the strings in which an expression of ECMA-262 matches somewhere.
func (c *compiler) search(expr string) (*lang.DFA, error) {
	key := "search " + expr
	if d := c.langs[key]; d != nil {
		return d, nil
	}
	re2, err := translate(expr)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", shown(expr), err)
	}
	d, err := lang.Search(re2, &c.left)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", shown(expr), err)
	}
	c.langs[key] = d
	return d, nil
}

// full returns the language of the texts that an expression of our own matches.
func (c *compiler) full(expr string) (*lang.DFA, error) {
	key := "full " + expr
	if c.langs[key] == nil {
		d, err := lang.Full(expr, &c.left)
		if err != nil {
			return nil, err
		}
		c.langs[key] = d
	}
	return c.langs[key], nil
}

const jsSpace = `\t-\r \x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}\x{FEFF}`

// translate writes an expression of ECMA-262 in RE2's syntax, where they differ.
func translate(expr string) (string, error) {
	var b strings.Builder
	class := false
	for i := 0; i < len(expr); i++ {
		switch ch := expr[i]; {
		case ch == '\\':
			n, err := translateEscape(&b, expr[i:], class)
			if err != nil {
				return "", err
			}
			i += n - 1
		case class && ch == ']':
			class = false
			b.WriteByte(ch)
		case class && ch == '[':
			b.WriteString(`\[`)
		case class:
			b.WriteByte(ch)
		case strings.HasPrefix(expr[i:], "[^]"):
			b.WriteString(`(?s:.)`)
			i += 2
		case strings.HasPrefix(expr[i:], "[]"):
			b.WriteString(`[^\x00-\x{10FFFF}]`)
			i++
		case ch == '[':
			class = true
			b.WriteByte(ch)
			if strings.HasPrefix(expr[i:], "[^") {
				b.WriteByte('^')
				i++
			}
		case ch == '.':
			b.WriteString(`[^\n\r\x{2028}\x{2029}]`)
		case strings.HasPrefix(expr[i:], "(?=") || strings.HasPrefix(expr[i:], "(?!") || strings.HasPrefix(expr[i:], "(?<=") ||
			strings.HasPrefix(expr[i:], "(?<!"):
			return "", fmt.Errorf("look-around (%s) is not supported", expr[i:i+3])
		default:
			b.WriteByte(ch)
		}
	}
	return b.String(), nil
}

// translateEscape writes the escape that s begins with, and returns its length.
func translateEscape(b *strings.Builder, s string, class bool) (int, error) {
	if len(s) < 2 {
		return 0, fmt.Errorf("it ends in a backslash")
	}
	switch c := s[1]; {
	case c == 's' && class:
		b.WriteString(jsSpace)
	case c == 's':
		b.WriteString("[" + jsSpace + "]")
	case c == 'S' && !class:
		b.WriteString("[^" + jsSpace + "]")
	case c == 'u':
		return translateCode(b, s)
	case c == 'c' && len(s) > 2:
		fmt.Fprintf(b, `\x%02X`, s[2]&0x1F)
		return 3, nil
	case c == 'b' && class:
		b.WriteString(`\x08`)
	case c == '0':
		b.WriteString(`\x00`)
	case strings.IndexByte("dDwWbBtnvfrxpP", c) >= 0:
		b.WriteString(s[:2])
	case c == '_' || c == '/' || c == '"' || c == '\'':
		b.WriteByte(c)
	case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		return 0, fmt.Errorf("%s is not supported", s[:2])
	case c >= 0x80:
		return 1, nil // the character stands for itself
	default:
		b.WriteString(s[:2])
	}
	return 2, nil
}

// translateCode writes \u0041 or \u{41}.
func translateCode(b *strings.Builder, s string) (int, error) {
	digits, n := "", 0
	if strings.HasPrefix(s, `\u{`) {
		if end := strings.IndexByte(s, '}'); end > 0 {
			digits, n = s[3:end], end+1
		}
	} else if len(s) >= 6 {
		digits, n = s[2:6], 6
	}
	code, err := strconv.ParseUint(digits, 16, 21)
	if err != nil {
		return 0, fmt.Errorf(`\u without four digits`)
	}
	if code >= 0xD800 && code <= 0xDBFF && len(s) >= 12 && s[6:8] == `\u` { // two halves
		if low, err := strconv.ParseUint(s[8:12], 16, 21); err == nil && low >= 0xDC00 && low <= 0xDFFF {
			code, n = 0x10000+(code-0xD800)<<10+low-0xDC00, 12
		}
	}
	fmt.Fprintf(b, `\x{%X}`, code)
	return n, nil
}
