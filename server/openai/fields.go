package openai

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

// fields are the members of a JSON object. Each method reads one of them into a variable, which keeps its value
// where the member is absent or null, and remembers the first fault.
type fields struct {
	members map[string]json.RawMessage
	fault   *Error
}

// maxDepth bounds the nesting of a request; tool schemas have 10 or so.
const maxDepth = 100

// readFields decodes the body of a request.
func readFields(body []byte) *fields {
	f := &fields{}
	if at := tooDeep(body); at >= 0 {
		f.fault = Invalid("", "invalid_json", "byte %d of the body: nested deeper than %d levels: want a flatter object", at, maxDepth)
		return f
	}
	err := json.Unmarshal(body, &f.members)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax) && int(syntax.Offset) >= len(body):
		f.fault = Invalid("", "invalid_json", "the body has %d bytes and is not JSON at its end: is it complete?", len(body))
	case errors.As(err, &syntax):
		at := max(int(syntax.Offset)-1, 0)
		f.fault = Invalid("", "invalid_json", "byte %d of the body: it is not JSON from here on: %s", at, shown(body[at:]))
	case err != nil, f.members == nil:
		f.fault = Invalid("", "invalid_json", `the body is %s: want a JSON object such as {"messages": [...]}`, shown(body))
	}
	return f
}

// tooDeep returns the place where a body nests too deeply, or -1.
func tooDeep(body []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch b := body[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '[' || b == '{':
			if depth++; depth > maxDepth {
				return i
			}
		case b == ']' || b == '}':
			depth--
		}
	}
	return -1
}

// shown is the beginning of what was found, for an error text.
func shown(found []byte) string {
	const most = 40
	if len(found) == 0 {
		return "empty"
	}
	if len(found) <= most {
		return string(found)
	}
	found = found[:most]
	for len(found) > 0 && !utf8.Valid(found) && len(found) > most-utf8.UTFMax {
		found = found[:len(found)-1]
	}
	return string(found) + "..."
}

// get returns a member that is present and not null, unless a fault was found already.
func (f *fields) get(name string) (json.RawMessage, bool) {
	raw, ok := f.members[name]
	return raw, ok && f.fault == nil && string(raw) != "null"
}

func (f *fields) wrong(name string, raw []byte, want string) {
	if f.fault == nil {
		f.fault = Invalid(name, "invalid_value", "%s is %s: want %s", name, shown(raw), want)
	}
}

func (f *fields) number(name string, lo, hi float32, to *float32) {
	raw, ok := f.get(name)
	if !ok {
		return
	}
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || x < float64(lo) || x > float64(hi) {
		f.wrong(name, raw, "a number from "+spell(lo)+" to "+spell(hi))
		return
	}
	*to = float32(x)
}

func spell(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// integer also takes what other languages make of one: 5.0, 1e3.
func (f *fields) integer(name string, lo, hi int64, to *int64) {
	raw, ok := f.get(name)
	if !ok {
		return
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		var x float64
		if err = json.Unmarshal(raw, &x); err == nil && (x != math.Trunc(x) || math.Abs(x) > 1<<53) {
			err = strconv.ErrSyntax
		}
		n = int64(x)
	}
	if err != nil || n < lo || n > hi {
		f.wrong(name, raw, "an integer from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
		return
	}
	*to = n
}

func (f *fields) count(name string, lo, hi int, to *int) {
	n := int64(*to)
	f.integer(name, int64(lo), int64(hi), &n)
	*to = int(n)
}

func (f *fields) flag(name string, to *bool) {
	raw, ok := f.get(name)
	if ok && json.Unmarshal(raw, to) != nil {
		f.wrong(name, raw, "true or false")
	}
}

func (f *fields) text(name string, to *string) {
	raw, ok := f.get(name)
	if ok && json.Unmarshal(raw, to) != nil {
		f.wrong(name, raw, "a string")
	}
}

// texts takes one string or a list of them: up to most, none empty, none longer than bytes.
func (f *fields) texts(name string, most, bytes int, to *[]string) {
	raw, ok := f.get(name)
	if !ok {
		return
	}
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		f.wrong(name, raw, "a string or a list of strings")
		return
	}
	if len(list) > most {
		f.fault = Invalid(name, "invalid_value", "%s has %d entries: want at most %d", name, len(list), most)
		return
	}
	for i, s := range list {
		if s == "" || len(s) > bytes {
			f.fault = Invalid(name, "invalid_value", "%s: entry %d has %d bytes: want 1 to %d", name, i, len(s), bytes)
			return
		}
	}
	*to = list
}

// absent refuses a member that asks for what there is not.
func (f *fields) absent(name, instead string) {
	if raw, ok := f.get(name); ok && string(raw) != "false" && string(raw) != `""` {
		f.fault = Invalid(name, "unsupported_value", "%s is not supported here: %s", name, instead)
	}
}
