package jinja

// mapFilter applies a filter, or reads an attribute, of every element.
func mapFilter(r *run, v Value, a callArgs) (Value, error) {
	each, err := r.mapping(a)
	if err != nil {
		return nil, err
	}
	pull, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	return generator(func() (Value, bool, error) {
		item, ok, err := pull()
		if err != nil || !ok {
			return nil, false, err
		}
		item, err = each(item)
		return item, err == nil, err
	}), nil
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
		by := func(v Value) (Value, error) { return v, nil }
		if ofAttribute {
			if len(a.pos) == 0 {
				return nil, fail(Type, "Missing parameter for attribute name")
			}
			by = r.attribute(a.pos[0], nil)
			a.pos = a.pos[1:]
		}
		holds, err := r.testNamed(a)
		if err != nil {
			return nil, err
		}
		pull, err := r.iterate(v)
		if err != nil {
			return nil, err
		}
		return generator(func() (Value, bool, error) {
			for {
				item, ok, err := pull()
				if err != nil || !ok {
					return nil, false, err
				}
				tested, err := by(item)
				if err != nil {
					return nil, false, err
				}
				if ok, err = holds(tested); err != nil || ok == keep {
					return item, err == nil, err
				}
			}
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
