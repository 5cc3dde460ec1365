package jinja

func (t *textStmt) exec(r *run, _ *scope) (flow, error) { return flowNext, r.write(t.text) }

func (o *outputStmt) exec(r *run, s *scope) (flow, error) {
	v, err := r.eval(o.of, s)
	if err != nil {
		return flowNext, at(err, o.line)
	}
	text, err := r.toText(v)
	if err != nil {
		return flowNext, at(err, o.line)
	}
	if _, safe := v.(markup); r.escape && !safe {
		text = escapeHTML(text)
	}
	return flowNext, at(r.write(text), o.line)
}

func (i *ifStmt) exec(r *run, s *scope) (flow, error) {
	for k, e := range i.tests {
		ok, err := r.test(e, s)
		if err != nil {
			return flowNext, at(err, i.line)
		}
		if ok {
			return r.deeper(i.bodies[k], s)
		}
	}
	if len(i.bodies) > len(i.tests) {
		return r.deeper(i.bodies[len(i.tests)], s)
	}
	return flowNext, nil
}

// deeper executes a nested body.
func (r *run) deeper(body []stmt, s *scope) (flow, error) {
	if err := r.enter(); err != nil {
		return flowNext, err
	}
	f, err := r.body(body, s)
	r.leave()
	return f, err
}

func (a *setStmt) exec(r *run, s *scope) (flow, error) {
	v, err := r.eval(a.value, s)
	if err == nil {
		err = r.assign(&a.target, v, s)
	}
	return flowNext, at(err, a.line)
}

func (a *setBlockStmt) exec(r *run, s *scope) (flow, error) {
	text, f, err := r.capture(func() (flow, error) { return r.deeper(a.body, &scope{parent: s}) })
	if err != nil || f != flowNext {
		return f, err
	}
	v := r.captured(text)
	if a.filter != nil {
		v, err = r.filtered(a.filter, v, s)
	}
	if err == nil {
		err = r.assign(&a.target, v, s)
	}
	return flowNext, at(err, a.line)
}

// captured is the value of text that a body has rendered: safe already where everything in it was escaped.
func (r *run) captured(text string) Value {
	if r.escape {
		return markup(text)
	}
	return Str(text)
}

func (f *filterStmt) exec(r *run, s *scope) (flow, error) {
	text, fl, err := r.capture(func() (flow, error) { return r.deeper(f.body, &scope{parent: s}) })
	if err != nil || fl != flowNext {
		return fl, err
	}
	v, err := r.filtered(f.filter, r.captured(text), s)
	if err != nil {
		return flowNext, at(err, f.line)
	}
	if text, err = r.toText(v); err == nil {
		err = r.write(text)
	}
	return flowNext, at(err, f.line)
}

// filtered applies filters whose innermost input is v.
func (r *run) filtered(e expr, v Value, s *scope) (Value, error) {
	f, ok := e.(*filterExpr)
	if !ok {
		return v, nil
	}
	if f.of != nil {
		var err error
		if v, err = r.filtered(f.of, v, s); err != nil {
			return nil, err
		}
	}
	return f.apply(r, v, s)
}

func (w *scopeStmt) exec(r *run, s *scope) (flow, error) {
	inner := &scope{parent: s}
	if w.atRoot {
		inner.parent = &r.root
	}
	values := make([]Value, len(w.values))
	for i, e := range w.values {
		v, err := r.eval(e, s)
		if err != nil {
			return flowNext, at(err, w.line)
		}
		values[i] = v
	}
	for i := range w.names {
		if err := r.assign(&w.names[i], values[i], inner); err != nil {
			return flowNext, at(err, w.line)
		}
	}
	return r.deeper(w.body, inner)
}

func (a *autoescapeStmt) exec(r *run, s *scope) (flow, error) {
	on, err := r.test(a.on, s)
	if err != nil {
		return flowNext, at(err, a.line)
	}
	saved := r.escape
	r.escape = on
	f, err := r.deeper(a.body, &scope{parent: s})
	r.escape = saved
	return f, err
}

func (m *macroStmt) exec(r *run, s *scope) (flow, error) {
	s.set(m.def.name, &macro{def: &m.def, scope: s})
	return flowNext, nil
}

func (c *callStmt) exec(r *run, s *scope) (flow, error) {
	if err := r.enter(); err != nil {
		return flowNext, err
	}
	defer r.leave()
	caller := &macro{def: &c.caller, scope: s}
	v, err := c.call.with(r, s, caller)
	if err != nil {
		return flowNext, at(err, c.line)
	}
	text, err := r.toText(v)
	if err == nil {
		err = r.write(text)
	}
	return flowNext, at(err, c.line)
}

func (j *jumpStmt) exec(*run, *scope) (flow, error) { return j.how, nil }
