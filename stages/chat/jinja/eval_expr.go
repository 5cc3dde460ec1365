package jinja

import "strings"

func (l *literal) eval(*run, *scope) (Value, error) { return l.v, nil }

func (n *nameExpr) eval(r *run, s *scope) (Value, error) { return r.variable(n.name, s), nil }

func (r *run) evalAll(in []expr, s *scope) ([]Value, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make([]Value, len(in))
	for i, e := range in {
		v, err := r.eval(e, s)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (l *listExpr) eval(r *run, s *scope) (Value, error) {
	items, err := r.evalAll(l.items, s)
	return &List{items}, err
}

func (t *tupleExpr) eval(r *run, s *scope) (Value, error) {
	items, err := r.evalAll(t.items, s)
	return Tuple(items), err
}

func (d *dictExpr) eval(r *run, s *scope) (Value, error) {
	out := &Dict{}
	for i, e := range d.keys {
		k, err := r.eval(e, s)
		if err != nil {
			return nil, err
		}
		v, err := r.eval(d.values[i], s)
		if err != nil {
			return nil, err
		}
		if err := r.store(out, k, v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (a *attrExpr) eval(r *run, s *scope) (Value, error) {
	of, err := r.eval(a.of, s)
	if err != nil {
		return nil, err
	}
	return r.attr(of, a.name)
}

func (x *indexExpr) eval(r *run, s *scope) (Value, error) {
	of, err := r.eval(x.of, s)
	if err != nil {
		return nil, err
	}
	key, err := r.eval(x.index, s)
	if err != nil {
		return nil, err
	}
	return r.item(of, key)
}

func (x *sliceExpr) eval(r *run, s *scope) (Value, error) {
	of, err := r.eval(x.of, s)
	if err != nil {
		return nil, err
	}
	var bounds [3]Value
	for i, e := range []expr{x.from, x.to, x.step} {
		if e == nil {
			bounds[i] = None{}
		} else if bounds[i], err = r.eval(e, s); err != nil {
			return nil, err
		}
	}
	return r.slice(of, bounds)
}

func (c *callExpr) eval(r *run, s *scope) (Value, error) { return c.with(r, s, nil) }

// with calls with one more argument, the body of a call block, if it is not nil.
func (c *callExpr) with(r *run, s *scope, caller *macro) (Value, error) {
	fn, err := r.eval(c.fn, s)
	if err != nil {
		return nil, err
	}
	args, err := r.arguments(&c.args, s)
	if err != nil {
		return nil, err
	}
	if caller != nil {
		args.names, args.named = append(args.names, "caller"), append(args.named, caller)
	}
	return r.call(fn, args)
}

func (f *filterExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(f.of, s)
	if err != nil {
		return nil, err
	}
	return f.apply(r, v, s)
}

func (f *filterExpr) apply(r *run, v Value, s *scope) (Value, error) {
	if f.fn == nil {
		return nil, fail(Runtime, "No filter named '%s' found.", f.name)
	}
	args, err := r.arguments(&f.args, s)
	if err != nil {
		return nil, err
	}
	return f.fn.call(r, v, args)
}

func (t *testExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(t.of, s)
	if err != nil {
		return nil, err
	}
	if t.fn == nil {
		return nil, fail(Runtime, "No test named '%s' found.", t.name)
	}
	args, err := r.arguments(&t.args, s)
	if err != nil {
		return nil, err
	}
	return t.fn.call(r, v, args)
}

func (n *notExpr) eval(r *run, s *scope) (Value, error) {
	ok, err := r.test(n.of, s)
	return Bool(!ok), err
}

func (a *andExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(a.left, s)
	if err != nil || !truth(v) {
		return v, err
	}
	return r.eval(a.right, s)
}

func (o *orExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(o.left, s)
	if err != nil || truth(v) {
		return v, err
	}
	return r.eval(o.right, s)
}

func (c *condExpr) eval(r *run, s *scope) (Value, error) {
	ok, err := r.test(c.test, s)
	switch {
	case err != nil:
		return nil, err
	case ok:
		return r.eval(c.then, s)
	case c.other != nil:
		return r.eval(c.other, s)
	}
	return &undefined{kind: UndefinedValue,
		hint: "the inline if-expression evaluated to false and no else section was defined."}, nil
}

func (u *unaryExpr) eval(r *run, s *scope) (Value, error) {
	v, err := r.eval(u.of, s)
	if err != nil {
		return nil, err
	}
	return unary(u.op, v)
}

func (b *binaryExpr) eval(r *run, s *scope) (Value, error) {
	left, err := r.eval(b.left, s)
	if err != nil {
		return nil, err
	}
	right, err := r.eval(b.right, s)
	if err != nil {
		return nil, err
	}
	return r.binary(b.op, left, right)
}

func (c *concatExpr) eval(r *run, s *scope) (Value, error) {
	values, err := r.evalAll(c.parts, s)
	if err != nil {
		return nil, err
	}
	safe := false
	for _, v := range values {
		_, m := v.(markup)
		safe = safe || m && r.escape
	}
	texts, total := make([]string, len(values)), 0
	for i, v := range values {
		text, err := r.toText(v)
		if err != nil {
			return nil, err
		}
		if _, m := v.(markup); safe && !m {
			text = escapeHTML(text)
		}
		if err := r.room(len(text)); err != nil {
			return nil, err
		}
		if total += len(text); total > r.limits.Output {
			return nil, r.room(total)
		}
		texts[i] = text
	}
	all := strings.Join(texts, "") // long texts are copied once
	if safe {
		return markup(all), nil
	}
	return Str(all), nil
}

func (c *compareExpr) eval(r *run, s *scope) (Value, error) {
	left, err := r.eval(c.first, s)
	if err != nil {
		return nil, err
	}
	for i, op := range c.ops {
		right, err := r.eval(c.rest[i], s)
		if err != nil {
			return nil, err
		}
		ok, err := r.compare(op, left, right)
		if err != nil || !ok {
			return Bool(false), err
		}
		left = right
	}
	return Bool(true), nil
}

func (r *run) arguments(a *argExprs, s *scope) (callArgs, error) {
	var args callArgs
	var err error
	if args.pos, err = r.evalAll(a.pos, s); err != nil {
		return args, err
	}
	if args.named, err = r.evalAll(a.named, s); err != nil {
		return args, err
	}
	args.names = a.names[:len(a.names):len(a.names)] // appending copies: the tree is shared
	if a.star != nil {
		v, err := r.eval(a.star, s)
		if err != nil {
			return args, err
		}
		more, err := r.collect(v)
		if err != nil {
			return args, err
		}
		args.pos = append(args.pos, more...)
	}
	if a.starStar != nil {
		return args, r.namedArguments(a.starStar, s, &args)
	}
	return args, nil
}

func (r *run) namedArguments(e expr, s *scope, args *callArgs) error {
	v, err := r.eval(e, s)
	if err != nil {
		return err
	}
	d, ok := v.(*Dict)
	if !ok {
		return fail(Type, "argument after ** must be a mapping, not %s", v.class())
	}
	for i, k := range d.keys {
		name, ok := text(k)
		if !ok {
			return fail(Type, "keywords must be strings")
		}
		args.names, args.named = append(args.names, name), append(args.named, d.values[i])
	}
	return nil
}
