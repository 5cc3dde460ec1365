package jinja

import (
	"strings"
	"unicode"
)

// softly makes a filter that maps the text of any value.
func softly(f func(string) string) *builtin {
	return takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		s, err := r.toText(v)
		if err != nil {
			return nil, err
		}
		if err := r.scan(len(s)); err != nil {
			return nil, err
		}
		return r.str(f(s))
	})
}

// wordTitle is the title filter: words begin at the start and after white space or one of -({[<.
func wordTitle(s string) string {
	chars := []rune(s)
	var b strings.Builder
	start := true
	for i, c := range chars {
		if isSpace(c) || strings.ContainsRune("-({[<", c) {
			start = true
			b.WriteRune(c)
			continue
		}
		if start {
			b.WriteString(upperRune(c))
		} else {
			b.WriteString(lowerRune(chars, i))
		}
		start = false
	}
	return b.String()
}

func defaultFilter(_ *run, v Value, a []Value) (Value, error) {
	_, missing := v.(*undefined)
	if !missing && !(flag(a[1]) && !truth(v)) {
		return v, nil
	}
	if a[0] == nil {
		return Str(""), nil
	}
	return a[0], nil
}

func trimFilter(r *run, v Value, a []Value) (Value, error) {
	s, err := r.toText(v)
	if err != nil {
		return nil, err
	}
	return stringMethods["strip"].fn(r, Str(s), a)
}

func replaceFilter(r *run, v Value, a []Value) (Value, error) {
	var texts [3]string
	for i, x := range []Value{v, a[0], a[1]} {
		var err error
		if texts[i], err = r.toText(x); err != nil {
			return nil, err
		}
	}
	count := -1
	if given(a[2]) {
		var err error
		if count, err = asCount("replace", a[2], -1); err != nil {
			return nil, err
		}
	}
	return r.replace(texts[0], texts[1], texts[2], count)
}

func joinFilter(r *run, v Value, a []Value) (Value, error) {
	sep, err := r.toText(orEmptyText(a[0]))
	if err != nil {
		return nil, err
	}
	by := r.attribute(orNone(a[1]), nil)
	pull, err := r.iterate(v)
	if err != nil {
		return nil, err
	}
	var parts []string
	for {
		item, ok, err := pull()
		if err != nil {
			return nil, err
		}
		if !ok {
			return r.joined(parts, sep)
		}
		if item, err = by(item); err != nil {
			return nil, err
		}
		part, err := r.toText(item)
		if err != nil {
			return nil, err
		}
		if _, safe := item.(markup); r.escape && !safe {
			part = escapeHTML(part)
		}
		parts = append(parts, part)
	}
}

func orEmptyText(v Value) Value {
	if v == nil {
		return Str("")
	}
	return v
}

func indentFilter(r *run, v Value, a []Value) (Value, error) {
	s, ok := text(v)
	if !ok {
		_, err := r.binary("+", v, Str("\n"))
		return nil, firstError(err, fail(Type, "indent: a string is needed, not %s", v.class()))
	}
	indent, ok := text(orNone(a[0]))
	if !ok {
		width, err := asCount("indent", a[0], 4)
		if err != nil {
			return nil, err
		}
		if err := r.room(max(width, 0)); err != nil {
			return nil, err
		}
		indent = strings.Repeat(" ", max(width, 0))
	}
	if err := r.splitting(s); err != nil {
		return nil, err
	}
	lines := splitLines(s+"\n", false)
	if err := r.room(len(s) + len(lines)*len(indent)); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == 0 && flag(a[1]) || i > 0 && (line != "" || flag(a[2])) {
			b.WriteString(indent)
		}
		b.WriteString(line)
	}
	return Str(b.String()), nil
}

func wordCount(r *run, v Value, _ []Value) (Value, error) {
	s, err := r.toText(v)
	if err != nil {
		return nil, err
	}
	words := strings.FieldsFunc(s, func(c rune) bool {
		return c != '_' && !unicode.IsLetter(c) && !unicode.IsNumber(c)
	})
	return Int(len(words)), r.scan(len(s))
}

func truncate(r *run, v Value, a []Value) (Value, error) {
	n, err := r.length(v)
	if err != nil {
		return nil, err
	}
	length, err := asCount("truncate", a[0], 255)
	if err != nil {
		return nil, err
	}
	leeway := 5
	if given(a[3]) {
		if leeway, err = asCount("truncate", a[3], 5); err != nil {
			return nil, err
		}
	}
	end := "..."
	if a[2] != nil {
		if end, err = asText("truncate", a[2]); err != nil {
			return nil, err
		}
	}
	if length < runes(end) || leeway < 0 {
		return nil, fail(Argument, "truncate: expected length >= %d and leeway >= 0, got %d and %d",
			runes(end), length, leeway)
	}
	if n <= length+leeway {
		return v, nil
	}
	s, ok := text(v)
	if !ok {
		return nil, fail(Type, "truncate: a string is needed, not %s", v.class())
	}
	s = firstRunes(s, length-runes(end))
	if at := strings.LastIndexByte(s, ' '); at >= 0 && !flag(a[1]) {
		s = s[:at]
	}
	return r.str(s + end)
}

func formatFilter(r *run, v Value, a callArgs) (Value, error) {
	s, err := r.toText(v)
	if err != nil {
		return nil, err
	}
	if len(a.names) > 0 && len(a.pos) > 0 {
		return nil, fail(Type, "can't handle positional and keyword arguments at the same time")
	}
	if len(a.names) > 0 {
		d, err := r.makeDict("format", callArgs{names: a.names, named: a.named})
		if err != nil {
			return nil, err
		}
		return r.percent(s, d)
	}
	return r.percent(s, Tuple(a.pos))
}

func centerFilter(r *run, v Value, a []Value) (Value, error) {
	s, err := r.toText(v)
	if err != nil {
		return nil, err
	}
	width := Value(Int(80))
	if a[0] != nil {
		width = a[0]
	}
	return stringMethods["center"].fn(r, Str(s), []Value{width, nil})
}

var textFilters = map[string]*builtin{
	"upper": softly(upper), "lower": softly(lower), "capitalize": softly(capitalize), "title": softly(wordTitle),

	"string": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		if isText(v) {
			return v, nil
		}
		s, err := r.toText(v)
		return Str(s), err
	}),
	"default":   takes(0, "default_value boolean", defaultFilter),
	"d":         takes(0, "default_value boolean", defaultFilter),
	"trim":      takes(0, "chars", trimFilter),
	"replace":   takes(2, "old new count", replaceFilter),
	"join":      takes(0, "d attribute", joinFilter),
	"indent":    takes(0, "width first blank", indentFilter),
	"wordcount": takes(0, "", wordCount),
	"truncate":  takes(0, "length killwords end leeway", truncate),
	"format":    takesAny(formatFilter),
	"center":    takes(0, "width", centerFilter),
	"tojson":    takes(0, "ensure_ascii indent separators sort_keys", toJSON),
	"attr": takes(1, "name", func(r *run, v Value, a []Value) (Value, error) {
		if u, ok := v.(*undefined); ok {
			return nil, u.fault()
		}
		name, err := r.toText(a[0])
		if err != nil {
			return nil, err
		}
		if m, err := r.member(v, name); m != nil || err != nil {
			return m, err
		}
		return &undefined{of: v, name: Str(name), kind: UndefinedValue}, nil
	}),
}
