package jinja

// mapFilter applies a filter, or reads an attribute, of every element.
func mapFilter(r *run, v Value, a callArgs) (Value, error) {
	return r.lazily(v, func() (func(Value) (Value, bool, error), error) {
		each, err := r.mapping(a)
		return func(item Value) (Value, bool, error) {
			item, err := each(item)
			return item, true, err
		}, err
	}), nil
}

// lazily makes a generator of what pick makes of the elements of v that it keeps. Nothing happens, not even
// the check of arguments in prepare, before the first element is wanted; anything false counts as empty.
func (r *run) lazily(v Value, prepare func() (pick func(Value) (Value, bool, error), err error)) Value {
	var pull next
	var pick func(Value) (Value, bool, error)
	return generator(func() (item Value, ok bool, err error) {
		if !truth(v) {
			return nil, false, nil
		}
		if pull == nil {
			if pick, err = prepare(); err != nil {
				return nil, false, err
			}
			if pull, err = r.iterate(v); err != nil {
				return nil, false, err
			}
		}
		for {
			if item, ok, err = pull(); err != nil || !ok {
				return nil, false, err
			}
			if item, ok, err = pick(item); err != nil || ok {
				return item, err == nil, err
			}
		}
	})
}

func (r *run) mapping(a callArgs) (key, error) {
	if len(a.pos) == 0 && indexOf(a.names, "attribute") >= 0 {
		var other Value
		var path Value = None{}
		for i, name := range a.names {
			switch name {
			case "attribute":
				path = a.named[i]
			case "default":
				other = a.named[i]
			default:
				return nil, fail(Type, "map: unexpected keyword argument '%s'", name)
			}
		}
		return r.attribute(path, other), nil
	}
	if len(a.pos) == 0 {
		return nil, fail(Type, "map requires a filter argument")
	}
	name := textOr(a.pos[0], "")
	f := r.lib.filters[name]
	if f == nil {
		return nil, fail(Runtime, "No filter named '%s'.", name)
	}
	rest := callArgs{pos: a.pos[1:], names: a.names, named: a.named}
	return func(v Value) (Value, error) {
		if err := r.enter(); err != nil { // map("map", "map", …)
			return nil, err
		}
		defer r.leave()
		return f.call(r, v, rest)
	}, nil
}

// choose makes select, reject, selectattr and rejectattr: elements for which a test holds, or does not.
func choose(keep, ofAttribute bool) func(*run, Value, callArgs) (Value, error) {
	return func(r *run, v Value, a callArgs) (Value, error) {
		return r.lazily(v, func() (func(Value) (Value, bool, error), error) {
			by := func(v Value) (Value, error) { return v, nil }
			args := a
			if ofAttribute {
				if len(a.pos) == 0 {
					return nil, fail(Type, "Missing parameter for attribute name")
				}
				by = r.attribute(a.pos[0], nil)
				args.pos = a.pos[1:]
			}
			holds, err := r.testNamed(args)
			return func(item Value) (Value, bool, error) {
				tested, err := by(item)
				if err != nil {
					return nil, false, err
				}
				ok, err := holds(tested)
				return item, ok == keep, err
			}, err
		}), nil
	}
}

// testNamed is the test whose name is the first argument; without one, the truth of the value.
func (r *run) testNamed(a callArgs) (func(Value) (bool, error), error) {
	if len(a.pos) == 0 {
		return func(v Value) (bool, error) { return truth(v), nil }, nil
	}
	name := textOr(a.pos[0], "")
	t := r.lib.tests[name]
	if t == nil {
		return nil, fail(Runtime, "No test named '%s'.", name)
	}
	rest := callArgs{pos: a.pos[1:], names: a.names, named: a.named}
	return func(v Value) (bool, error) {
		out, err := t.call(r, v, rest)
		if err != nil {
			return false, err
		}
		return truth(out), nil
	}, nil
}
