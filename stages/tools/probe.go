package tools

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Render renders a conversation, {"messages": […], "tools": […]}, with a chat template.
type Render func(conversation string) (string, error)

// Shown is the syntax of a template: that of the families whose marks are in it, or else one read from what the
// template writes when it is given calls. If it writes none, or in a form that cannot be read here, only thoughts
// are read.
func Shown(template string, render Render) *Syntax {
	s := For(template)
	if s.channels != nil {
		return s
	}
	for _, x := range s.sections {
		if !x.bare {
			return s
		}
	}
	if found, ok := derive(render); ok {
		found.thinks, found.skips = s.thinks, append(found.skips, s.skips...)
		found.sections = append(found.sections, s.sections...)
		return found.index()
	}
	return s
}

// The texts of the probe: no template has these words of its own.
const (
	probeText  = "⁂words⁂"
	probeName  = "qqfunction"
	probeNext  = "qqsecond"
	probeID    = "qq7id0123"
	probeKey   = "qqkey"
	probeValue = "qqvalue"
)

// probe is a conversation whose answer is calls of these names; of none, it is probeText.
func probe(names ...string) string {
	type object = map[string]any
	answer := object{"role": "assistant", "content": probeText}
	tools := []object{}
	calls := []object{}
	for i, name := range []string{probeName, probeNext} {
		tools = append(tools, object{"type": "function", "function": object{"name": name, "description": "x",
			"parameters": object{"type": "object", "properties": object{probeKey: object{"type": "string"}}}}})
		if i < len(names) {
			calls = append(calls, object{"id": fmt.Sprint(probeID, i), "type": "function",
				"function": object{"name": names[i], "arguments": object{probeKey: probeValue}}})
		}
	}
	if len(calls) > 0 {
		answer["content"], answer["tool_calls"] = "", calls
	}
	text, err := json.Marshal(object{"tools": tools, "messages": []object{{"role": "user", "content": "x"}, answer}})
	if err != nil {
		panic(err) // maps of strings
	}
	return string(text)
}

// derive reads a syntax out of what a template writes for one call and for two.
func derive(render Render) (*Syntax, bool) {
	plain, err := render(probe())
	if err != nil {
		return nil, false
	}
	one, err := render(probe(probeName))
	if err != nil {
		return nil, false
	}
	first, ok := seen(between(one, plain), probeName)
	if !ok {
		return nil, false
	}
	if two, err := render(probe(probeName, probeNext)); err == nil {
		first.part(between(two, plain))
	}
	return first.syntax()
}

// between is the part of a text that differs from another: the beginning and the end that both have are cut off, but
// marks stay whole.
func between(text, other string) string {
	n := 0
	for n < min(len(text), len(other)) && text[n] == other[n] {
		n++
	}
	if at := strings.LastIndexAny(text[:n], "<["); at >= 0 && !strings.ContainsAny(text[at:n], ">]") {
		n = at
	}
	text, other = text[n:], other[n:]
	n = 0
	for n < min(len(text), len(other)) && text[len(text)-1-n] == other[len(other)-1-n] {
		n++
	}
	end := text[len(text)-n:]
	if at := strings.IndexAny(end, ">]"); at >= 0 && !strings.ContainsAny(end[:at], "<[") {
		n -= at + 1
	}
	return text[:len(text)-n]
}

// sighting is a call in a rendered text.
type sighting struct {
	before, mid, after string // around the name and the arguments; mid: "" where an object holds both
	open, close        string // of the section around calls, cut from before and after
	nameKey, argsKey   string // of the object
	number             string // what follows the first name and differs with each call
	length             int    // of all but after
}

// seen finds the call of a function in a text.
func seen(text, name string) (s sighting, ok bool) {
	at := strings.Index(text, name)
	if at < 0 {
		return s, false
	}
	for i := range at { // the outermost object that holds the name
		if text[i] != '{' {
			continue
		}
		object, n := objectAt(text[i:])
		if n == 0 || i+n < at || !s.keys(object, name) {
			continue
		}
		s.before, s.after, s.length = text[:i], text[i+n:], i+n
		return s, true
	}
	behind := text[at+len(name):]
	i := strings.IndexByte(behind, '{')
	if i < 0 {
		return s, false
	}
	object, n := objectAt(behind[i:])
	if n == 0 || object[probeKey] != probeValue || strings.Contains(text[:at]+behind[:i], probeID) {
		return s, false
	}
	s.before, s.mid, s.after = text[:at], behind[:i], behind[i+n:]
	if s.mid == "" {
		s.mid = "{"
	}
	s.length = at + len(name) + i + n
	return s, true
}

