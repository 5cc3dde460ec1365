// Package meta holds a model file's metadata: ordered keys with typed values, as GGUF defines them.
//
// The file reader fills a Map; architectures, tokenizers and templates read it through typed lookups that
// say which key is missing or of the wrong type. Nothing here knows any particular key.
package meta

import (
	"errors"
	"fmt"
	"math"
)

// ErrMissing is wrapped by lookups of a key that the file does not have.
var ErrMissing = errors.New("missing from the metadata")

// Integer lists the integer types that a value can have.
type Integer interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64
}

// Map is a set of keys in file order. A value is one of the Integer types, float32, float64, bool or
// string, or a slice of one of those; a slice of slices is a []any of such slices.
type Map struct {
	keys   []string
	values map[string]any
}

// Set adds key, or replaces its value.
func (m *Map) Set(key string, value any) {
	if m.values == nil {
		m.values = make(map[string]any)
	}
	if _, ok := m.values[key]; !ok {
		m.keys = append(m.keys, key)
	}
	m.values[key] = value
}

// Keys lists the keys in file order. The caller must not change the slice.
func (m *Map) Keys() []string { return m.keys }

// Get returns the value of key as it stands in the file.
func (m *Map) Get(key string) (any, bool) {
	v, ok := m.values[key]
	return v, ok
}

// Has reports whether the file has key.
func (m *Map) Has(key string) bool {
	_, ok := m.values[key]
	return ok
}

// String returns a text value.
func (m *Map) String(key string) (string, error) { return lookup[string](m, key, "a string") }

// Bool returns a truth value.
func (m *Map) Bool(key string) (bool, error) { return lookup[bool](m, key, "a bool") }

// Strings returns an array of texts. The caller must not change it.
func (m *Map) Strings(key string) ([]string, error) {
	return lookup[[]string](m, key, "an array of strings")
}

// Bools returns an array of truth values. The caller must not change it.
func (m *Map) Bools(key string) ([]bool, error) { return lookup[[]bool](m, key, "an array of bools") }

// Int returns a value of any integer type that fits an int64.
func (m *Map) Int(key string) (int64, error) {
	v, ok := m.values[key]
	if !ok {
		return 0, fmt.Errorf("%s: %w", key, ErrMissing)
	}
	n, ok := asInt(v)
	if !ok {
		return 0, mismatch(key, v, "an integer")
	}
	return n, nil
}

// Float returns a value of any numeric type as a float64.
func (m *Map) Float(key string) (float64, error) {
	v, ok := m.values[key]
	if !ok {
		return 0, fmt.Errorf("%s: %w", key, ErrMissing)
	}
	switch x := v.(type) {
	case float32:
		return float64(x), nil
	case float64:
		return x, nil
	}
	if n, ok := asInt(v); ok {
		return float64(n), nil
	}
	return 0, mismatch(key, v, "a number")
}

// Ints returns an array of any integer type, copied to int64.
func (m *Map) Ints(key string) ([]int64, error) {
	v, ok := m.values[key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, ErrMissing)
	}
	out, ok := asInts(v)
	if !ok {
		return nil, mismatch(key, v, "an array of integers")
	}
	return out, nil
}

// Floats returns an array of float32. The caller must not change it.
func (m *Map) Floats(key string) ([]float32, error) {
	v, ok := m.values[key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, ErrMissing)
	}
	switch x := v.(type) {
	case []float32:
		return x, nil
	case []float64:
		out := make([]float32, len(x))
		for i, f := range x {
			out[i] = float32(f)
		}
		return out, nil
	}
	return nil, mismatch(key, v, "an array of floats")
}

// Bytes returns an array of bytes, signed or not, as raw bytes. The caller must not change it.
func (m *Map) Bytes(key string) ([]byte, error) {
	v, ok := m.values[key]
	if !ok {
		return nil, fmt.Errorf("%s: %w", key, ErrMissing)
	}
	switch x := v.(type) {
	case []uint8:
		return x, nil
	case []int8:
		out := make([]byte, len(x))
		for i, b := range x {
			out[i] = byte(b)
		}
		return out, nil
	}
	return nil, mismatch(key, v, "an array of bytes")
}

func lookup[T any](m *Map, key, want string) (T, error) {
	var zero T
	v, ok := m.values[key]
	if !ok {
		return zero, fmt.Errorf("%s: %w", key, ErrMissing)
	}
	t, ok := v.(T)
	if !ok {
		return zero, mismatch(key, v, want)
	}
	return t, nil
}

func mismatch(key string, v any, want string) error {
	return fmt.Errorf("%s: is of type %T, want %s", key, v, want)
}

func asInt(v any) (int64, bool) {
	switch x := v.(type) {
	case uint8:
		return int64(x), true
	case int8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case int16:
		return int64(x), true
	case uint32:
		return int64(x), true
	case int32:
		return int64(x), true
	case uint64:
		return int64(x), x <= math.MaxInt64
	case int64:
		return x, true
	}
	return 0, false
}

func asInts(v any) ([]int64, bool) {
	switch x := v.(type) {
	case []uint8:
		return widen(x), true
	case []int8:
		return widen(x), true
	case []uint16:
		return widen(x), true
	case []int16:
		return widen(x), true
	case []uint32:
		return widen(x), true
	case []int32:
		return widen(x), true
	case []int64:
		return widen(x), true
	case []uint64:
		for _, n := range x {
			if n > math.MaxInt64 {
				return nil, false
			}
		}
		return widen(x), true
	}
	return nil, false
}

func widen[T Integer](x []T) []int64 {
	out := make([]int64, len(x))
	for i, n := range x {
		out[i] = int64(n)
	}
	return out
}
