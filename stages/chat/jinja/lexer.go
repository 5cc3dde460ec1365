package jinja

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota // end of template
	tokData
	tokBlockBegin
	tokBlockEnd
	tokPrintBegin
	tokPrintEnd
	tokName
	tokString
	tokInteger
	tokFloat
	tokOperator
)

// token is one piece of source. text is the value: unescaped for strings, digits without "_" for numbers.
type token struct {
	kind tokenKind
	text string
	line int
}

func (t token) is(op string) bool  { return t.kind == tokOperator && t.text == op }
func (t token) word(w string) bool { return t.kind == tokName && t.text == w }

// describe names a token in error messages as Jinja2 does.
func (t token) describe() string {
	switch t.kind {
	case tokEnd:
		return "end of template"
	case tokData:
		return "template data / text"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	case tokPrintBegin:
		return "begin of print statement"
	case tokPrintEnd:
		return "end of print statement"
	default:
		return t.text
	}
}

// maxSource bounds a template's source. The largest real one has 17 KB.
const maxSource = 4 << 20

type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // the text before pos ended with a newline, or there was none
	tokens    []token
}

func lex(source string) ([]token, error) {
	if len(source) > maxSource {
		return nil, syntaxError(1, "the template has %d bytes, at most %d are accepted", len(source), maxSource)
	}
	if !utf8.ValidString(source) {
		source = strings.ToValidUTF8(source, "\uFFFD")
	}
	if strings.Contains(source, "\r") {
		source = strings.ReplaceAll(strings.ReplaceAll(source, "\r\n", "\n"), "\r", "\n")
	}
	l := &lexer{src: strings.TrimSuffix(source, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.data(); err != nil {
			return nil, err
		}
	}
	l.emit(tokEnd, "")
	return l.tokens, nil
}

func (l *lexer) emit(k tokenKind, text string) {
	l.tokens = append(l.tokens, token{k, text, l.line})
}

// advance consumes source up to end, counting lines.
func (l *lexer) advance(end int) {
	s := l.src[l.pos:end]
	l.line += strings.Count(s, "\n")
	if s != "" {
		l.lineStart = strings.HasSuffix(s, "\n")
	}
	l.pos = end
}

// data lexes text up to and including the next tag.
func (l *lexer) data() error {
	start := l.pos
	open := l.nextTag(start)
	if open < 0 {
		l.emit(tokData, l.src[start:])
		l.advance(len(l.src))
		return nil
	}
	mark, sign, after := l.src[open+1], byte(0), open+2
	if after < len(l.src) && (l.src[after] == '-' || l.src[after] == '+') {
		sign, after = l.src[after], after+1
	}
	if text := l.stripBefore(l.src[start:open], sign, mark != '{'); text != "" {
		l.emit(tokData, text)
	}
	switch mark {
	case '#':
		return l.comment(open, after)
	case '{':
		l.advance(open)
		l.emit(tokPrintBegin, "")
		l.advance(after)
		return l.code(tokPrintEnd)
	}
	if body := rawBody(l.src, after); body >= 0 {
		return l.raw(open, body)
	}
	l.advance(open)
	l.emit(tokBlockBegin, "")
	l.advance(after)
	return l.code(tokBlockEnd)
}

// nextTag finds the next {{, {% or {#.
func (l *lexer) nextTag(from int) int {
	for i := from; ; i++ {
		n := strings.IndexByte(l.src[i:], '{')
		if n < 0 || i+n+1 >= len(l.src) {
			return -1
		}
		i += n
		if c := l.src[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
}

// stripBefore removes the white space before a tag: all of it for "-", and the indentation of a tag that begins
// its line when the tag is a statement or a comment (lstrip_blocks), unless the sign is "+".
func (l *lexer) stripBefore(text string, sign byte, lstrip bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, isSpace)
	case sign == '+' || !lstrip:
		return text
	}
	lineAt := strings.LastIndexByte(text, '\n') + 1
	if (lineAt > 0 || l.lineStart) && strings.TrimLeftFunc(text[lineAt:], isSpace) == "" {
		return text[:lineAt]
	}
	return text
}

func (l *lexer) comment(open, after int) error {
	n := strings.Index(l.src[after:], "#}")
	if n < 0 {
		return syntaxError(l.line, "Missing end of comment tag")
	}
	end := after + n
	trimAll := n > 0 && l.src[end-1] == '-'
	keep := n > 0 && l.src[end-1] == '+'
	l.advance(l.closeTag(end+2, trimAll, keep))
	return nil
}

// closeTag returns where text goes on after a tag that ends before end: "-" eats all white space, otherwise one
// newline goes (trim_blocks) unless keep.
func (l *lexer) closeTag(end int, trimAll, keep bool) int {
	rest := l.src[end:]
	switch {
	case trimAll:
		return end + len(rest) - len(strings.TrimLeftFunc(rest, isSpace))
	case !keep && strings.HasPrefix(rest, "\n"):
		return end + 1
	}
	return end
}

// rawBody returns where the text of a raw block begins if the tag at after is {% raw %}, else -1.
func rawBody(src string, after int) int {
	rest := strings.TrimLeftFunc(src[after:], isSpace)
	rest, ok := strings.CutPrefix(rest, "raw")
	if !ok {
		return -1
	}
	rest = strings.TrimLeftFunc(rest, isSpace)
	if r, ok := strings.CutPrefix(rest, "-%}"); ok {
		return len(src) - len(strings.TrimLeftFunc(r, isSpace))
	}
	if r, ok := strings.CutPrefix(rest, "%}"); ok {
		return len(src) - len(r)
	}
	return -1
}

// raw emits everything up to {% endraw %} as data.
func (l *lexer) raw(open, body int) error {
	line := l.line + strings.Count(l.src[l.pos:open], "\n")
	l.advance(body)
	for i := body; ; i += 2 {
		n := strings.Index(l.src[i:], "{%")
		if n < 0 {
			return syntaxError(line, "Missing end of raw directive")
		}
		i += n
		sign, after := byte(0), i+2
		if after < len(l.src) && (l.src[after] == '-' || l.src[after] == '+') {
			sign, after = l.src[after], after+1
		}
		rest, ok := strings.CutPrefix(strings.TrimLeftFunc(l.src[after:], isSpace), "endraw")
		if !ok {
			continue
		}
		rest = strings.TrimLeftFunc(rest, isSpace)
		closing, ok := strings.CutPrefix(strings.TrimLeft(rest, "+-"), "%}")
		if !ok || len(rest)-len(closing) > 3 {
			continue
		}
		if text := l.stripBefore(l.src[body:i], sign, true); text != "" {
			l.emit(tokData, text)
		}
		l.advance(l.closeTag(len(l.src)-len(closing), rest[0] == '-', rest[0] == '+'))
		return nil
	}
}

// isSpace is Python's str.isspace for one character.
func isSpace(r rune) bool {
	return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f
}
