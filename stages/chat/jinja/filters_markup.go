package jinja

import (
	"fmt"
	"html"
	"strings"
)

// escapeHTML escapes as markupsafe does.
func escapeHTML(s string) string {
	return htmlEscapes.Replace(s)
}

var htmlEscapes = strings.NewReplacer("&", "&amp;", ">", "&gt;", "<", "&lt;", "'", "&#39;", `"`, "&#34;")

func escapeFilter(r *run, v Value, _ []Value) (Value, error) {
	if m, ok := v.(markup); ok {
		return m, nil
	}
	return forceEscape(r, v, nil)
}

func forceEscape(r *run, v Value, _ []Value) (Value, error) {
	s, err := r.toText(v)
	if err != nil {
		return nil, err
	}
	s = escapeHTML(s)
	return markup(s), r.room(len(s))
}

// stripTags removes tags and comments and joins runs of white space.
func stripTags(r *run, v Value, _ []Value) (Value, error) {
	s, err := r.toText(v)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for {
		at := strings.IndexByte(s, '<')
		if at < 0 {
			break
		}
		closing := ">"
		if strings.HasPrefix(s[at:], "<!--") {
			closing = "-->"
		}
		end := strings.Index(s[at:], closing)
		if end < 0 {
			break
		}
		b.WriteString(s[:at])
		s = s[at+end+len(closing):]
	}
	b.WriteString(s)
	return r.str(html.UnescapeString(strings.Join(splitSpace(b.String(), -1), " ")))
}

// quoteURL is percent encoding; "/" stays unless the text is part of a query, where a space becomes "+".
func quoteURL(s string, query bool) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("_.-~", c) >= 0,
			c == '/' && !query:
			b.WriteByte(c)
		case c == ' ' && query:
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func urlEncode(r *run, v Value, _ []Value) (Value, error) {
	if _, err := r.walk(v); err != nil || isText(v) {
		s, err := r.toText(v)
		if err != nil {
			return nil, err
		}
		return r.str(quoteURL(s, false))
	}
	if d, ok := v.(*Dict); ok {
		v = &view{kind: "dict_items", of: d}
	}
	pairs, err := r.collect(v)
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, p := range pairs {
		pair, err := r.collect(p)
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, fail(Argument, "urlencode: an element of %d parts, wanted (key, value)", len(pair))
		}
		k, err := r.toText(pair[0])
		if err != nil {
			return nil, err
		}
		val, err := r.toText(pair[1])
		if err != nil {
			return nil, err
		}
		parts = append(parts, quoteURL(k, true)+"="+quoteURL(val, true))
	}
	return r.joined(parts, "&")
}

func xmlAttr(r *run, v Value, a []Value) (Value, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, fail(Type, "xmlattr: a mapping is needed, not %s", v.class())
	}
	var parts []string
	for i, k := range d.keys {
		switch d.values[i].(type) {
		case None, *undefined:
			continue
		}
		name, err := r.toText(k)
		if err != nil {
			return nil, err
		}
		if strings.ContainsFunc(name, isSpace) || strings.ContainsAny(name, "/>=") {
			return nil, fail(Argument, "Invalid character in attribute name: %.40q", name)
		}
		value, err := r.toText(d.values[i])
		if err != nil {
			return nil, err
		}
		parts = append(parts, escapeHTML(name)+`="`+escapeHTML(value)+`"`)
	}
	s := strings.Join(parts, " ")
	if s != "" && (a[0] == nil || truth(a[0])) {
		s = " " + s
	}
	return r.str(s)
}

var markupFilters = map[string]*builtin{
	"safe": takes(0, "", func(r *run, v Value, _ []Value) (Value, error) {
		s, err := r.toText(v)
		return markup(s), err
	}),
	"escape":      takes(0, "", escapeFilter),
	"e":           takes(0, "", escapeFilter),
	"forceescape": takes(0, "", forceEscape),
	"striptags":   takes(0, "", stripTags),
	"urlencode":   takes(0, "", urlEncode),
	"xmlattr":     takes(0, "autospace", xmlAttr),
}
