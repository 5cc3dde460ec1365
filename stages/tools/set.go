package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Tool is a function that a model may call.
type Tool struct {
	Name       string
	Parameters string // JSON Schema of its arguments; "": it takes none
	Strict     bool   // its arguments must keep to Parameters
}

// Choice is which functions an answer may call, and whether it must. Nobody changes it.
type Choice struct {
	List   []Tool
	Must   bool   // the answer is a call, or several; their arguments are kept to the schemas
	Only   string // with Must: the tool to call; "": any
	Single bool   // at most one call
	Free   bool   // unless it is firm, calls may name any tool, with any arguments
}

// Binds says whether the answer may have to be constrained: calls name tools of the list, and their arguments keep
// to the schemas as far as a grammar can express them.
func (c *Choice) Binds() bool { return c.Firm() || len(c.List) > 0 && !c.Free }

// Firm says whether the request fails if the answer cannot be constrained.
func (c *Choice) Firm() bool {
	return c.Must || slices.ContainsFunc(c.List, func(t Tool) bool { return t.Strict })
}

// Set is the tools of a request. The nil Set is that of a request whose tools are unknown: any name may be a tool's.
type Set struct {
	names  []string
	fields map[string]schema // by name: of the arguments
}

// schema is the part of a JSON Schema that decides which type a text of an argument has.
type schema struct {
	known any
	root  any
}

// NewSet makes the set of some tools; an empty list gives a set in which nothing may be called.
func NewSet(list []Tool) (*Set, error) {
	s := &Set{fields: map[string]schema{}}
	for _, t := range list {
		var parameters any
		if t.Parameters != "" {
			if err := json.Unmarshal([]byte(t.Parameters), &parameters); err != nil {
				return nil, fmt.Errorf("the parameters of %s: %w", t.Name, err)
			}
		}
		s.names, s.fields[t.Name] = append(s.names, t.Name), schema{parameters, parameters}
	}
	return s, nil
}

// ParseSet reads tools in OpenAI's shape: a list of {"type":"function","function":{"name":…,"parameters":{…}}}, or of
// the inner objects.
func ParseSet(data []byte) (*Set, error) {
	var list []map[string]any
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("tools: want a list of functions: %w", err)
	}
	s := &Set{fields: map[string]schema{}}
	for i, t := range list {
		if inner, ok := t["function"].(map[string]any); ok {
			t = inner
		}
		name, _ := t["name"].(string)
		if name == "" {
			return nil, fmt.Errorf("tools[%d]: there is no name: want {\"type\": \"function\", \"function\": {\"name\": …}}", i)
		}
		s.names = append(s.names, name)
		parameters := t["parameters"]
		if parameters == nil {
			parameters = t["input_schema"]
		}
		s.fields[name] = schema{parameters, parameters}
	}
	return s, nil
}

// Some says whether calls are possible.
func (s *Set) Some() bool { return s == nil || len(s.names) > 0 }

func (s *Set) has(name string) bool { return s == nil || slices.Contains(s.names, name) }

// begins says whether a text is the beginning of a name.
func (s *Set) begins(text string) bool {
	return s == nil || slices.ContainsFunc(s.names, func(n string) bool { return strings.HasPrefix(n, text) })
}

func (s *Set) field(tool, key string) schema {
	if s == nil {
		return schema{}
	}
	return s.fields[tool].field(key)
}

func (s schema) at(v any) schema {
	for range 8 { // references may go around in circles
		m, _ := v.(map[string]any)
		ref, ok := m["$ref"].(string)
		if !ok {
			break
		}
		v = s.root
		for _, step := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
			m, _ := v.(map[string]any)
			v = m[step]
		}
	}
	return schema{v, s.root}
}

func (s schema) field(key string) schema {
	m, _ := s.known.(map[string]any)
	properties, _ := m["properties"].(map[string]any)
	if v, ok := properties[key]; ok {
		return s.at(v)
	}
	return s.at(m["additionalProperties"])
}

func (s schema) items() schema {
	m, _ := s.known.(map[string]any)
	return s.at(m["items"])
}

// types lists the JSON types that a value may have; nil if the schema does not say.
func (s schema) types() []string {
	looked := 0
	all := s.among(&looked)
	slices.Sort(all)
	return slices.Compact(all)
}

// mostLooked bounds the alternatives that are looked at: references may go around in circles.
const mostLooked = 64

func (s schema) among(looked *int) (all []string) {
	if *looked++; *looked > mostLooked {
		return nil
	}
	m, _ := s.known.(map[string]any)
	switch t := m["type"].(type) {
	case string:
		all = append(all, t)
	case []any:
		for _, x := range t {
			if name, ok := x.(string); ok {
				all = append(all, name)
			}
		}
	}
	if enum, ok := m["enum"].([]any); ok && all == nil {
		for _, x := range enum {
			all = append(all, typeOf(x))
		}
	}
	if v, ok := m["const"]; ok && all == nil {
		all = append(all, typeOf(v))
	}
	for _, key := range [...]string{"anyOf", "oneOf"} {
		list, _ := m[key].([]any)
		for _, x := range list {
			all = append(all, s.at(x).among(looked)...)
		}
	}
	if _, ok := m["properties"]; ok && all == nil {
		all = append(all, "object")
	}
	return all
}

func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case nil:
		return "null"
	case float64:
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func (s schema) is(name string) bool { return slices.Contains(s.types(), name) }

// onlyText says that a value is a text, whatever it reads as. What nobody told a type of is one too: 007 and null may
// be words, and whoever wants a number can read one.
func (s schema) onlyText() bool {
	if s.known == nil {
		return true
	}
	t := s.types()
	return len(t) == 1 && t[0] == "string"
}

// json appends a text as the value that it is by the schema: what may be a string is one, unless it reads as another of
// its types. typed: the call itself says that it is no string.
func (s schema) json(out []byte, text string, typed bool) []byte {
	types := s.types()
	if s.onlyText() && !typed {
		return quoted(out, text)
	}
	trimmed := strings.TrimSpace(text)
	v := value{}
	n, read := v.take([]byte(trimmed), nil, true)
	good := v.done && !v.bad && n == len(trimmed) && n > 0
	if good && len(types) > 0 && !typed {
		var x any
		good = json.Unmarshal(read, &x) == nil
		kind := typeOf(x)
		if good && !slices.Contains(types, kind) && !(kind == "number" && slices.Contains(types, "integer")) {
			good = !slices.Contains(types, "string")
		}
		if kind == "string" {
			good = false
		}
	} else if good && len(read) > 0 && read[0] == '"' && !typed {
		good = false
	}
	if !good {
		return quoted(out, text)
	}
	return append(out, read...)
}
