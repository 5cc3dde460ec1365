package wire

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

// Fields are the members of a JSON object. Each method reads one of them into a variable, which keeps its value where
// the member is absent or null, and remembers the first fault; after it, nothing is read any more.
type Fields struct {
	members map[string]json.RawMessage
	Fault   *Fault
}

// maxDepth bounds the nesting of a request; tool schemas have 10 or so.
const maxDepth = 100

// ReadFields decodes the body of a request.
func ReadFields(body []byte) *Fields {
	f := &Fields{}
	if at := tooDeep(body); at >= 0 {
		f.Fault = Invalid("", "invalid_json", "byte %d of the body: nested deeper than %d levels: want a flatter object", at, maxDepth)
		return f
	}
	err := json.Unmarshal(body, &f.members)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax) && int(syntax.Offset) >= len(body):
		f.Fault = Invalid("", "invalid_json", "the body has %d bytes and is not JSON at its end: is it complete?", len(body))
	case errors.As(err, &syntax):
		at := max(int(syntax.Offset)-1, 0)
		f.Fault = Invalid("", "invalid_json", "byte %d of the body: it is not JSON from here on: %s", at, Shown(body[at:]))
	case err != nil, f.members == nil:
		f.Fault = Invalid("", "invalid_json", `the body is %s: want a JSON object such as {"messages": [...]}`, Shown(body))
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

// Shown is the beginning of what was found, for an error text.
func Shown(found []byte) string {
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

// Get returns a member that is present and not null, unless a fault was found already.
func (f *Fields) Get(name string) (json.RawMessage, bool) {
	raw, ok := f.members[name]
	return raw, ok && f.Fault == nil && string(raw) != "null"
}

// Wrong is the fault of a member that is there and has another value than wanted.
func (f *Fields) Wrong(name string, raw []byte, want string) {
	if f.Fault == nil {
		f.Fault = Invalid(name, "invalid_value", "%s is %s: want %s", name, Shown(raw), want)
	}
}

// Number reads a number from lo to hi.
func (f *Fields) Number(name string, lo, hi float32, to *float32) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	var x float64
	if err := json.Unmarshal(raw, &x); err != nil || x < float64(lo) || x > float64(hi) {
		f.Wrong(name, raw, "a number from "+spell(lo)+" to "+spell(hi))
		return
	}
	*to = float32(x)
}

func spell(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// Integer reads a whole number; it also takes what other languages make of one: 5.0, 1e3.
func (f *Fields) Integer(name string, lo, hi int64, to *int64) {
	raw, ok := f.Get(name)
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
		f.Wrong(name, raw, "an integer from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
		return
	}
	*to = n
}

// Count is Integer for an int.
func (f *Fields) Count(name string, lo, hi int, to *int) {
	n := int64(*to)
	f.Integer(name, int64(lo), int64(hi), &n)
	*to = int(n)
}

// Flag reads true or false.
func (f *Fields) Flag(name string, to *bool) {
	raw, ok := f.Get(name)
	if ok && json.Unmarshal(raw, to) != nil {
		f.Wrong(name, raw, "true or false")
	}
}

// Text reads a string.
func (f *Fields) Text(name string, to *string) {
	raw, ok := f.Get(name)
	if ok && json.Unmarshal(raw, to) != nil {
		f.Wrong(name, raw, "a string")
	}
}

// Texts takes one string or a list of them: up to most, none empty, none longer than bytes.
func (f *Fields) Texts(name string, most, bytes int, to *[]string) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	var one string
	var list []string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil {
		f.Wrong(name, raw, "a string or a list of strings")
		return
	}
	if len(list) > most {
		f.Fault = Invalid(name, "invalid_value", "%s has %d entries: want at most %d", name, len(list), most)
		return
	}
	for i, s := range list {
		if s == "" || len(s) > bytes {
			f.Fault = Invalid(name, "invalid_value", "%s: entry %d has %d bytes: want 1 to %d", name, i, len(s), bytes)
			return
		}
	}
	*to = list
}

// Absent refuses a member that asks for what there is not.
func (f *Fields) Absent(name, instead string) {
	if raw, ok := f.Get(name); ok && string(raw) != "false" && string(raw) != `""` {
		f.Fault = Invalid(name, "unsupported_value", "%s is not supported here: %s", name, instead)
	}
}

// Object reads an object's members, with read; its faults name both. want is said where it is none. Without it, read is
// not called.
func (f *Fields) Object(name, want string, read func(*Fields)) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	inner := ReadFields(raw)
	if inner.Fault != nil {
		f.Wrong(name, raw, want)
		return
	}
	read(inner)
	if f.Fault == nil && inner.Fault != nil {
		f.Fault = inner.Fault
		f.Fault.Param = name + "." + inner.Fault.Param
		f.Fault.Text = name + "." + inner.Fault.Text
	}
}
