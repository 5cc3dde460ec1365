package jsontext

import (
	"errors"
	"fmt"
	"strings"
)

// Budget bounds the number of values in a request, for all of its readers together. A nil Budget bounds nothing.
type Budget struct {
	Values int          // objects, lists, keys and all others that may still be read one by one
	Stop   func() error // asked from time to time; an error ends the reading

	stopped error // what Stop said
}

// ErrTooMany is returned when a Budget has no values left.
var ErrTooMany = errors.New("it has too many values")

// Spent reports whether err comes from the budget and not from the text.
func (b *Budget) Spent(err error) bool {
	return b != nil && err != nil && (errors.Is(err, ErrTooMany) || b.stopped != nil && errors.Is(err, b.stopped))
}

// SyntaxError is an error in the text at byte At. At the end of the text it may just be incomplete.
type SyntaxError struct {
	At   int // byte
	Want string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("byte %d: want %s", e.At, e.Want) }

// DepthError is an error for a text that nests deeper than Most levels, at byte At.
type DepthError struct{ At, Most int }

func (e *DepthError) Error() string {
	return fmt.Sprintf("byte %d: nested deeper than %d levels", e.At, e.Most)
}

// Reader reads one text from left to right.
type Reader struct {
	text   string
	at     int
	depth  int // levels that may still be opened
	most   int
	budget *Budget
	asked  int // place at which the budget's Stop was asked last

	skipping int // values around this one that are passed over: they cost nothing
}

// New returns a reader of text, which must be UTF-8, and may nest up to depth levels.
func New(text string, depth int, b *Budget) *Reader {
	return &Reader{text: text, depth: depth, most: depth, budget: b}
}

// askEvery is the number of bytes between two calls of the budget's Stop.
const askEvery = 64 << 10

// Next returns the first byte of the next value, or 0 at the end of the text.
func (r *Reader) Next() byte {
	for r.at < len(r.text) {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\r', '\n':
			r.at++
		default:
			return c
		}
	}
	return 0
}

// At returns the position in the text, in bytes.
func (r *Reader) At() int { return r.at }

// End fails if anything but white space follows.
func (r *Reader) End() error {
	if r.Next() != 0 || r.at < len(r.text) {
		return r.fault("the end: more follows the value")
	}
	return nil
}

func (r *Reader) fault(want string) error { return &SyntaxError{r.at, want} }

// spend charges one value to the budget.
func (r *Reader) spend() error {
	if r.budget == nil || r.skipping > 0 {
		return nil
	}
	if r.budget.Values--; r.budget.Values < 0 {
		return ErrTooMany
	}
	return r.ask()
}

func (r *Reader) ask() error {
	if r.budget == nil || r.budget.Stop == nil || r.at-r.asked < askEvery {
		return nil
	}
	r.asked = r.at
	r.budget.stopped = r.budget.Stop()
	return r.budget.stopped
}

// Object reads an object. It calls member with each key; member must read the value.
func (r *Reader) Object(member func(key string) error) error {
	return r.inside('{', '}', func() error {
		if r.Next() != '"' {
			return r.fault("a key")
		}
		key, err := r.String()
		if err != nil {
			return err
		}
		if r.Next() != ':' {
			return r.fault("a colon")
		}
		r.at++
		return member(key)
	})
}

// Array reads a list. It calls element for each entry; element must read it.
func (r *Reader) Array(element func() error) error { return r.inside('[', ']', element) }

func (r *Reader) inside(open, end byte, each func() error) error {
	if r.Next() != open {
		return r.fault(string(open))
	}
	if r.depth == 0 {
		return &DepthError{r.at, r.most}
	}
	if err := r.spend(); err != nil {
		return err
	}
	r.depth--
	r.at++
	if r.Next() != end {
		for {
			if err := each(); err != nil {
				return err
			}
			c := r.Next()
			if c == end {
				break
			}
			if c != ',' {
				return r.fault("a comma, or " + string(end))
			}
			r.at++
		}
	}
	r.at++
	r.depth++
	return nil
}

// Raw skips one value of any size, and returns its text.
func (r *Reader) Raw() (string, error) {
	r.Next()
	from := r.at
	err := r.skip()
	return r.text[from:r.at], err
}

