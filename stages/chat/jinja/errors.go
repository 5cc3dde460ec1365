package jinja

import (
	"errors"
	"fmt"
	"strings"
)

// Kind classifies an error the way Python's exception classes would.
type Kind uint8

// The kinds of errors. Raised is a template's own refusal (raise_exception); Limit is ours: a budget ran out.
const (
	Raised Kind = iota + 1
	Syntax
	Assertion
	Runtime
	UndefinedValue
	Security
	Type
	Argument
	ZeroDivision
	Overflow
	Missing
	Recursion
	Limit
)

var kindNames = [...]string{
	Raised: "TemplateError", Syntax: "TemplateSyntaxError", Assertion: "TemplateAssertionError",
	Runtime: "TemplateRuntimeError", UndefinedValue: "UndefinedError", Security: "SecurityError",
	Type: "TypeError", Argument: "ValueError", ZeroDivision: "ZeroDivisionError", Overflow: "OverflowError",
	Missing: "KeyError", Recursion: "RecursionError", Limit: "LimitError",
}

// String returns the name of the Python exception class (LimitError for Limit, which Python lacks).
func (k Kind) String() string { return kindNames[k] }

// Error is what parsing and rendering return. Line counts from 1; 0 means unknown.
type Error struct {
	Kind Kind
	Line int
	Msg  string
}

// Error gives a template's own refusal word for word; any other error with its place and class.
func (e *Error) Error() string {
	if e.Kind == Raised {
		return e.Msg
	}
	if e.Line == 0 {
		return fmt.Sprintf("chat template: %s: %s", e.Kind, e.Msg)
	}
	return fmt.Sprintf("chat template line %d: %s: %s", e.Line, e.Kind, e.Msg)
}

// maxMessage bounds our own messages: they may quote names that a template made up.
const maxMessage = 400

func fail(k Kind, format string, a ...any) error {
	msg := fmt.Sprintf(format, a...)
	if len(msg) > maxMessage {
		msg = strings.ToValidUTF8(msg[:maxMessage], "") + "…"
	}
	return &Error{Kind: k, Msg: msg}
}

func syntaxError(line int, format string, a ...any) error {
	return &Error{Kind: Syntax, Line: line, Msg: fmt.Sprintf(format, a...)}
}

// at notes the line of the innermost statement that failed.
func at(err error, line int) error {
	if e := (*Error)(nil); errors.As(err, &e) && e.Line == 0 {
		e.Line = line
	}
	return err
}
