package jsontext

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"
)

// Value is a JSON value: Null, Bool, Number, String, List or *Object. nil stands for no value.
type Value interface{ json() }

type (
	Null   struct{}
	Bool   bool
	Number string // as it is spelled
	String string
	List   []Value
)

// Object has members in the order in which they came. A key that came twice has its last value at its first place.
// The zero value is empty; nil is an empty object for methods that change nothing.
type Object struct {
	keys   []string
	values []Value
	places map[string]int // nil while the object is small
}

func (Null) json()    {}
func (Bool) json()    {}
func (Number) json()  {}
func (String) json()  {}
func (List) json()    {}
func (*Object) json() {}

// smallObject is the number of members up to which a linear search is faster than a map.
const smallObject = 8

func (o *Object) find(key string) int {
	if o == nil {
		return -1
	}
	if o.places != nil {
		if i, ok := o.places[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range o.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// Len returns the number of members.
func (o *Object) Len() int {
	if o == nil {
		return 0
	}
	return len(o.keys)
}

// Has reports whether there is a member with that key, null included.
func (o *Object) Has(key string) bool { return o.find(key) >= 0 }

// Get returns the value of a member; nil if there is none.
func (o *Object) Get(key string) Value {
	if i := o.find(key); i >= 0 {
		return o.values[i]
	}
	return nil
}

// Text returns the value of a string member; "" if there is none.
func (o *Object) Text(key string) string {
	s, _ := o.Get(key).(String)
	return string(s)
}

// Object returns the value of an object member; nil if there is none.
func (o *Object) Object(key string) *Object {
	inner, _ := o.Get(key).(*Object)
	return inner
}

// Set adds or replaces a member.
func (o *Object) Set(key string, v Value) {
	if i := o.find(key); i >= 0 {
		o.values[i] = v
		return
	}
	o.keys, o.values = append(o.keys, key), append(o.values, v)
	switch {
	case o.places != nil:
		o.places[key] = len(o.keys) - 1
	case len(o.keys) > smallObject:
		o.places = make(map[string]int, 2*len(o.keys))
		for i, k := range o.keys {
			o.places[k] = i
		}
	}
}

// With returns a copy of o with a member set.
func (o *Object) With(key string, v Value) *Object {
	c := &Object{}
	for k, old := range o.All() {
		c.Set(k, old)
	}
	c.Set(key, v)
	return c
}

// All yields the members in their order.
func (o *Object) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if o == nil {
			return
		}
		for i, k := range o.keys {
			if !yield(k, o.values[i]) {
				return
			}
		}
	}
}

// Given reports whether v is a value other than null.
func Given(v Value) bool {
	_, null := v.(Null)
	return v != nil && !null
}

// Limits of Parse: maxValueDepth bounds the nesting, maxDigits an integer's length, as Python's int does.
const (
	maxValueDepth = 1000
	maxDigits     = 4300
)

var errNumber = errors.New("an integer that is too long")

// Parse parses a text that is one value. Its errors come from the budget, or name the byte at which the text is
// wrong.
func Parse(text string, b *Budget) (Value, error) {
	if !utf8.ValidString(text) {
		return nil, errors.New("JSON: it is not UTF-8")
	}
	r := New(text, maxValueDepth, b)
	v, err := r.Value()
	if err == nil {
		err = r.End()
	}
	var syntax *SyntaxError
	var deep *DepthError
	switch {
	case errors.As(err, &syntax), errors.As(err, &deep):
		return nil, fmt.Errorf("JSON: %w", err)
	case errors.Is(err, errNumber):
		return nil, fmt.Errorf("JSON: byte %d: %w", r.At(), err)
	case err != nil:
		return nil, err
	}
	return v, nil
}

// Value reads the next value.
func (r *Reader) Value() (Value, error) {
	switch r.Next() {
	case '"':
		s, err := r.String()
		return String(s), err
	case '[':
		list := List{}
		err := r.Array(func() error {
			v, err := r.Value()
			list = append(list, v)
			return err
		})
		return list, err
	case '{':
		o := &Object{}
		return o, r.Object(func(key string) error {
			v, err := r.Value()
			o.Set(key, v)
			return err
		})
	}
	s, err := r.Scalar()
	if err != nil {
		return nil, err
	}
	switch s {
	case "null":
		return Null{}, nil
	case "true", "false":
		return Bool(s == "true"), nil
	}
	if len(s) > maxDigits && !strings.ContainsAny(s, ".eE") {
		return nil, fmt.Errorf("%w: %d digits, at most %d are accepted", errNumber, len(s), maxDigits)
	}
	if len(s) < shared {
		s = strings.Clone(s)
	}
	return Number(s), nil
}
