package jinja

import "strings"

// is makes a test from a predicate that needs no argument.
func is(p func(v Value) bool) *builtin {
	return takes(0, "", func(_ *run, v Value, _ []Value) (Value, error) { return Bool(p(v)), nil })
}

// compares makes a test from a comparison operator.
func compares(op string) *builtin {
	return takes(1, "other", func(r *run, v Value, a []Value) (Value, error) {
		ok, err := r.compare(op, v, a[0])
		return Bool(ok), err
	})
}

// remainder makes a test of v % divisor == want; a nil divisor is the argument.
func remainder(divisor Value, want Int) *builtin {
	need, params := 0, ""
	if divisor == nil {
		need, params = 1, "num"
	}
	return takes(need, params, func(r *run, v Value, a []Value) (Value, error) {
		d := divisor
		if d == nil {
			d = a[0]
		}
		m, err := r.binary("%", v, d)
		if err != nil {
			return nil, err
		}
		ok, err := r.equal(m, want)
		return Bool(ok), err
	})
}

func ofClass(names ...string) *builtin {
	return is(func(v Value) bool { return indexOf(names, v.class()) >= 0 })
}

var testTable = map[string]*builtin{
	"defined":     is(func(v Value) bool { _, u := v.(*undefined); return !u }),
	"undefined":   is(func(v Value) bool { _, u := v.(*undefined); return u }),
	"none":        ofClass("NoneType"),
	"boolean":     ofClass("bool"),
	"integer":     ofClass("int"),
	"float":       ofClass("float"),
	"number":      is(isNumber),
	"string":      is(isText),
	"mapping":     ofClass("dict"),
	"sequence":    ofClass("str", "Markup", "list", "tuple", "dict", "range", "bytes", "Undefined"),
	"callable":    is(callable),
	"escaped":     ofClass("Markup"),
	"true":        is(func(v Value) bool { b, ok := v.(Bool); return ok && bool(b) }),
	"false":       is(func(v Value) bool { b, ok := v.(Bool); return ok && !bool(b) }),
	"odd":         remainder(Int(2), 1),
	"even":        remainder(Int(2), 0),
	"divisibleby": remainder(nil, 0),

	"eq": compares("=="), "equalto": compares("=="), "==": compares("=="),
	"ne": compares("!="), "!=": compares("!="),
	"lt": compares("<"), "lessthan": compares("<"), "<": compares("<"),
	"le": compares("<="), "<=": compares("<="),
	"gt": compares(">"), "greaterthan": compares(">"), ">": compares(">"),
	"ge": compares(">="), ">=": compares(">="),
	"in": compares("in"),

	"iterable": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		if _, ok := v.(*loop); ok {
			return Bool(true), nil
		}
		_, err := r.walk(v)
		return Bool(err == nil), nil
	}),
	"sameas": takes(1, "other", func(_ *run, v Value, a []Value) (Value, error) {
		return Bool(identical(v, a[0])), nil
	}),
	"lower": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		s, err := r.toText(v)
		return Bool(isCased(s, strings.ToLower)), err
	}),
	"upper": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		s, err := r.toText(v)
		return Bool(isCased(s, strings.ToUpper)), err
	}),
	"filter": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		return Bool(r.lib.filters[textOr(v, "")] != nil), nil
	}),
	"test": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		return Bool(r.lib.tests[textOr(v, "")] != nil), nil
	}),
}
