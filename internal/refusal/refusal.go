// Package refusal has the error of a request that asks for what cannot be.
package refusal

import (
	"errors"
	"fmt"
)

// Error is a request's fault; its text is meant for the user.
type Error struct {
	Text    string
	TooLong bool // there are more tokens than the context holds
}

func (e *Error) Error() string { return e.Text }

// Of returns a fault with a text.
func Of(format string, args ...any) error { return &Error{Text: fmt.Sprintf(format, args...)} }

// TooLong returns the fault of a request with more tokens than the context holds.
func TooLong(format string, args ...any) error {
	return &Error{Text: fmt.Sprintf(format, args...), TooLong: true}
}

// In returns err as the fault of a request's field; a fault stays as it is.
func In(field string, err error) error {
	if errors.As(err, new(*Error)) {
		return err
	}
	return Of("%s: %v", field, err)
}
