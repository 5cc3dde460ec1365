package jinja

import "unicode/utf8"

// iterate walks any iterable, each element costing a step.
func (r *run) iterate(v Value) (next, error) {
	pull, err := r.walk(v)
	if err != nil {
		return nil, err
	}
	if _, ok := v.(*iterator); !ok {
		return func() (Value, bool, error) {
			if err := r.spend(1); err != nil {
				return nil, false, err
			}
			return pull()
		}, nil
	}
	return func() (Value, bool, error) { // a generator may walk a generator, and so on
		if err := r.spend(1); err != nil {
			return nil, false, err
		}
		if err := r.enter(); err != nil {
			return nil, false, err
		}
		defer r.leave()
		return pull()
	}, nil
}

func (r *run) walk(v Value) (next, error) {
	switch x := v.(type) {
	case Str:
		return characters(string(x)), nil
	case markup:
		return characters(string(x)), nil
	case Tuple:
		return walkIndexed(func() int { return len(x) }, func(i int) Value { return x[i] }), nil
	case *List:
		return walkIndexed(func() int { return len(x.Items) }, func(i int) Value { return x.Items[i] }), nil
	case *Dict:
		return walkIndexed(x.Len, func(i int) Value { return x.keys[i] }), nil
	case *view:
		return walkIndexed(x.of.Len, x.at), nil
	case *rangeValue:
		return walkIndexed(func() int { return int(x.len()) }, func(i int) Value { return x.at(int64(i)) }), nil
	case byteText:
		return walkIndexed(func() int { return len(x) }, func(i int) Value { return Int(x[i]) }), nil
	case *iterator:
		return x.next, nil
	case *undefined:
		if x.kind == Security {
			return nil, x.fault()
		}
		return func() (Value, bool, error) { return nil, false, nil }, nil
	}
	return nil, fail(Type, "'%s' object is not iterable", v.class())
}

// walkIndexed asks for the length anew each time: a list may shrink while it is walked.
func walkIndexed(length func() int, at func(int) Value) next {
	i := 0
	return func() (Value, bool, error) {
		if i >= length() {
			return nil, false, nil
		}
		i++
		return at(i - 1), true, nil
	}
}

func characters(s string) next {
	return func() (Value, bool, error) {
		if s == "" {
			return nil, false, nil
		}
		_, n := utf8.DecodeRuneInString(s)
		c := s[:n]
		s = s[n:]
		return Str(c), true, nil
	}
}

// collect is list(v) as a Go slice, which the caller may keep but not change.
func (r *run) collect(v Value) ([]Value, error) {
	switch x := v.(type) {
	case Tuple:
		return x, r.spend(len(x))
	case *List:
		return append([]Value{}, x.Items...), r.spend(len(x.Items))
	}
	pull, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	items := []Value{}
	for {
		item, ok, err := pull()
		if err != nil || !ok {
			return items, err
		}
		items = append(items, item)
	}
}

// generator makes a value that is walked once.
func generator(pull next) Value { return &iterator{"generator", pull} }

// length is Python's len(v).
func (r *run) length(v Value) (int, error) {
	switch x := v.(type) {
	case Str:
		return runes(string(x)), r.scan(len(x))
	case markup:
		return runes(string(x)), r.scan(len(x))
	case byteText:
		return len(x), nil
	case Tuple:
		return len(x), nil
	case *List:
		return len(x.Items), nil
	case *Dict:
		return x.Len(), nil
	case *view:
		return x.of.Len(), nil
	case *rangeValue:
		return int(x.len()), nil
	case *loop:
		return x.count()
	case *undefined:
		if x.kind != Security {
			return 0, nil
		}
		return 0, x.fault()
	}
	return 0, fail(Type, "object of type '%s' has no len()", v.class())
}
