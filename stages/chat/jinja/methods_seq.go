package jinja

import "slices"

// countIn makes .count(x).
func countIn(r *run, self Value, a []Value) (Value, error) {
	n, at := indexed(self)
	count := 0
	for i := range n {
		same, err := r.equal(at(i), a[0])
		if err != nil {
			return nil, err
		}
		if same {
			count++
		}
	}
	return Int(count), nil
}

// indexIn makes .index(x, start, stop).
func indexIn(r *run, self Value, a []Value) (Value, error) {
	n, at := indexed(self)
	bounds := [3]Value{None{}, None{}, None{}}
	for i, v := range a[1:] {
		if v != nil {
			bounds[i] = v
		}
	}
	from, to, _, err := sliceBounds(bounds, n)
	if err != nil {
		return nil, err
	}
	for i := from; i < to; i++ {
		same, err := r.equal(at(i), a[0])
		if err != nil {
			return nil, err
		}
		if same {
			return Int(i), nil
		}
	}
	return nil, fail(Argument, "the value is not in the %s", self.class())
}

var tupleMethods = map[string]*builtin{
	"count": takes(1, "value", countIn),
	"index": takes(1, "value start stop", indexIn),
}

// listMethods: Jinja2 3.1.2's sandbox forbids what the abstract mutable sequence of Python changes, but not pop
// and clear.
var listMethods = map[string]*builtin{
	"count": takes(1, "value", countIn),
	"index": takes(1, "value start stop", indexIn),
	"copy": takes(0, "", func(r *run, self Value, _ []Value) (Value, error) {
		return r.list(slices.Clone(self.(*List).Items))
	}),
	"pop": takes(0, "index", func(r *run, self Value, a []Value) (Value, error) {
		l := self.(*List)
		i, err := asCount("pop", a[0], -1)
		if err != nil {
			return nil, err
		}
		n := len(l.Items)
		if n == 0 {
			return nil, fail(Missing, "pop from empty list")
		}
		if i < 0 {
			i += n
		}
		if i < 0 || i >= n {
			return nil, fail(Missing, "pop index out of range")
		}
		v := l.Items[i]
		l.Items = append(l.Items[:i], l.Items[i+1:]...)
		return v, r.spend(n - i)
	}),
	"clear": takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		self.(*List).Items = nil
		return None{}, nil
	}),
	"append": forbidden, "extend": forbidden, "insert": forbidden, "remove": forbidden, "reverse": forbidden,
	"sort": forbidden,
}

// viewOf makes keys, values or items.
func viewOf(kind string) *builtin {
	return takes(0, "", func(_ *run, self Value, _ []Value) (Value, error) {
		return &view{kind: kind, of: self.(*Dict)}, nil
	})
}

var dictMethods = map[string]*builtin{
	"keys": viewOf("dict_keys"), "values": viewOf("dict_values"), "items": viewOf("dict_items"),
	"get": takes(1, "key default", func(r *run, self Value, a []Value) (Value, error) {
		v, ok, err := r.lookup(self.(*Dict), a[0])
		switch {
		case err != nil:
			return nil, err
		case ok:
			return v, nil
		case a[1] != nil:
			return a[1], nil
		}
		return None{}, nil
	}),
	"copy": takes(0, "", func(r *run, self Value, _ []Value) (Value, error) {
		d := self.(*Dict)
		return d.copy(), r.spend(d.Len())
	}),
	"fromkeys": takes(1, "iterable value", func(r *run, _ Value, a []Value) (Value, error) {
		keys, err := r.collect(a[0])
		if err != nil {
			return nil, err
		}
		if a[1] == nil {
			a[1] = None{}
		}
		d := &Dict{}
		for _, k := range keys {
			if err := r.store(d, k, a[1]); err != nil {
				return nil, err
			}
		}
		return d, nil
	}),
	"clear": forbidden, "pop": forbidden, "popitem": forbidden, "setdefault": forbidden, "update": forbidden,
}
