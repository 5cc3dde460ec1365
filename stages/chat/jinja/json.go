package jinja

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// FromJSON decodes one JSON value, keeping the order of keys, integers of any size and the difference between 1
// and 1.0. Long strings stay parts of text. The budget, which may be nil, bounds how many values there are.
func FromJSON(text string, b *jsontext.Budget) (Value, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("JSON: it is not UTF-8")
	}
	r := jsontext.New(text, maxJSONDepth, b)
	v, err := ReadJSON(r)
	if err == nil {
		err = r.End()
	}
	if err != nil {
		return nil, jsonError(r, err)
	}
	return v, nil
}

// maxJSONDepth bounds nested arrays and objects.
const maxJSONDepth = 1000

func jsonError(r *jsontext.Reader, err error) error {
	var syntax *jsontext.SyntaxError
	var deep *jsontext.DepthError
	switch {
	case errors.As(err, &syntax), errors.As(err, &deep):
		return fmt.Errorf("JSON: %w", err)
	case errors.Is(err, errNumber):
		return fmt.Errorf("JSON: byte %d: %w", r.At(), err)
	}
	return err
}

// ReadJSON decodes the value that comes next.
func ReadJSON(r *jsontext.Reader) (Value, error) {
	switch r.Next() {
	case '"':
		s, err := r.String()
		return Str(s), err
	case '[':
		l := &List{Items: []Value{}}
		return l, r.Array(func() error {
			v, err := ReadJSON(r)
			l.Items = append(l.Items, v)
			return err
		})
	case '{':
		d := &Dict{}
		return d, r.Object(func(key string) error {
			v, err := ReadJSON(r)
			d.Set(key, v)
			return err
		})
	}
	s, err := r.Scalar()
	if err != nil {
		return nil, err
	}
	switch s {
	case "null":
		return None{}, nil
	case "true", "false":
		return Bool(s == "true"), nil
	}
	return jsonNumber(s)
}

var errNumber = errors.New("an integer that is too long")

func jsonNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // too large: infinity, as in Python
		return Float(f), nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("%w: %d digits, at most %d are accepted", errNumber, len(s), maxDigits)
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return Int(n), nil
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("JSON: %.40q is no number", s)
	}
	return normInt(n), nil
}

// ToJSON encodes a value as FromJSON reads it: keys in order, non-ASCII characters as they are.
func ToJSON(v Value) ([]byte, error) {
	limits := DefaultLimits()
	r := &run{limits: limits, steps: limits.Steps, memory: limits.Memory}
	out, err := toJSON(r, v, make([]Value, 4))
	if err != nil {
		return nil, err
	}
	s, _ := text(out)
	return []byte(s), nil
}
