package schema

import (
	"errors"
	"maps"
)

// looked is what the keywords of a schema have looked at, whichever value it is given.
type looked struct {
	keys     map[string]bool
	patterns []string
	items    int  // so many from the first
	allKeys  bool // additionalProperties looks at the others
	allItems bool
}

// unevaluated says what must hold of keys, or items, that nothing else in the schema has looked at.
func (c *compiler) unevaluated(k string, v, x *value) (*set, error) {
	out := c.all()
	t := one(x)
	if t == nil {
		return out, nil
	}
	l := looked{keys: map[string]bool{}}
	if err := c.look(v, &l, k, map[*value]bool{}); err != nil {
		return nil, err
	}
	if k == "unevaluatedItems" {
		if !l.allItems {
			out.arrs = []*array{{prefix: make([]terms, l.items), items: t, max: -1}}
		}
	} else if !l.allKeys {
		out.objs = []*object{{rest: []rest{{named: l.keys, patterns: l.patterns, terms: t}}, max: -1}}
	}
	return out, nil
}

// look collects what v looks at. Where that depends on the value it is an error.
func (c *compiler) look(v *value, l *looked, skip string, seen map[*value]bool) error {
	if v.kind != isObject || seen[v] {
		return nil
	}
	seen[v] = true
	if err := c.left.Take(10 + 5*len(v.keys)); err != nil {
		return err
	}
	for _, k := range v.keys {
		x := v.fields[k]
		switch k {
		case "$ref":
			to, err := c.index.find(v, x.text)
			if err == nil {
				err = c.look(to, l, "", seen)
			}
			if err != nil {
				return err
			}
		case "allOf":
			for _, e := range x.list {
				if err := c.look(e, l, "", seen); err != nil {
					return err
				}
			}
		case "anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "$dynamicRef", "contains":
			if k == "contains" && skip == "unevaluatedProperties" {
				continue
			}
			return errors.New("beside " + k + " it depends on the value what is not evaluated")
		default:
			l.keyword(k, x, skip)
		}
	}
	return nil
}

func (l *looked) keyword(k string, x *value, skip string) {
	switch k {
	case "properties":
		maps.Copy(l.keys, boolsOf(x.keys))
	case "patternProperties":
		l.patterns = append(l.patterns, x.keys...)
	case "additionalProperties":
		l.allKeys = true
	case "unevaluatedProperties":
		l.allKeys = l.allKeys || skip != k
	case "prefixItems":
		l.items = max(l.items, len(x.list))
	case "items":
		if x.kind == isArray {
			l.items = max(l.items, len(x.list))
		} else {
			l.allItems = true
		}
	case "additionalItems":
		l.allItems = true
	case "unevaluatedItems":
		l.allItems = l.allItems || skip != k
	}
}

func boolsOf(keys []string) map[string]bool {
	out := map[string]bool{}
	for _, k := range keys {
		out[k] = true
	}
	return out
}
