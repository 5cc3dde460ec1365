package schema

import (
	"errors"
	"fmt"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// typed returns what type and the keywords of single types say.
func (c *compiler) typed(v *value) (*set, error) {
	s := c.all()
	if err := c.numeric(v, s); err != nil {
		return nil, err
	}
	if err := c.textual(v, s); err != nil {
		return nil, err
	}
	a, err := c.array(v)
	if err != nil {
		return nil, err
	}
	o, err := c.object(v)
	if err != nil {
		return nil, err
	}
	s.arrs, s.objs = []*array{a}, []*object{o}
	if x := v.get("type"); x != nil {
		return c.ofType(s, x)
	}
	return s, nil
}

func (c *compiler) ofType(s *set, x *value) (*set, error) {
	list := []*value{x}
	if x.kind == isArray {
		list = x.list
	}
	out := &set{}
	for _, t := range list {
		switch t.text {
		case "null":
			out.null = s.null
		case "boolean":
			out.yes, out.no = s.yes, s.no
		case "number":
			out.num = s.num
		case "integer":
			if out.num == nil && s.num != nil {
				num, err := c.andNumber(s.num, c.number.integer)
				if err != nil {
					return nil, err
				}
				out.num = num
			}
		case "string":
			out.strs = s.strs
		case "array":
			out.arrs = s.arrs
		case "object":
			out.objs = s.objs
		case "any": // draft 3, still met
			return s, nil
		default:
			return nil, fmt.Errorf("type: %q is none: want null, boolean, number, integer, string, array or object",
				shown(t.text))
		}
	}
	return out, nil
}

// mostLength is how long a schema may want a string to be at least.
const mostLength = 1 << 20

// textual reads what is said of strings.
func (c *compiler) textual(v *value, s *set) (err error) {
	t := anyText()
	if t.min, err = count(v, "minLength", 0); err != nil {
		return err
	}
	if t.min > mostLength {
		return fmt.Errorf("minLength above %d: no answer is as long", mostLength)
	}
	if t.max, err = count(v, "maxLength", -1); err != nil {
		return err
	}
	for _, k := range [...]string{"pattern", "format"} {
		x := v.get(k)
		if x == nil || x.kind != isString {
			continue
		}
		var d *lang.DFA
		if k == "pattern" {
			d, err = c.search(x.text)
		} else if c.options.Formats {
			d, err = c.format(x.text)
		}
		if err == nil && d != nil {
			t, err = c.andText(t, text{lang: d})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	if s.strs = []text{t}; t.empty() {
		s.strs = nil
	}
	return nil
}

// array reads what is said of arrays.
func (c *compiler) array(v *value) (a *array, err error) {
	a = anyArray()
	if a.min, err = count(v, "minItems", 0); err != nil {
		return nil, err
	}
	if a.max, err = count(v, "maxItems", -1); err != nil {
		return nil, err
	}
	items, others := v.get("prefixItems"), v.get("items")
	if c.draft.old {
		items = nil
	}
	if others != nil && others.kind == isArray {
		items, others = others, v.get("additionalItems")
	}
	if items != nil {
		for _, x := range items.list {
			a.prefix = append(a.prefix, one(x))
		}
	}
	if others != nil {
		a.items = one(others)
	}
	if x := v.get("contains"); x != nil {
		in := contained{terms: one(x), min: 1, max: -1}
		if !c.draft.old {
			if in.min, err = count(v, "minContains", 1); err != nil {
				return nil, err
			}
			if in.max, err = count(v, "maxContains", -1); err != nil {
				return nil, err
			}
		}
		a.contains = []contained{in}
	}
	if x := v.get("uniqueItems"); x != nil {
		a.unique = x.yes
	}
	return a, nil
}

// one is the terms of one schema; none, if it allows any value.
func one(v *value) terms {
	if v.kind == isBool && v.yes || v.kind == isObject && len(v.keys) == 0 {
		return nil
	}
	return terms{{v, false}}
}

// object reads what is said of objects.
func (c *compiler) object(v *value) (o *object, err error) {
	o = &object{named: map[string]terms{}, required: map[string]bool{}}
	if o.min, err = count(v, "minProperties", 0); err != nil {
		return nil, err
	}
	if o.max, err = count(v, "maxProperties", -1); err != nil {
		return nil, err
	}
	others := rest{named: map[string]bool{}}
	if x := v.get("properties"); x != nil {
		for _, k := range x.keys {
			o.order = append(o.order, k)
			o.named[k], others.named[k] = one(x.fields[k]), true
		}
	}
	if x := v.get("required"); x != nil && x.kind == isArray {
		keys, err := words(x)
		if err != nil {
			return nil, fmt.Errorf("required: %w", err)
		}
		for _, k := range keys {
			if _, ok := o.named[k]; !ok && !o.required[k] {
				o.free = append(o.free, k)
			}
			o.required[k] = true
		}
	}
	if x := v.get("patternProperties"); x != nil {
		for _, k := range x.keys {
			d, err := c.search(k)
			if err != nil {
				return nil, fmt.Errorf("patternProperties: %w", err)
			}
			o.patterns = append(o.patterns, pattern{k, d, one(x.fields[k])})
			others.patterns = append(others.patterns, k)
		}
	}
	if x := v.get("additionalProperties"); x != nil && one(x) != nil {
		others.terms = one(x)
		o.rest = []rest{others}
	}
	if x := v.get("propertyNames"); x != nil {
		s, err := c.set(x)
		if err != nil {
			return nil, err
		}
		d, err := c.orTexts(s.strs)
		if err != nil {
			return nil, fmt.Errorf("propertyNames: %w", err)
		}
		o.names = []*lang.DFA{d}
	}
	return o, nil
}

// forbidding is the set of the objects without a key.
func (c *compiler) forbidding(key string) *object {
	return &object{order: []string{key}, named: map[string]terms{key: {{c.never0, false}}}, max: -1}
}

// enum is one of the values.
func (c *compiler) enum(list *value) (*set, error) {
	if list.kind != isArray {
		return nil, errors.New("want a list of values")
	}
	var sets []*set
	var strings []string
	var numbers []string
	for _, x := range list.list {
		switch x.kind {
		case isString:
			strings = append(strings, x.text)
			continue
		case isNumber:
			numbers = append(numbers, x.text)
			continue
		}
		s, err := c.constant(x)
		if err != nil {
			return nil, err
		}
		sets = append(sets, s)
	}
	if len(strings) > 0 {
		sets = append(sets, &set{strs: []text{{words: strings, listed: true}}})
	}
	if len(numbers) > 0 {
		d, err := c.equal(numbers)
		if err != nil {
			return nil, err
		}
		sets = append(sets, &set{num: d})
	}
	return c.or(sets...)
}

// constant is one value.
func (c *compiler) constant(x *value) (*set, error) {
	switch x.kind {
	case isNull:
		return &set{null: true}, nil
	case isBool:
		return &set{yes: x.yes, no: !x.yes}, nil
	case isNumber:
		d, err := c.equal([]string{x.text})
		return &set{num: d}, err
	case isString:
		return &set{strs: []text{{words: []string{x.text}, listed: true}}}, nil
	case isArray:
		a := &array{min: len(x.list), max: len(x.list)}
		for _, e := range x.list {
			a.prefix = append(a.prefix, c.equals(e))
		}
		return &set{arrs: []*array{a}}, nil
	}
	o := &object{named: map[string]terms{}, required: map[string]bool{}, max: len(x.keys)}
	for _, k := range x.keys {
		o.order = append(o.order, k)
		o.named[k], o.required[k] = c.equals(x.fields[k]), true
	}
	return &set{objs: []*object{o}}, nil
}

// equals is the schema of the values that equal v.
func (c *compiler) equals(v *value) terms {
	if c.consts[v] == nil {
		c.consts[v] = c.values.make(value{kind: isObject, keys: []string{"const"}, fields: map[string]*value{"const": v}})
	}
	return terms{{c.consts[v], false}}
}