// objectAt reads the object of JSON that a text begins with, and says how long it is.
func objectAt(text string) (object map[string]any, n int) {
	d := json.NewDecoder(strings.NewReader(text))
	if d.Decode(&object) != nil {
		return nil, 0
	}
	return object, int(d.InputOffset())
}

// keys finds the keys under which an object has the name and the arguments.
func (s *sighting) keys(object map[string]any, name string) bool {
	if inner, ok := object["function"].(map[string]any); ok {
		object = inner
	}
	for key, v := range object {
		switch v := v.(type) {
		case string:
			if v == name {
				s.nameKey = key
			} else if strings.Contains(v, probeKey) { // JSON within a string
				s.argsKey = key
			}
		case map[string]any:
			if v[probeKey] == probeValue {
				s.argsKey = key
			}
		}
	}
	if s.argsKey == name {
		s.nameKey = name
	}
	return s.nameKey != "" && s.argsKey != ""
}

// part separates the marks of each call from those around all calls, by what stands between two calls.
func (s *sighting) part(two string) {
	if len(two) < s.length {
		return
	}
	second, ok := seen(two[s.length:], probeNext)
	if !ok {
		return
	}
	if s.mid != second.mid {
		own := common(s.mid, second.mid, true)
		s.number, s.mid = strings.TrimSuffix(s.mid, own), own
	}
	gap := second.before
	own := common(s.before, gap, true)
	s.open, s.before = strings.TrimSuffix(s.before, own), own
	own = common(s.after, gap, false)
	s.close, s.after = strings.TrimPrefix(s.after, own), own
}

// common is what two texts both end with (end), or begin with, in whole marks.
func common(a, b string, end bool) string {
	n, most := 0, min(len(a), len(b))
	if end {
		for n < most && a[len(a)-1-n] == b[len(b)-1-n] {
			n++
		}
		text := a[len(a)-n:]
		if at := strings.IndexAny(text, "<[{"); at >= 0 {
			text = text[at:]
		}
		return text
	}
	for n < most && a[n] == b[n] {
		n++
	}
	text := a[:n]
	if at := strings.LastIndexAny(text, ">]}`"); at >= 0 {
		text = text[:at+1]
	}
	return text
}

// syntax makes the parser's syntax from what was seen.
func (s *sighting) syntax() (*Syntax, bool) {
	out := &Syntax{}
	for _, t := range usualThinks { // an empty thought may come first
		if at := strings.LastIndex(s.open, t.close); at >= 0 {
			s.open = s.open[at+len(t.close):]
		} else if at := strings.LastIndex(s.before, t.close); at >= 0 {
			s.before = s.before[at+len(t.close):]
		}
	}
	trim := func(text, also string) string { return strings.Trim(text, white+also) }
	if s.mid != "" {
		return s.named(out)
	}
	form := &objects{keyIsName: s.nameKey == probeName, nameKey: s.nameKey, argsKey: s.argsKey}
	open, end := trim(s.open, "["), trim(s.close, "]")
	own, ownEnd := trim(s.before, "[,"), trim(s.after, "],")
	switch {
	case own == "" && open == "": // nothing marks it
		form.known = true
		for _, begin := range [...]string{"{", "["} {
			out.sections = append(out.sections, section{open: begin, keep: true, bare: true, bodies: []body{form}})
		}
	case own == "":
		out.sections = []section{{open: open, close: end, bodies: []body{form}}}
	default:
		out.sections = []section{{open: own, close: ownEnd, bodies: []body{form}}}
		out.skip(open, end)
	}
	return out, true
}

// named is the syntax of a name between marks, and arguments behind it.
func (s *sighting) named(out *Syntax) (*Syntax, bool) {
	open := strings.TrimLeft(s.before, white)
	if open == "" {
		return nil, false
	}
	mid := s.mid
	if strings.Trim(mid, white) == "" {
		mid = "{"
	}
	form := &named{open: open, mid: mid, end: strings.TrimSpace(s.after)}
	if s.number != "" {
		form.clean = numbered(s.number[:1])
	}
	out.sections = []section{{open: open, keep: true, bodies: []body{form}}}
	out.skip(strings.TrimSpace(s.open), strings.TrimSpace(s.close))
	return out, true
}

// numbered reads a name and a number behind it; both are the call's id.
func numbered(mark string) func(raw string) (name, id string) {
	return func(raw string) (name, id string) {
		if at := strings.LastIndex(raw, mark); at > 0 {
			return raw[:at], raw
		}
		return raw, ""
	}
}

// skip adds marks that are dropped.
func (s *Syntax) skip(marks ...string) {
	for _, m := range marks {
		if m != "" {
			s.skips = append(s.skips, m)
		}
	}
}
