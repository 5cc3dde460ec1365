package constrain

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// parameters are the properties of a schema of arguments, for models that write arguments one by one.
type parameters struct {
	keys     []string // in the order of the schema
	fields   map[string]any
	required []string
	root     map[string]any
}

// parametersOf reads a schema that lists its properties; others are refused.
func parametersOf(text string) (p parameters, err error) {
	if text == "" {
		return p, nil
	}
	var in struct {
		Properties json.RawMessage
		Required   []string
	}
	if err = errors.Join(json.Unmarshal([]byte(text), &p.root), json.Unmarshal([]byte(text), &in)); err != nil {
		return p, err
	}
	for _, other := range [...]string{"$ref", "anyOf", "oneOf", "allOf"} {
		if _, ok := p.root[other]; ok || in.Properties == nil {
			return p, errors.New("this model writes arguments one by one: want a schema that lists them under properties")
		}
	}
	if err = json.Unmarshal(in.Properties, &p.fields); err != nil {
		return p, err
	}
	p.required = in.Required
	seen := map[string]bool{}
	d := json.NewDecoder(strings.NewReader(string(in.Properties)))
	if _, err = d.Token(); err != nil {
		return p, err
	}
	for d.More() {
		key, err := d.Token()
		var skip json.RawMessage
		if err = errors.Join(err, d.Decode(&skip)); err != nil {
			return p, err
		}
		if name := key.(string); !seen[name] {
			seen[name] = true
			p.keys = append(p.keys, name)
		}
	}
	return p, nil
}

// mostAlternatives bounds how deep alternatives and references are followed: references may form a cycle.
const mostAlternatives = 8

// behind resolves a schema that is nothing but a reference.
func (p *parameters) behind(v any) any {
	for range mostAlternatives {
		m, _ := v.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok || !strings.HasPrefix(ref, "#/") {
			break
		}
		at := any(p.root)
		for _, step := range strings.Split(ref[2:], "/") {
			m, _ := at.(map[string]any)
			at = m[step]
		}
		if at == nil {
			break
		}
		v = at
	}
	return v
}

// text says whether a schema allows strings.
func (p *parameters) text(v any, deep int) bool {
	m, ok := p.behind(v).(map[string]any)
	if !ok || deep == 0 {
		return v != false
	}
	is := func(x any) bool { _, text := x.(string); return text }
	if list, ok := m["enum"].([]any); ok {
		return slices.ContainsFunc(list, is)
	}
	if x, ok := m["const"]; ok {
		return is(x)
	}
	switch kind := m["type"].(type) {
	case string:
		return kind == "string"
	case []any:
		return slices.Contains(kind, any("string"))
	}
	for _, key := range [...]string{"anyOf", "oneOf"} {
		if list, ok := m[key].([]any); ok {
			return slices.ContainsFunc(list, func(x any) bool { return p.text(x, deep-1) })
		}
	}
	return true
}

// whole is a schema as JSON, with the definitions that it may refer to.
func (p *parameters) whole(v any) string {
	m, ok := v.(map[string]any)
	if ok {
		with := map[string]any{}
		for _, key := range [...]string{"$defs", "definitions"} {
			if defs, ok := p.root[key]; ok {
				with[key] = defs
			}
		}
		for key, x := range m {
			with[key] = x
		}
		v = with
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "true"
	}
	return string(text)
}
