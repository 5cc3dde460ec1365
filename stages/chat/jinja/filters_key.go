package jinja

import (
	"slices"
	"strconv"
	"strings"
)

// key computes what an element is sorted, compared or grouped by.
type key func(v Value) (Value, error)

// attribute reads "a.b.0" of a value, part by part; other replaces what is missing, unless it is nil.
func (r *run) attribute(path, other Value) key {
	var parts []Value
	if s, ok := text(path); ok {
		for _, p := range strings.Split(s, ".") {
			if n, err := strconv.ParseUint(p, 10, 31); err == nil {
				parts = append(parts, Int(n))
			} else {
				parts = append(parts, Str(p))
			}
		}
	} else if given(path) {
		parts = []Value{path}
	}
	return func(v Value) (Value, error) {
		for _, p := range parts {
			var err error
			if v, err = r.item(v, p); err != nil {
				return nil, err
			}
			if _, missing := v.(*undefined); missing && other != nil {
				v = other
			}
		}
		return v, nil
	}
}

// folded makes strings compare without regard to case, unless caseSensitive.
func folded(k key, caseSensitive Value) key {
	if flag(caseSensitive) {
		return k
	}
	return func(v Value) (Value, error) {
		v, err := k(v)
		if s, ok := text(v); ok && err == nil {
			return Str(lower(s)), nil
		}
		return v, err
	}
}

// sorted returns the elements of v in order of their keys; equal ones keep their order, also in reverse.
func (r *run) sorted(v Value, k key, reverse bool) ([]Value, error) {
	items, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	type entry struct{ key, value Value }
	entries := make([]entry, len(items))
	for i, item := range items {
		by, err := k(item)
		if err != nil {
			return nil, err
		}
		entries[i] = entry{by, item}
	}
	var failed error
	slices.SortStableFunc(entries, func(a, b entry) int {
		if failed != nil {
			return 0
		}
		n, _, err := r.order("<", a.key, b.key)
		failed = firstError(err, r.spend(1))
		if reverse {
			return -n
		}
		return n
	})
	out := make([]Value, len(items))
	for i, e := range entries {
		out[i] = e.value
	}
	return out, failed
}

func sortFilter(r *run, v Value, a []Value) (Value, error) {
	var keys []key
	if s, ok := text(orNone(a[2])); ok {
		for _, path := range strings.Split(s, ",") {
			keys = append(keys, folded(r.attribute(Str(path), nil), a[1]))
		}
	} else {
		keys = []key{folded(r.attribute(orNone(a[2]), nil), a[1])}
	}
	out, err := r.sorted(v, func(v Value) (Value, error) {
		all := make(Tuple, len(keys))
		for i, k := range keys {
			var err error
			if all[i], err = k(v); err != nil {
				return nil, err
			}
		}
		return all, nil
	}, flag(a[0]))
	return &List{out}, err
}

func orNone(v Value) Value {
	if v == nil {
		return None{}
	}
	return v
}

func dictSort(r *run, v Value, a []Value) (Value, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, fail(Type, "dictsort: a mapping is needed, not %s", v.class())
	}
	part := 0
	switch textOr(orNone(a[1]), "key") {
	case "key":
	case "value":
		part = 1
	default:
		return nil, fail(Argument, `You can only sort by either "key" or "value"`)
	}
	by := folded(func(v Value) (Value, error) { return v.(Tuple)[part], nil }, a[0])
	out, err := r.sorted(&view{kind: "dict_items", of: d}, by, flag(a[2]))
	return &List{out}, err
}

func groupBy(r *run, v Value, a []Value) (Value, error) {
	by := r.attribute(a[0], a[1])
	fold := folded(by, a[2])
	items, err := r.sorted(v, fold, false)
	if err != nil {
		return nil, err
	}
	var groups []Value
	var last Value
	for _, item := range items {
		k, err := fold(item)
		if err != nil {
			return nil, err
		}
		if last != nil {
			same, err := r.equal(last, k)
			if err != nil {
				return nil, err
			}
			if same {
				members := groups[len(groups)-1].(Tuple)[1].(*List)
				members.Items = append(members.Items, item)
				continue
			}
		}
		last = k
		name, err := by(item)
		if err != nil {
			return nil, err
		}
		groups = append(groups, Tuple{name, &List{[]Value{item}}})
	}
	return r.list(groups)
}

// extreme makes min and max.
func extreme(sign int) *builtin {
	return takes(0, "case_sensitive attribute", func(r *run, v Value, a []Value) (Value, error) {
		by := folded(r.attribute(orNone(a[1]), nil), a[0])
		items, err := r.collect(v)
		if err != nil {
			return nil, err
		}
		var best, bestKey Value = undefinedHint("No aggregated item, sequence was empty."), nil
		for _, item := range items {
			k, err := by(item)
			if err != nil {
				return nil, err
			}
			if bestKey != nil {
				n, _, err := r.order("<", k, bestKey)
				if err != nil {
					return nil, err
				}
				if n*sign <= 0 {
					continue
				}
			}
			best, bestKey = item, k
		}
		return best, nil
	})
}

func sumFilter(r *run, v Value, a []Value) (Value, error) {
	by := r.attribute(orNone(a[0]), nil)
	total := Value(Int(0))
	if a[1] != nil {
		total = a[1]
	}
	if isText(total) {
		return nil, fail(Type, "sum() can't sum strings [use ''.join(seq) instead]")
	}
	pull, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	for {
		item, ok, err := pull()
		if err != nil || !ok {
			return total, err
		}
		if item, err = by(item); err != nil {
			return nil, err
		}
		if total, err = r.binary("+", total, item); err != nil {
			return nil, err
		}
	}
}

func unique(r *run, v Value, a []Value) (Value, error) {
	by := folded(r.attribute(orNone(a[1]), nil), a[0])
	seen := &Dict{}
	return deferred(func() (next, error) {
		pull, err := r.iterate(v)
		return func() (Value, bool, error) {
			for {
				item, ok, err := pull()
				if err != nil || !ok {
					return nil, false, err
				}
				k, err := by(item)
				if err != nil {
					return nil, false, err
				}
				before := seen.Len()
				if err := r.store(seen, k, None{}); err != nil {
					return nil, false, err
				}
				if seen.Len() > before {
					return item, true, nil
				}
			}
		}, err
	}), nil
}
