package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
)

// FromJSON decodes one JSON value, keeping the order of keys, integers of any size and the difference between 1
// and 1.0.
func FromJSON(data []byte) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decode(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("JSON: byte %d: more follows the value, want only one", d.InputOffset())
	}
	return v, nil
}

// maxJSONDepth bounds nested arrays and objects.
const maxJSONDepth = 1000

func decode(d *json.Decoder, depth int) (Value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, jsonError(d, err)
	}
	switch x := t.(type) {
	case nil:
		return None{}, nil
	case bool:
		return Bool(x), nil
	case string:
		return Str(x), nil
	case json.Number:
		return jsonNumber(string(x))
	case json.Delim:
		if depth >= maxJSONDepth {
			return nil, fmt.Errorf("JSON: byte %d: nested deeper than %d levels", d.InputOffset(), maxJSONDepth)
		}
		if x == '[' {
			return decodeArray(d, depth)
		}
		return decodeObject(d, depth)
	}
	return nil, fmt.Errorf("JSON: byte %d: unexpected %v", d.InputOffset(), t)
}

func jsonError(d *json.Decoder, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("JSON: byte %d: %w", d.InputOffset(), err)
}

func jsonNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := json.Number(s).Float64() // too large: infinity, as in Python
		return Float(f), nil
	}
	if len(s) > maxDigits {
		return nil, fmt.Errorf("JSON: an integer of %d digits, at most %d are accepted", len(s), maxDigits)
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fmt.Errorf("JSON: %.40q is no number", s)
	}
	return normInt(n), nil
}

func decodeArray(d *json.Decoder, depth int) (Value, error) {
	l := &List{Items: []Value{}}
	for d.More() {
		v, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := d.Token()
	if err != nil {
		return nil, jsonError(d, err)
	}
	return l, nil
}

func decodeObject(d *json.Decoder, depth int) (Value, error) {
	out := &Dict{}
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, jsonError(d, err)
		}
		key, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf("JSON: byte %d: a key is %v, want a string", d.InputOffset(), k)
		}
		v, err := decode(d, depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(key, v)
	}
	if _, err := d.Token(); err != nil {
		return nil, jsonError(d, err)
	}
	return out, nil
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
