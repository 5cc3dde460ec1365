package tools

import (
	"bytes"
	"strconv"
	"strings"
)

// value turns one value, as models write it, into JSON while it comes: JSON itself, the literals of Python, keys
// without quotes, strings in quotes of a family's own, and line ends within strings, which JSON does not allow.
type value struct {
	quote string // one more way to quote a string, without escapes; "" for none
	bare  bool   // strings in single quotes have no escapes, but for that of a quote within

	open   []byte // the brackets that are open: { or [
	closer string // what ends the string that we are in; "" outside
	plain  bool   // that string knows no escapes
	comma  bool   // seen, and written once something follows: the last one may be one too many
	key    bool   // a key or the end of an object must come
	colon  bool   // a colon must come

	begun, done, bad bool
}

// take consumes what it can of a text and appends JSON. What is left may be the beginning of something, unless the text
// is final.
func (v *value) take(text, out []byte, final bool) (n int, _ []byte) {
	for n < len(text) && !v.done && !v.bad {
		var used int
		if v.closer != "" {
			used, out = v.str(text[n:], out, final)
		} else {
			used, out = v.token(text[n:], out, final)
		}
		if used == 0 {
			break
		}
		n += used
	}
	if final && n == len(text) && len(v.open) == 0 && v.closer == "" && v.begun {
		v.done = true
	}
	return n, out
}

// token consumes one token outside strings; none where it may go on, or where something went wrong or ended.
func (v *value) token(text, out []byte, final bool) (int, []byte) {
	switch c := text[0]; c {
	case ' ', '\t', '\r', '\n':
		return 1, out
	case '{', '[', '(':
		return v.push(c, out)
	case '}', ']', ')':
		return v.pop(c, out)
	case ',':
		if len(v.open) == 0 {
			v.done = true
			return 0, out
		}
		v.bad = v.bad || v.colon || v.comma
		v.comma, v.key = true, v.open[len(v.open)-1] == '{'
		return 1, out
	case ':':
		v.bad = v.bad || !v.colon
		v.colon, v.key = false, false
		return 1, append(out, ": "...)
	case '"', '\'':
		return v.startString(string(c), false, out)
	}
	if v.quote != "" {
		if bytes.HasPrefix(text, []byte(v.quote)) {
			return v.startString(v.quote, true, out)
		}
		if !final && strings.HasPrefix(v.quote, string(text)) {
			return 0, out
		}
	}
	return v.word(text, out, final)
}

// next is called before anything of a value or key is written.
func (v *value) next(out []byte) []byte {
	v.bad = v.bad || v.colon
	if v.comma {
		out = append(out, ", "...)
	}
	v.comma, v.begun = false, true
	return out
}

// ended is called after a value or key.
func (v *value) ended() {
	if v.key {
		v.key, v.colon = false, true
	} else if len(v.open) == 0 {
		v.done = true
	}
}

func (v *value) push(c byte, out []byte) (int, []byte) {
	v.bad = v.bad || v.key || len(v.open) == maxDepth
	out = v.next(out)
	if c == '(' {
		c = '['
	}
	v.open, v.key = append(v.open, c), c == '{'
	return 1, append(out, c)
}

// maxDepth is how deep arguments nest.
const maxDepth = 200

func (v *value) pop(c byte, out []byte) (int, []byte) {
	if len(v.open) == 0 {
		v.done, v.bad = v.begun, !v.begun
		return 0, out
	}
	object := v.open[len(v.open)-1] == '{'
	v.bad = v.bad || v.colon || object != (c == '}')
	v.open, v.comma, v.key = v.open[:len(v.open)-1], false, false
	if c == ')' {
		c = ']'
	}
	out = append(out, c)
	v.ended()
	return 1, out
}

func (v *value) startString(quote string, plain bool, out []byte) (int, []byte) {
	out = v.next(out)
	v.closer, v.plain = quote, plain
	return len(quote), append(out, '"')
}

func (v *value) str(text, out []byte, final bool) (i int, _ []byte) {
	closer := []byte(v.closer)
	for i < len(text) {
		switch rest := text[i:]; {
		case bytes.HasPrefix(rest, closer):
			v.closer = ""
			v.ended()
			return i + len(closer), append(out, '"')
		case !final && bytes.HasPrefix(closer, rest):
			return i, out
		case rest[0] == '\\' && v.bare && v.closer == "'":
			if len(rest) < 3 && !final {
				return i, out
			}
			if len(rest) > 1 && rest[1] == '\'' && !(len(rest) > 2 && strings.IndexByte(",)]}", rest[2]) >= 0) {
				i++ // the quote follows
				out = append(out, '\'')
			} else {
				out = append(out, '\\', '\\')
			}
			i++
		case rest[0] == '\\' && !v.plain:
			if len(rest) == 1 {
				if final {
					i++
				}
				return i, out
			}
			if strings.IndexByte(`"\/bfnrtu`, rest[1]) >= 0 {
				out = append(out, '\\', rest[1])
				i += 2
				continue
			}
			if rest[1] == '\'' {
				out = append(out, '\'')
				i += 2
				continue
			}
			out = append(out, '\\', '\\')
			i++
		default:
			out = appendJSON(out, rest[:1])
			i++
		}
	}
	return i, out
}

// appendJSON appends text as it stands within a string of JSON.
func appendJSON(out, text []byte) []byte {
	const hex = "0123456789abcdef"
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c == '\n':
			out = append(out, '\\', 'n')
		case c == '\r':
			out = append(out, '\\', 'r')
		case c == '\t':
			out = append(out, '\\', 't')
		case c < 0x20:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			out = append(out, c)
		}
	}
	return out
}

// word consumes a name or a number, once what follows it is there.
func (v *value) word(text, out []byte, final bool) (int, []byte) {
	n := bytes.IndexAny(text, " \t\r\n,:{}[]()\"'<=")
	if n < 0 {
		if !final {
			return 0, out
		}
		n = len(text)
	}
	if n == 0 {
		v.bad = true
		return 0, out
	}
	out = v.next(out)
	word := string(text[:n])
	if v.key {
		out = quoted(out, word)
	} else {
		out = literal(out, word)
	}
	v.ended()
	return n, out
}

func quoted(out []byte, text string) []byte {
	return append(appendJSON(append(out, '"'), []byte(text)), '"')
}

// literal appends a bare word as JSON: the constants of JSON and Python, a number, else a string.
func literal(out []byte, word string) []byte {
	switch word {
	case "true", "True":
		return append(out, "true"...)
	case "false", "False":
		return append(out, "false"...)
	case "null", "None":
		return append(out, "null"...)
	}
	if isNumber(word) {
		return append(out, word...)
	}
	if f, err := strconv.ParseFloat(strings.ReplaceAll(word, "_", ""), 64); err == nil && f-f == 0 {
		return strconv.AppendFloat(out, f, 'g', -1, 64)
	}
	return quoted(out, word)
}

// isNumber says whether a text is a number of JSON (RFC 8259, section 6).
func isNumber(s string) bool {
	digits := func() bool {
		n := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		s = s[n:]
		return n > 0
	}
	s = strings.TrimPrefix(s, "-")
	zero := strings.HasPrefix(s, "0")
	before := len(s)
	if !digits() || zero && before-len(s) > 1 {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if s = rest; !digits() {
			return false
		}
	}
	if s != "" && (s[0] == 'e' || s[0] == 'E') {
		if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
			s = s[1:]
		}
		return digits() && s == ""
	}
	return s == ""
}
