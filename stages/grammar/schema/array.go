package schema

import (
	"errors"
	"slices"
)

// array is a set of arrays.
type array struct {
	prefix   []terms // of the first items
	items    terms   // of the others
	min, max int     // items; max < 0: no bound
	contains []contained
	unique   bool
}

// contained asks for min to max items that meet terms; max < 0: no bound.
type contained struct {
	terms    terms
	min, max int
}

func anyArray() *array { return &array{max: -1} }

func (a *array) any() bool {
	return len(a.prefix) == 0 && len(a.items) == 0 && a.min == 0 && a.max < 0 && len(a.contains) == 0 && !a.unique
}

// size is what it costs to look at a, in steps of a budget.
func (a *array) size() int {
	n := 10 + 2*len(a.items) + 5*len(a.contains)
	for _, t := range a.prefix {
		n += 5 + 2*len(t)
	}
	return n
}

// item returns what the item at a place must meet.
func (a *array) item(i int) terms {
	if i < len(a.prefix) {
		return a.prefix[i]
	}
	return a.items
}

func (a *array) and(b *array) *array {
	switch {
	case a.any():
		return b
	case b.any():
		return a
	}
	out := &array{items: a.items.and(b.items...), min: max(a.min, b.min), max: a.max, unique: a.unique || b.unique}
	if b.max >= 0 && (a.max < 0 || b.max < a.max) {
		out.max = b.max
	}
	for i := range max(len(a.prefix), len(b.prefix)) {
		out.prefix = append(out.prefix, a.item(i).and(b.item(i)...))
	}
	out.contains = append(slices.Clone(a.contains), b.contains...)
	return out
}

// noArray says that no array is in a, as far as is known.
func (c *compiler) noArray(a *array) bool {
	if a.max >= 0 && a.max < a.min {
		return true
	}
	for i := range min(a.min, len(a.prefix)+1) {
		if c.never(a.item(i)) {
			return true
		}
	}
	return slices.ContainsFunc(a.contains, func(x contained) bool {
		return x.max >= 0 && x.max < x.min || x.min > 0 && (c.never(x.terms) || a.max >= 0 && a.max < x.min)
	})
}

// notArray returns the arrays outside of a.
func (c *compiler) notArray(a *array) (out []*array, err error) {
	if a.unique && !(a.max >= 0 && a.max <= 1) {
		return nil, errors.New("not (or oneOf) of uniqueItems")
	}
	if a.min > 0 {
		out = append(out, &array{max: a.min - 1})
	}
	if a.max >= 0 {
		out = append(out, &array{min: a.max + 1, max: -1})
	}
	for i, p := range a.prefix {
		for _, t := range p {
			bad := &array{min: i + 1, max: -1, prefix: make([]terms, i+1)}
			bad.prefix[i] = terms{{t.schema, !t.not}}
			out = append(out, bad)
		}
	}
	for _, t := range a.items {
		if len(a.prefix) > 0 {
			return nil, errors.New("not (or oneOf) of items after prefixItems")
		}
		out = append(out, &array{max: -1, contains: []contained{{terms{{t.schema, !t.not}}, 1, -1}}})
	}
	for _, x := range a.contains {
		if x.min > 0 {
			out = append(out, &array{max: -1, contains: []contained{{x.terms, 0, x.min - 1}}})
		}
		if x.max >= 0 {
			out = append(out, &array{max: -1, contains: []contained{{x.terms, x.max + 1, -1}}})
		}
	}
	return out, nil
}