// skip skips a value without charging the budget.
func (r *Reader) skip() error {
	if err := r.ask(); err != nil {
		return err
	}
	switch r.Next() {
	case '"':
		_, err := r.quoted()
		return err
	case '{', '[':
		r.skipping++
		defer func() { r.skipping-- }()
		if r.text[r.at] == '[' {
			return r.Array(r.skip)
		}
		return r.inside('{', '}', func() error {
			if _, err := r.quoted(); err != nil {
				return err
			}
			if r.Next() != ':' {
				return r.fault("a colon")
			}
			r.at++
			return r.skip()
		})
	}
	_, err := r.scalar()
	return err
}

// Scalar reads null, true, false or a number, and returns its text.
func (r *Reader) Scalar() (string, error) {
	if err := r.spend(); err != nil {
		return "", err
	}
	return r.scalar()
}

func (r *Reader) scalar() (string, error) {
	c := r.Next()
	for _, word := range [...]string{"null", "true", "false"} {
		if c == word[0] {
			for i := range len(word) {
				if r.at+i >= len(r.text) || r.text[r.at+i] != word[i] {
					r.at = min(r.at+i, len(r.text))
					return "", r.fault(word)
				}
			}
			r.at += len(word)
			return word, nil
		}
	}
	if c != '-' && !digit(c) {
		return "", r.fault("a value")
	}
	from := r.at
	err := r.number()
	return r.text[from:r.at], err
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// number skips -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (r *Reader) number() error {
	if r.text[r.at] == '-' {
		r.at++
	}
	if r.at < len(r.text) && r.text[r.at] == '0' {
		r.at++
	} else if err := r.digits(); err != nil {
		return err
	}
	if r.at < len(r.text) && r.text[r.at] == '.' {
		r.at++
		if err := r.digits(); err != nil {
			return err
		}
	}
	if r.at < len(r.text) && r.text[r.at]|0x20 == 'e' {
		r.at++
		if r.at < len(r.text) && (r.text[r.at] == '+' || r.text[r.at] == '-') {
			r.at++
		}
		return r.digits()
	}
	return nil
}

func (r *Reader) digits() error {
	from := r.at
	for r.at < len(r.text) && digit(r.text[r.at]) {
		r.at++
	}
	if r.at == from {
		return r.fault("a digit")
	}
	return nil
}

// shared is the length in bytes from which a string stays a part of the text. Shorter ones are copied, so that they
// do not keep the whole text in memory.
const shared = 16 << 10

// String reads a string.
func (r *Reader) String() (string, error) {
	if r.Next() != '"' {
		return "", r.fault("a string")
	}
	if err := r.spend(); err != nil {
		return "", err
	}
	from := r.at + 1
	plain, err := r.quoted()
	switch {
	case err != nil:
		return "", err
	case !plain:
		return unescape(r.text[from : r.at-1]), nil
	case r.at-from < shared:
		return strings.Clone(r.text[from : r.at-1]), nil
	}
	return r.text[from : r.at-1], nil
}

// quoted skips a string, and reports whether it has no escapes.
func (r *Reader) quoted() (plain bool, err error) {
	if r.Next() != '"' {
		return false, r.fault("a string")
	}
	plain = true
	for r.at++; r.at < len(r.text); r.at++ {
		if r.at-r.asked >= askEvery {
			if err := r.ask(); err != nil {
				return false, err
			}
		}
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return plain, nil
		case c < ' ':
			return false, r.fault("no control character in a string")
		case c == '\\':
			plain = false
			if err := r.escape(); err != nil {
				return false, err
			}
		}
	}
	return false, r.fault("the end of a string")
}

// escape skips an escape up to its last byte.
func (r *Reader) escape() error {
	if r.at++; r.at >= len(r.text) {
		return r.fault("an escape")
	}
	if r.text[r.at] != 'u' {
		if !strings.ContainsRune(`"\/bfnrt`, rune(r.text[r.at])) {
			return r.fault(`an escape such as \n`)
		}
		return nil
	}
	for range 4 {
		if r.at++; r.at >= len(r.text) || nibble(r.text[r.at]) < 0 {
			return r.fault("four hexadecimal digits")
		}
	}
	return nil
}
