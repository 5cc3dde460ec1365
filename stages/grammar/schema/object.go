package schema

import (
	"errors"
	"maps"
	"slices"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// object is a set of objects.
type object struct {
	order    []string         // of the keys that are named
	named    map[string]terms // what their values must meet
	required map[string]bool  // each of them is in order, or in free
	free     []string         // required keys that no properties name: they come among the others
	patterns []pattern
	rest     []rest
	names    []*lang.DFA // all keys are in all of these
	min, max int         // keys; max < 0: no bound
}

// pattern says what the values of keys must meet.
type pattern struct {
	expr  string
	keys  *lang.DFA
	terms terms
}

// rest says what the values of all keys must meet but some: additionalProperties, with the properties beside it.
type rest struct {
	named    map[string]bool
	patterns []string // expressions
	terms    terms
}

func anyObject() *object { return &object{max: -1} }

func (o *object) any() bool {
	return len(o.order)+len(o.required)+len(o.patterns)+len(o.rest)+len(o.names)+o.min == 0 && o.max < 0
}

// size is what it costs to look at o, in steps of a budget.
func (o *object) size() int {
	n := 25 + 10*len(o.order) + 5*(len(o.required)+len(o.patterns)+len(o.rest)+len(o.names))
	for _, k := range o.order {
		n += 2 * len(o.named[k])
	}
	return n
}

func (o *object) and(p *object) *object {
	switch {
	case o.any():
		return p
	case p.any():
		return o
	}
	out := &object{order: slices.Clone(o.order), named: maps.Clone(o.named), required: maps.Clone(o.required),
		min: max(o.min, p.min), max: o.max}
	if p.max >= 0 && (o.max < 0 || p.max < o.max) {
		out.max = p.max
	}
	if out.named == nil {
		out.named = map[string]terms{}
	}
	if out.required == nil {
		out.required = map[string]bool{}
	}
	for _, k := range p.order {
		t, ok := out.named[k]
		if !ok {
			out.order = append(out.order, k)
		}
		out.named[k] = t.and(p.named[k]...)
	}
	maps.Copy(out.required, p.required)
	for _, k := range append(slices.Clone(o.free), p.free...) {
		if _, ok := out.named[k]; !ok && !slices.Contains(out.free, k) {
			out.free = append(out.free, k)
		}
	}
	out.patterns = append(slices.Clone(o.patterns), p.patterns...)
	out.rest = append(slices.Clone(o.rest), p.rest...)
	out.names = append(slices.Clone(o.names), p.names...)
	return out
}

// asking is what it costs to ask for the value of a key.
func (o *object) asking(key string) int {
	n := 10 + (len(o.patterns)+len(o.names))*(1+len(key)) + 2*len(o.named[key])
	for _, r := range o.rest {
		n += 2 + 2*len(r.patterns) + 2*len(r.terms)
	}
	return n
}

// value returns what the value of a key must meet; ok is false where the key may not be.
func (o *object) value(key string) (t terms, ok bool) {
	for _, n := range o.names {
		if !n.Match(key) {
			return nil, false
		}
	}
	t = o.named[key]
	met := map[string]bool{}
	for _, p := range o.patterns {
		if p.keys.Match(key) {
			met[p.expr] = true
			t = t.and(p.terms...)
		}
	}
	for _, r := range o.rest {
		if !r.named[key] && !slices.ContainsFunc(r.patterns, func(e string) bool { return met[e] }) {
			t = t.and(r.terms...)
		}
	}
	return t, true
}

// noObject says that no object is in o, as far as is known.
func (c *compiler) noObject(o *object) bool {
	if o.max >= 0 && (o.max < o.min || o.max < len(o.required)) {
		return true
	}
	for k := range o.required {
		if c.left.Take(o.asking(k)) != nil {
			return false // nobody goes on from here
		}
		if t, ok := o.value(k); !ok || c.never(t) {
			return true
		}
	}
	return false
}

// notObject returns the objects outside of o.
func (c *compiler) notObject(o *object) (out []*object, err error) {
	if len(o.patterns)+len(o.rest)+len(o.names) > 0 {
		return nil, errors.New("not (or oneOf, or if) of patternProperties, additionalProperties or propertyNames")
	}
	for _, k := range slices.Sorted(maps.Keys(o.required)) {
		out = append(out, c.forbidding(k))
	}
	for _, k := range o.order {
		for _, t := range o.named[k] {
			out = append(out, &object{order: []string{k}, named: map[string]terms{k: {{t.schema, !t.not}}},
				required: map[string]bool{k: true}, max: -1})
		}
	}
	if o.min > 0 {
		out = append(out, &object{max: o.min - 1})
	}
	if o.max >= 0 {
		out = append(out, &object{min: o.max + 1, max: -1})
	}
	return out, nil
}

// requiring is the set of the objects with keys.
func requiring(keys ...string) *object {
	o := &object{required: map[string]bool{}, max: -1}
	for _, k := range keys {
		if !o.required[k] {
			o.required[k] = true
			o.free = append(o.free, k)
		}
	}
	return o
}
