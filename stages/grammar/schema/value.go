package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	mostText    = 1 << 20 // bytes of a schema
	deepestText = 300     // arrays and objects within each other
	mostValues  = 100_000 // of all kinds
)

type kind uint8

const (
	isNull kind = iota
	isBool
	isNumber
	isString
	isArray
	isObject
)

// value is JSON as it was written, with the order of keys.
type value struct {
	id     int // numbered in the order of reading: what sets of schemas are told apart by
	kind   kind
	yes    bool
	text   string // of strings and numbers
	list   []*value
	keys   []string
	fields map[string]*value
}

// get returns the field of an object, or nil.
func (v *value) get(key string) *value { return v.fields[key] }

// excess says that a schema is too large to be read.
type excess string

func (e excess) Error() string { return string(e) }

// parser reads values and numbers them.
type parser struct {
	d    *json.Decoder
	next int
}

func parse(text string) (*value, *parser, error) {
	if len(text) > mostText {
		return nil, nil, fmt.Errorf("%d bytes, want at most %d", len(text), mostText)
	}
	p := &parser{d: json.NewDecoder(strings.NewReader(text))}
	p.d.UseNumber()
	v, err := p.value(0)
	if err == nil {
		if _, end := p.d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("something follows its end")
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if errors.As(err, new(excess)) {
		return nil, nil, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return v, p, nil
}

// make returns a new value, which is no part of the text.
func (p *parser) make(v value) *value {
	v.id = p.next
	p.next++
	return &v
}

func (p *parser) value(depth int) (*value, error) {
	if depth > deepestText {
		return nil, excess(fmt.Sprintf("more than %d arrays and objects within each other", deepestText))
	}
	if p.next >= mostValues {
		return nil, excess(fmt.Sprintf("more than %d values", mostValues))
	}
	t, err := p.d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case bool:
		return p.make(value{kind: isBool, yes: t}), nil
	case json.Number:
		return p.make(value{kind: isNumber, text: t.String()}), nil
	case string:
		return p.make(value{kind: isString, text: t}), nil
	case json.Delim:
		v := p.make(value{kind: isArray})
		if t == '{' {
			v.kind, v.fields = isObject, map[string]*value{}
		}
		return v, p.inside(v, depth)
	}
	return p.make(value{kind: isNull}), nil
}

// inside reads what an array or object holds.
func (p *parser) inside(v *value, depth int) error {
	for p.d.More() {
		key := ""
		if v.kind == isObject {
			t, err := p.d.Token()
			if err != nil {
				return err
			}
			key = t.(string)
		}
		x, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		if v.kind == isArray {
			v.list = append(v.list, x)
			continue
		}
		if v.fields[key] == nil {
			v.keys = append(v.keys, key)
		}
		v.fields[key] = x
	}
	_, err := p.d.Token()
	return err
}

// shown is a text of the schema's as messages have it: no more of it than its beginning.
func shown(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// quote writes a text as JSON does, without escapes that need not be.
func quote(s string) string {
	escaped := func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= 0x7F }
	if !strings.ContainsFunc(s, escaped) {
		return `"` + s + `"`
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	out := strings.TrimSuffix(b.String(), "\n")
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(out)
}
