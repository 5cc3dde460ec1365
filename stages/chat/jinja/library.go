package jinja

// standard is everything that templates find by name. It never changes.
var standard = library{
	filters: named(merged(sequenceFilters, textFilters, numberFilters, markupFilters)),
	tests:   named(testTable),
	globals: named(globalTable),
	methods: map[string]map[string]*builtin{
		"str": named(merged(stringMethods, stringPredicates)), "list": named(listMethods), "tuple": named(tupleMethods),
		"dict": named(dictMethods), "int": named(intMethods), "float": named(floatMethods), "bytes": named(bytesMethods),
		"range": named(tupleMethods), "Cycler": named(cyclerMethods), "LoopContext": named(loopMethods),
	},
}

// forbidden marks methods that exist in Python and that the sandbox does not let templates use.
var forbidden = &builtin{name: "forbidden"}

func merged(tables ...map[string]*builtin) map[string]*builtin {
	all := map[string]*builtin{}
	for _, t := range tables {
		for name, b := range t {
			all[name] = b
		}
	}
	return all
}

// asText is a string argument, or an error that names the function.
func asText(fn string, v Value) (string, error) {
	if s, ok := text(v); ok {
		return s, nil
	}
	if u, ok := v.(*undefined); ok {
		return "", u.fault()
	}
	return "", fail(Type, "%s() argument must be str, not %s", fn, v.class())
}

// asCount is an integer argument that fits, or an error; other is used where none is given.
func asCount(fn string, v Value, other int) (int, error) {
	if v == nil {
		return other, nil
	}
	if u, ok := v.(*undefined); ok {
		return 0, u.fault()
	}
	n, ok := asInt(v)
	if !ok {
		return 0, fail(Type, "%s(): '%s' object cannot be interpreted as an integer", fn, v.class())
	}
	if !n.IsInt64() || n.Int64() > 1<<40 || n.Int64() < -1<<40 {
		return 0, fail(Overflow, "%s(): Python int too large to convert to C ssize_t", fn)
	}
	return int(n.Int64()), nil
}

// given tells whether an optional argument was passed and is not None.
func given(v Value) bool {
	if v == nil {
		return false
	}
	_, none := v.(None)
	return !none
}

// flag is an optional truth argument.
func flag(v Value) bool { return v != nil && truth(v) }

// undefinedHint is an undefined value with its own message.
func undefinedHint(hint string) Value { return &undefined{kind: UndefinedValue, hint: hint} }
