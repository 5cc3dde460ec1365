package jinja

// scope holds the variables of one body. A loop reuses its scope for every round, so a macro defined in it sees
// the values of the round in which it is called, as in Jinja2.
type scope struct {
	names  []string
	values []Value
	parent *scope
}

func (s *scope) set(name string, v Value) {
	for i, n := range s.names {
		if n == name {
			s.values[i] = v
			return
		}
	}
	s.names = append(s.names, name)
	s.values = append(s.values, v)
}

func (s *scope) get(name string) (Value, bool) {
	for ; s != nil; s = s.parent {
		for i, n := range s.names {
			if n == name {
				return s.values[i], true
			}
		}
	}
	return nil, false
}

// clear forgets the variables and keeps the room.
func (s *scope) clear() { s.names, s.values = s.names[:0], s.values[:0] }

// variable resolves a name: template variables, then what the caller passed, then globals.
func (r *run) variable(name string, s *scope) Value {
	if v, ok := s.get(name); ok {
		return v
	}
	if v, ok := r.vars.Get(name); ok {
		return v
	}
	if b, ok := r.lib.globals[name]; ok {
		return &function{fn: b}
	}
	return missingName(name)
}

// assign writes a target, taking a value apart where the target has several names.
func (r *run) assign(t *target, v Value, s *scope) error {
	switch {
	case t.items != nil:
		return r.unpack(t, v, s)
	case t.attr == "":
		s.set(t.name, v)
		return nil
	}
	ns, ok := r.variable(t.name, s).(*namespace)
	if !ok {
		return fail(Runtime, "cannot assign attribute on non-namespace object")
	}
	ns.vars.Set(t.attr, v)
	return nil
}

func (r *run) unpack(t *target, v Value, s *scope) error {
	pull, err := r.iterate(v)
	if err != nil {
		return err
	}
	for i := range t.items {
		item, ok, err := pull()
		if err != nil {
			return err
		}
		if !ok {
			return fail(Argument, "not enough values to unpack (expected %d, got %d)", len(t.items), i)
		}
		if err := r.assign(&t.items[i], item, s); err != nil {
			return err
		}
	}
	if _, more, err := pull(); err != nil || more {
		if err == nil {
			err = fail(Argument, "too many values to unpack (expected %d)", len(t.items))
		}
		return err
	}
	return nil
}
