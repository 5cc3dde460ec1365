package tools

import "strings"

// maxElements is how deep elements nest: each level is read again in the next.
const maxElements = 32

// element appends an element's content as JSON: text, or elements in it, which are a list if the schema says so or all
// have the same name.
func (f *tagged) element(out []byte, text string, s schema, depth int) []byte {
	open := f.param.open
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), open) ||
		s.is("string") || depth == maxElements {
		return s.json(out, text, false)
	}
	type member struct{ key, text string }
	var all []member
	for rest := strings.TrimLeft(text, " \t\r\n"); strings.HasPrefix(rest, open); {
		key, body, ok := strings.Cut(rest[len(open):], ">")
		if !ok {
			break
		}
		body, after, _ := cutElement(body, open+key+">", f.close+key+">")
		all = append(all, member{key, body})
		rest = strings.TrimLeft(after, " \t\r\n")
	}
	list := s.is("array") || len(all) > 0 && all[0].key == "item" && !s.is("object")
	brackets := "{}"
	if list {
		brackets = "[]"
	}
	out = append(out, brackets[0])
	for i, m := range all {
		if i > 0 {
			out = append(out, ", "...)
		}
		if list {
			out = f.element(out, m.text, s.items(), depth+1)
		} else {
			out = f.element(append(quoted(out, m.key), ": "...), m.text, s.field(m.key), depth+1)
		}
	}
	return append(out, brackets[1])
}

// cutElement finds where an element ends; others of its name may be within.
func cutElement(text, open, end string) (body, after string, ok bool) {
	depth := 1
	for at := 0; at < len(text); {
		switch {
		case strings.HasPrefix(text[at:], end):
			if depth--; depth == 0 {
				return text[:at], text[at+len(end):], true
			}
			at += len(end)
		case strings.HasPrefix(text[at:], open):
			depth++
			at += len(open)
		default:
			at++
		}
	}
	return text, "", false
}
