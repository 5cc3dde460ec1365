package grammar

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// GBNF reads llama.cpp's form of grammars: rules `name ::= expression` of "literals", [classes], . for any character,
// names, groups, | and the repetitions * + ? {m} {m,} {m,n}. The rule root is the text. Comments begin with #.
// Described at https://github.com/ggml-org/llama.cpp/tree/master/grammars.
func GBNF(text string) (*Grammar, error) {
	r := reader{text: text, rules: map[string]int{}}
	r.rule("root")
	r.blank(true)
	for r.at < len(r.text) && r.err == nil {
		r.definition()
	}
	if r.err != nil {
		return nil, r.err
	}
	for i, x := range r.grammar.Rules {
		if !r.defined[i] {
			return nil, fmt.Errorf("grammar: rule %q is used or wanted, but nowhere defined: add %s ::= …", x.Name, x.Name)
		}
	}
	return &r.grammar, nil
}

// reader reads the text of a grammar.
type reader struct {
	text    string
	at      int
	grammar Grammar
	rules   map[string]int
	defined []bool
	depth   int
	err     error
}

const (
	deepestGroup = 200    // groups within groups
	mostRepeats  = 20_000 // {m,n}
)

// rule returns the number of a rule.
func (r *reader) rule(name string) int {
	i, ok := r.rules[name]
	if !ok {
		i = len(r.grammar.Rules)
		r.rules[name] = i
		r.grammar.Rules = append(r.grammar.Rules, Rule{Name: name, Body: Fail()})
		r.defined = append(r.defined, false)
	}
	return i
}

// fail keeps the first fault, with the line where it is.
func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		line := 1 + strings.Count(r.text[:min(r.at, len(r.text))], "\n")
		r.err = fmt.Errorf("grammar: line %d: %s", line, fmt.Sprintf(format, args...))
	}
}

// blank passes blanks and comments, and ends of lines where an expression may go on in the next one.
func (r *reader) blank(lines bool) {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; {
		case c == ' ' || c == '\t':
			r.at++
		case lines && (c == '\n' || c == '\r'):
			r.at++
		case c == '#':
			for r.at < len(r.text) && r.text[r.at] != '\n' {
				r.at++
			}
		default:
			return
		}
	}
}

func (r *reader) has(s string) bool {
	if strings.HasPrefix(r.text[r.at:], s) {
		r.at += len(s)
		return true
	}
	return false
}

// next is the character ahead, 0 at the end.
func (r *reader) next() byte {
	if r.at < len(r.text) {
		return r.text[r.at]
	}
	return 0
}

func (r *reader) name() string {
	from := r.at
	for r.at < len(r.text) {
		c := r.text[r.at]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			break
		}
		r.at++
	}
	return r.text[from:r.at]
}

func (r *reader) definition() {
	name := r.name()
	if name == "" {
		r.fail("found %q where a rule's name should stand", r.ahead())
		return
	}
	r.blank(false)
	if !r.has("::=") {
		r.fail("found %q after the name %q, want ::=", r.ahead(), name)
		return
	}
	i := r.rule(name)
	r.blank(true)
	body := r.alternatives(false)
	r.grammar.Rules[i].Body, r.defined[i] = body, true
	r.blank(false)
	if r.err == nil && r.at < len(r.text) && !strings.ContainsRune("\n\r", rune(r.text[r.at])) {
		r.fail("found %q where rule %q should end", r.ahead(), name)
	}
	r.blank(true)
}

// ahead shows what stands at the place of a fault.
func (r *reader) ahead() string {
	s := r.text[r.at:]
	for i := range s {
		if i >= 12 {
			return s[:i]
		}
	}
	return s
}

func (r *reader) alternatives(nested bool) Expr {
	ways := []Expr{r.sequence(nested)}
	for r.err == nil && r.next() == '|' {
		r.at++
		r.blank(true)
		ways = append(ways, r.sequence(nested))
	}
	if len(ways) == 1 {
		return ways[0]
	}
	return Alt(ways...)
}

func (r *reader) sequence(nested bool) Expr {
	var of []Expr
	for r.err == nil {
		x, ok := r.item()
		if !ok {
			break
		}
		r.blank(nested)
		of = append(of, r.repeated(x, nested))
	}
	return Seq(of...)
}

// item reads what a repetition may follow.
func (r *reader) item() (Expr, bool) {
	switch c := r.next(); {
	case c == '"':
		r.at++
		return r.literal(), true
	case c == '[':
		r.at++
		return r.class(), true
	case c == '.':
		r.at++
		return anyChar(), true
	case c == '(':
		r.at++
		if r.depth++; r.depth > deepestGroup {
			r.fail("groups lie more than %d deep", deepestGroup)
			return Expr{}, false
		}
		r.blank(true)
		x := r.alternatives(true)
		r.depth--
		if !r.has(")") {
			r.fail("found %q where a group should end with )", r.ahead())
		}
		return x, true
	case strings.ContainsRune("*+?{", rune(c)) && c != 0:
		r.fail("%q repeats nothing", c)
		return Expr{}, false
	}
	if name := r.name(); name != "" {
		return Call(r.rule(name)), true
	}
	return Expr{}, false
}

