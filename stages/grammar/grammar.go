package grammar

import (
	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// Grammar is a list of rules; rule 0 is what the whole text must be.
type Grammar struct {
	Rules []Rule
}

// Rule is one rule: a name for messages, and the expression that the name stands for.
type Rule struct {
	Name string
	Body Expr
}

// Expr is a set of texts. The zero value is the empty text.
type Expr struct {
	kind     kind
	of       []Expr
	text     string  // literal
	set      []rune  // chars: pairs of first and last, ascending; bytes: the same, one after the other
	min, max int     // repeat; max < 0: no end
	rule     int     // call
	lexeme   *Lexeme // word
	list     *List   // members
}

type kind uint8

const (
	empty kind = iota
	fail
	literal
	chars
	seq
	alt
	repeat
	call
	word
	members
	rawBytes
)

// Spelling is how a lexeme's characters become bytes.
type Spelling uint8

// The spellings.
const (
	Plain Spelling = iota // UTF-8
	JSON                  // a JSON string with its quotes; any character may be escaped as JSON allows
)

// Lexeme is a regular language and how its words are spelled. A length bound stands beside the language and not in
// it, because a language of 65536 states would be no use to anybody.
type Lexeme struct {
	Lang     *lang.DFA // not empty
	Spelling Spelling
	Min, Max int // characters; Max < 0: no bound. Only with lang.Any
}

// Empty is the empty text.
func Empty() Expr { return Expr{} }

// Fail is the empty set: no text at all, not even the empty one.
func Fail() Expr { return Expr{kind: fail} }

// Text is a text as it stands.
func Text(s string) Expr { return Expr{kind: literal, text: s} }

// Chars is one character of the ranges, pairs of first and last.
func Chars(ranges ...rune) Expr { return Expr{kind: chars, set: ranges} }

// Seq is a text of each expression, one after the other.
func Seq(of ...Expr) Expr { return Expr{kind: seq, of: of} }

// Alt is the texts of any of some expressions.
func Alt(of ...Expr) Expr { return Expr{kind: alt, of: of} }

// Repeat is min to max times e; a negative max is no bound.
func Repeat(e Expr, min, max int) Expr { return Expr{kind: repeat, of: []Expr{e}, min: min, max: max} }

// Call is the texts of a rule.
func Call(rule int) Expr { return Expr{kind: call, rule: rule} }

// Word is a word of a lexeme.
func Word(l *Lexeme) Expr {
	if l.Lang.Empty() || (l.Max >= 0 && l.Max < l.Min) {
		return Fail()
	}
	return Expr{kind: word, lexeme: l}
}

// Regex is the grammar of the texts that an expression in RE2's syntax matches from end to end.
func Regex(expr string, limits Limits) (*Grammar, error) {
	left := limits.budget()
	d, err := lang.Full(expr, &left)
	if err != nil {
		return nil, fault("regular expression", err)
	}
	if d.Empty() {
		return nil, fault("regular expression", errNothing)
	}
	l := &Lexeme{Lang: d, Max: -1}
	return &Grammar{Rules: []Rule{{Name: "root", Body: Word(l)}}}, nil
}
