package jinja

import "strings"

// callArgs are evaluated arguments: positions first, then names[i]=named[i].
type callArgs struct {
	pos   []Value
	names []string
	named []Value
}

// builtin is a function, method, filter or test of ours. self is the method's object, the filter's input or the
// tested value; nil for functions.
type builtin struct {
	name   string
	params []string // what it takes beside self
	need   int      // how many of them must be given
	fn     func(r *run, self Value, a []Value) (Value, error)
	raw    func(r *run, self Value, a callArgs) (Value, error) // instead of fn: any arguments
}

// takes makes a builtin whose parameters are a list of names, the first need of them required; one that is not
// given is nil.
func takes(need int, params string, fn func(r *run, self Value, a []Value) (Value, error)) *builtin {
	return &builtin{params: strings.Fields(params), need: need, fn: fn}
}

// takesAny makes a builtin that sorts out its arguments itself.
func takesAny(fn func(r *run, self Value, a callArgs) (Value, error)) *builtin {
	return &builtin{raw: fn}
}

// named gives each builtin of a table its name.
func named(table map[string]*builtin) map[string]*builtin {
	for name, b := range table {
		if b.name == "" {
			b.name = name
		}
	}
	return table
}

func (b *builtin) call(r *run, self Value, args callArgs) (Value, error) {
	if b.raw != nil {
		return b.raw(r, self, args)
	}
	if len(args.pos) > len(b.params) {
		return nil, fail(Type, "%s() takes at most %d arguments (%d given)", b.name, len(b.params), len(args.pos))
	}
	var few [4]Value
	bound := few[:]
	if len(b.params) > len(few) {
		bound = make([]Value, len(b.params))
	}
	bound = bound[:len(b.params)]
	copy(bound, args.pos)
	for i, name := range args.names {
		at := indexOf(b.params, name)
		if at < 0 {
			return nil, fail(Type, "%s() got an unexpected keyword argument '%s'", b.name, name)
		}
		if bound[at] != nil {
			return nil, fail(Type, "%s() got multiple values for argument '%s'", b.name, name)
		}
		bound[at] = args.named[i]
	}
	for i := range b.need {
		if bound[i] == nil {
			return nil, fail(Type, "%s() missing required argument '%s'", b.name, b.params[i])
		}
	}
	return b.fn(r, self, bound)
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

// function is a builtin as a value; self is set for bound methods.
type function struct {
	fn   *builtin
	self Value
}

func (f *function) class() string {
	if f.self != nil {
		return "builtin_function_or_method"
	}
	return "function"
}

// macro is a macro as a value, with the scope of its definition.
type macro struct {
	def   *macroDef
	scope *scope
}

func (*macro) class() string { return "Macro" }

// call calls any value that can be called.
func (r *run) call(fn Value, args callArgs) (Value, error) {
	switch f := fn.(type) {
	case *function:
		return f.fn.call(r, f.self, args)
	case *macro:
		return r.callMacro(f, args)
	case *loop:
		return f.call(r, args)
	case *joiner:
		return f.call(args)
	case *undefined:
		return nil, f.fault()
	}
	return nil, fail(Type, "'%s' object is not callable", fn.class())
}

func callable(v Value) bool {
	switch l := v.(type) {
	case *function, *macro, *joiner:
		return true
	case *loop:
		return l != nil
	case *undefined:
		return true // Undefined has __call__, which fails
	}
	return false
}

func (r *run) callMacro(m *macro, args callArgs) (Value, error) {
	inner := &scope{parent: m.scope}
	if err := r.bindMacro(m.def, inner, args); err != nil {
		return nil, err
	}
	text, _, err := r.capture(func() (flow, error) { return r.deeper(m.def.body, inner) })
	if err != nil {
		return nil, err
	}
	return r.captured(text), nil
}

// bindMacro sets a macro's parameters and implicit variables.
func (r *run) bindMacro(d *macroDef, s *scope, args callArgs) error {
	given := make([]Value, len(d.params))
	extra := callArgs{pos: args.pos[copy(given, args.pos):]}
	for i, name := range args.names {
		if at := indexOf(d.params, name); at >= 0 {
			if given[at] != nil {
				return fail(Type, "macro '%s' got multiple values for argument '%s'", d.name, name)
			}
			given[at] = args.named[i]
			continue
		}
		extra.names, extra.named = append(extra.names, name), append(extra.named, args.named[i])
	}
	firstDefault := len(d.params) - len(d.defaults)
	for i, name := range d.params {
		v := given[i]
		if v == nil {
			v = &undefined{name: Str(name), kind: UndefinedValue,
				hint: "parameter '" + name + "' was not provided"}
			if i >= firstDefault {
				var err error
				if v, err = r.eval(d.defaults[i-firstDefault], s); err != nil {
					return err
				}
			}
		}
		s.set(name, v)
	}
	return r.bindImplicit(d, s, extra)
}

// bindImplicit sets caller, varargs and kwargs where the body mentions them; other surplus is an error.
func (r *run) bindImplicit(d *macroDef, s *scope, extra callArgs) error {
	rest := &Dict{}
	var caller Value = &undefined{name: Str("caller"), kind: UndefinedValue, hint: "No caller defined"}
	for i, name := range extra.names {
		if name == "caller" && d.usesCaller {
			caller = extra.named[i]
			continue
		}
		rest.Set(name, extra.named[i])
	}
	if d.usesCaller && indexOf(d.params, "caller") < 0 {
		s.set("caller", caller)
	}
	switch {
	case d.usesKwargs:
		s.set("kwargs", rest)
	case rest.Len() > 0:
		return fail(Type, "macro '%s' takes no keyword argument '%s'", d.name, textOr(rest.keys[0], "?"))
	}
	switch {
	case d.usesVarargs:
		s.set("varargs", Tuple(extra.pos))
	case len(extra.pos) > 0:
		return fail(Type, "macro '%s' takes not more than %d argument(s)", d.name, len(d.params))
	}
	return nil
}

// attr returns what a macro tells about itself.
func (m *macro) attr(name string) (Value, bool) {
	switch name {
	case "name":
		return Str(m.def.name), true
	case "arguments":
		names := make(Tuple, len(m.def.params))
		for i, p := range m.def.params {
			names[i] = Str(p)
		}
		return names, true
	case "caller":
		return Bool(m.def.usesCaller), true
	case "catch_kwargs":
		return Bool(m.def.usesKwargs), true
	case "catch_varargs":
		return Bool(m.def.usesVarargs), true
	}
	return nil, false
}

// describeObject is the repr of values that Python shows with an address, which we leave out.
func describeObject(v Value) string {
	switch x := v.(type) {
	case *macro:
		return "<Macro '" + x.def.name + "'>"
	case *function:
		if x.self != nil {
			return "<built-in method " + x.fn.name + " of " + x.self.class() + " object>"
		}
		return "<function " + x.fn.name + ">"
	case *loop:
		return x.describe()
	}
	return "<" + v.class() + " object>"
}