// repeated reads the repetitions behind x.
func (r *reader) repeated(x Expr, nested bool) Expr {
	for r.err == nil {
		switch r.next() {
		case '*':
			x = Repeat(x, 0, -1)
		case '+':
			x = Repeat(x, 1, -1)
		case '?':
			x = Repeat(x, 0, 1)
		case '{':
			x = r.bounds(x)
		default:
			return x
		}
		r.at++
		r.blank(nested)
	}
	return x
}

// bounds reads {m}, {m,} or {m,n} up to the brace that closes it.
func (r *reader) bounds(x Expr) Expr {
	r.at++
	r.blank(false)
	low, ok := r.number()
	if !ok {
		return x
	}
	high := low
	r.blank(false)
	if r.has(",") {
		r.blank(false)
		if high = -1; r.next() != '}' {
			if high, ok = r.number(); !ok {
				return x
			}
		}
		r.blank(false)
	}
	switch {
	case r.next() != '}':
		r.fail("found %q in a repetition, want }", r.ahead())
	case high >= 0 && high < low:
		r.fail("{%d,%d}: the second bound is below the first", low, high)
	}
	return Repeat(x, low, high)
}

func (r *reader) number() (int, bool) {
	n, from := 0, r.at
	for r.at < len(r.text) && r.text[r.at] >= '0' && r.text[r.at] <= '9' {
		if n = n*10 + int(r.text[r.at]-'0'); n > mostRepeats {
			r.fail("a repetition of more than %d", mostRepeats)
			return 0, false
		}
		r.at++
	}
	if r.at == from {
		r.fail("found %q in a repetition, want a number", r.ahead())
		return 0, false
	}
	return n, true
}

func (r *reader) literal() Expr {
	var text []byte
	for r.err == nil {
		if r.at >= len(r.text) || r.text[r.at] == '\n' {
			r.fail("a literal that no \" ends")
			break
		}
		if r.has(`"`) {
			break
		}
		text = utf8.AppendRune(text, r.char())
	}
	return Text(string(text))
}

// char reads a character of a literal or class.
func (r *reader) char() rune {
	if !r.has(`\`) {
		c, size := utf8.DecodeRuneInString(r.text[r.at:])
		r.at += size
		return c
	}
	c := r.next()
	r.at++
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case '\\', '"', '[', ']', '-', '^':
		return rune(c)
	case 'x':
		return r.code(2)
	case 'u':
		return r.code(4)
	case 'U':
		return r.code(8)
	}
	r.at--
	r.fail(`\%s is no escape: want one of \n \r \t \\ \" \[ \] \x41 \u0041 \U00000041`, string(rune(c)))
	return 0
}

func (r *reader) code(digits int) rune {
	n := rune(0)
	for range digits {
		c := r.next()
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			n = n<<4 | rune(c|0x20-'a'+10)
		default:
			r.fail("an escape that lacks digits: want %d", digits)
			return 0
		}
		r.at++
	}
	if n < 0 || n > utf8.MaxRune || n >= 0xD800 && n <= 0xDFFF {
		r.fail("U+%X is no character", uint32(n))
		return 0
	}
	return n
}

func (r *reader) class() Expr {
	not := r.has("^")
	var set []rune
	for r.err == nil {
		if r.at >= len(r.text) || r.text[r.at] == '\n' {
			r.fail("a class that no ] ends")
			break
		}
		if r.has("]") {
			break
		}
		lo := r.char()
		hi := lo
		if rest := r.text[min(r.at, len(r.text)):]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
			r.at++
			hi = r.char()
		}
		if hi < lo {
			r.fail("the range %c-%c is upside down", lo, hi)
		}
		set = append(set, lo, hi)
	}
	if not {
		return Alt(Chars(ranges(append(set, 0, 0), true)...), beyond())
	}
	return Chars(ranges(set, false)...)
}

// anyChar is what . means: all but U+0000, which llama.cpp takes for the end of a text.
func anyChar() Expr { return Alt(Chars(1, utf8.MaxRune), beyond()) }

// beyond are the sequences of bytes that are formed like characters, but with numbers that no character has. As in
// llama.cpp, whose masks are the reference, what may be any character may be such a sequence.
func beyond() Expr {
	return Expr{kind: rawBytes, set: []rune{0xF5, 0xFF, 0x80, 0xBF, 0x80, 0xBF, 0x80, 0xBF}}
}
