package jinja

import (
	"math/big"
	"strings"
)

// Value is a Python value: one of the types of this file, or a callable (call.go), a loop or a macro.
type Value interface{ class() string } // the name of its Python class

type (
	// None is Python's None.
	None struct{}
	// Bool is a truth value; it counts as 0 or 1 in arithmetic.
	Bool bool
	// Int is an integer that fits into 64 bits.
	Int int64
	// Float is a float.
	Float float64
	// Str is a string of characters (code points), in UTF-8.
	Str string
	// Tuple is an immutable sequence.
	Tuple []Value

	bigInt   struct{ n *big.Int } // an integer beyond 64 bits; never modified
	markup   string               // a string that is safe HTML: autoescaping leaves it as it is
	byteText []byte               // Python's bytes, from str.encode
)

// List is a mutable sequence: a template can remove its elements, so a rendering owns its lists.
type List struct{ Items []Value }

// rangeValue is range(start, stop, step).
type rangeValue struct{ start, stop, step int64 }

// view is dict.keys(), .values() or .items(): it follows its dict.
type view struct {
	kind string // dict_keys, dict_values, dict_items
	of   *Dict
}

// iterator is a value that can be walked once: a generator of a filter.
type iterator struct {
	name string // its Python class
	next next
}

// next pulls one value; false ends the walk.
type next func() (Value, bool, error)

// namespace holds the only variables that a template can assign from an inner scope.
type namespace struct{ vars *Dict }

// undefined is what a missing variable, attribute or element gives. Printing and testing it is fine; using it
// is an error that says what was missing.
type undefined struct {
	of   Value  // what lacks it; nil for a variable
	name Value  // variable, attribute or index
	hint string // the whole message, when it is not the usual one
	kind Kind   // UndefinedValue, or Security for a forbidden attribute
}

func (None) class() string          { return "NoneType" }
func (Bool) class() string          { return "bool" }
func (Int) class() string           { return "int" }
func (bigInt) class() string        { return "int" }
func (Float) class() string         { return "float" }
func (Str) class() string           { return "str" }
func (markup) class() string        { return "Markup" }
func (byteText) class() string      { return "bytes" }
func (Tuple) class() string         { return "tuple" }
func (*List) class() string         { return "list" }
func (*Dict) class() string         { return "dict" }
func (*rangeValue) class() string   { return "range" }
func (v *view) class() string       { return v.kind }
func (i *iterator) class() string   { return i.name }
func (*namespace) class() string    { return "Namespace" }
func (*undefined) class() string    { return "Undefined" }
func missingName(name string) Value { return &undefined{name: Str(name), kind: UndefinedValue} }

// fault is the error of using an undefined value.
func (u *undefined) fault() error {
	switch {
	case u.hint != "":
		return fail(u.kind, "%s", u.hint)
	case u.of == nil:
		return fail(u.kind, "'%s' is undefined", textOr(u.name, "?"))
	case u.kind == Security:
		return fail(u.kind, "access to attribute '%s' of '%s' object is unsafe.", textOr(u.name, "?"), u.of.class())
	}
	if name, ok := text(u.name); ok {
		return fail(u.kind, "%s has no attribute '%s'", quoted(u.of), name)
	}
	key, _ := brief(u.name)
	return fail(u.kind, "%s has no element %s", strings.Trim(quoted(u.of), "'"), key)
}

func quoted(v Value) string {
	if _, ok := v.(None); ok {
		return "'None'"
	}
	return "'" + v.class() + " object'"
}

// text returns the characters of a string, marked as safe or not.
func text(v Value) (string, bool) {
	switch s := v.(type) {
	case Str:
		return string(s), true
	case markup:
		return string(s), true
	}
	return "", false
}

func textOr(v Value, other string) string {
	if s, ok := text(v); ok {
		return s
	}
	return other
}

// truth is Python's bool(v).
func truth(v Value) bool {
	switch x := v.(type) {
	case None, *undefined:
		return false
	case Bool:
		return bool(x)
	case Int:
		return x != 0
	case Float:
		return x != 0
	case Str:
		return x != ""
	case markup:
		return x != ""
	case byteText:
		return len(x) > 0
	case Tuple:
		return len(x) > 0
	case *List:
		return len(x.Items) > 0
	case *Dict:
		return x.Len() > 0
	case *view:
		return x.of.Len() > 0
	case *rangeValue:
		return x.len() > 0
	}
	return true
}

// len counts the numbers of a range.
func (r *rangeValue) len() int64 {
	switch {
	case r.step > 0 && r.start < r.stop:
		return (r.stop-r.start-1)/r.step + 1
	case r.step < 0 && r.start > r.stop:
		return (r.start-r.stop-1)/-r.step + 1
	}
	return 0
}

func (r *rangeValue) at(i int64) Value { return Int(r.start + i*r.step) }

// items of a view, as a walk would give them.
func (v *view) at(i int) Value {
	switch v.kind {
	case "dict_keys":
		return v.of.keys[i]
	case "dict_values":
		return v.of.values[i]
	}
	return Tuple{v.of.keys[i], v.of.values[i]}
}
