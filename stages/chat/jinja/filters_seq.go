package jinja

import "slices"

// deferred makes a generator that starts its work when the first element is wanted.
func deferred(start func() (next, error)) Value {
	var pull next
	return generator(func() (_ Value, _ bool, err error) {
		if pull == nil {
			if pull, err = start(); err != nil {
				return nil, false, err
			}
		}
		return pull()
	})
}

func firstFilter(r *run, v Value, _ []Value) (Value, error) {
	pull, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	item, ok, err := pull()
	if err == nil && !ok {
		return undefinedHint("No first item, sequence was empty."), nil
	}
	return item, err
}

func lastFilter(r *run, v Value, _ []Value) (Value, error) {
	items, err := r.reversed(v)
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return undefinedHint("No last item, sequence was empty."), nil
	}
	return items[0], nil
}

// reversed is what Python's reversed walks: sequences and dicts, not generators.
func (r *run) reversed(v Value) ([]Value, error) {
	if _, ok := v.(*iterator); ok {
		return nil, fail(Type, "'%s' object is not reversible", v.class())
	}
	items, err := r.collect(v)
	items = slices.Clone(items)
	slices.Reverse(items)
	return items, err
}

func reverseFilter(r *run, v Value, _ []Value) (Value, error) {
	if s, ok := text(v); ok {
		chars := []rune(s)
		slices.Reverse(chars)
		return r.str(string(chars))
	}
	if _, ok := v.(*iterator); ok {
		items, err := r.collect(v)
		slices.Reverse(items)
		return &List{items}, err
	}
	items, err := r.reversed(v)
	if err != nil {
		return nil, err
	}
	walk := walkIndexed(func() int { return len(items) }, func(i int) Value { return items[i] })
	return &iterator{v.class() + "_reverseiterator", walk}, nil
}

// batch cuts into lists of n elements, the last one filled up if there is something to fill with.
func batch(r *run, v Value, a []Value) (Value, error) {
	fill := a[1]
	return cut(r, v, a[0], func(items []Value, n int) (out [][]Value, err error) {
		for part := range slices.Chunk(items, n) {
			if missing := n - len(part); given(fill) && missing > 0 {
				if err := r.spend(missing * stepsPerElement); err != nil {
					return nil, err
				}
				part = slices.Concat(part, slices.Repeat([]Value{fill}, missing))
			}
			out = append(out, part)
		}
		return out, nil
	}), nil
}

// sliceFilter cuts into n lists of about the same size.
func sliceFilter(r *run, v Value, a []Value) (Value, error) {
	fill := a[1]
	return cut(r, v, a[0], func(items []Value, n int) ([][]Value, error) {
		if err := r.spend(n * stepsPerElement); err != nil {
			return nil, err
		}
		size, longer, at := len(items)/n, len(items)%n, 0
		out := make([][]Value, n)
		for i := range n {
			end := at + size
			if i < longer {
				end++
			}
			out[i] = items[at:end]
			if given(fill) && i >= longer {
				out[i] = append(slices.Clone(out[i]), fill)
			}
			at = end
		}
		return out, nil
	}), nil
}

// cut makes a generator of lists: parts says what goes into each.
func cut(r *run, v, size Value, parts func(items []Value, n int) ([][]Value, error)) Value {
	return deferred(func() (next, error) {
		items, err := r.collect(v)
		if err != nil {
			return nil, err
		}
		n, err := asCount("batch or slice", size, 0)
		if err != nil {
			return nil, err
		}
		if n < 1 {
			return nil, fail(Argument, "batch or slice: a size of %d, wanted 1 or more", n)
		}
		out, err := parts(items, n)
		at := func(i int) Value { return &List{slices.Clone(out[i])} }
		return walkIndexed(func() int { return len(out) }, at), err
	})
}

func itemsFilter(r *run, v Value, _ []Value) (Value, error) {
	return deferred(func() (next, error) {
		switch d := v.(type) {
		case *undefined:
			return r.iterate(Tuple{})
		case *Dict:
			return r.iterate(&view{kind: "dict_items", of: d})
		}
		return nil, fail(Type, "Can only get item pairs from a mapping.")
	}), nil
}

var sequenceFilters = map[string]*builtin{
	"sort":     takes(0, "reverse case_sensitive attribute", sortFilter),
	"dictsort": takes(0, "case_sensitive by reverse", dictSort),
	"groupby":  takes(1, "attribute default case_sensitive", groupBy),
	"min":      extreme(-1),
	"max":      extreme(1),
	"sum":      takes(0, "attribute start", sumFilter),
	"unique":   takes(0, "case_sensitive attribute", unique),
	"first":    takes(0, "", firstFilter),
	"last":     takes(0, "", lastFilter),
	"reverse":  takes(0, "", reverseFilter),
	"batch":    takes(1, "linecount fill_with", batch),
	"slice":    takes(1, "slices fill_with", sliceFilter),
	"items":    takes(0, "", itemsFilter),
	"list": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		items, err := r.collect(v)
		return &List{slices.Clone(items)}, err
	}),
	"length": takes(0, "", lengthFilter),
	"count":  takes(0, "", lengthFilter),

	"map":        takesAny(mapFilter),
	"select":     takesAny(choose(true, false)),
	"reject":     takesAny(choose(false, false)),
	"selectattr": takesAny(choose(true, true)),
	"rejectattr": takesAny(choose(false, true)),
}

func lengthFilter(r *run, v Value, _ []Value) (Value, error) {
	n, err := r.length(v)
	return Int(n), err
}
