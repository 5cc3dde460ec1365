package wire

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/sluice-ai/sluice/internal/jsontext"
)

// Fields are the members of a JSON object. Each method decodes a member into a variable, which keeps its value if the
// member is absent or null. The first fault is remembered; after it all methods do nothing.
type Fields struct {
	Budget *jsontext.Budget // limits the values of the whole request
	Fault  *Fault
	Notes  []string // what was passed over, for the log

	place   string // names of the objects around this one, each followed by a dot
	members map[string]string
}

// Place returns the name of a member, with the names of the objects around it.
func (f *Fields) Place(name string) string { return f.place + name }

// Note notes that something of the request is passed over, once.
func (f *Fields) Note(text string) {
	if !slices.Contains(f.Notes, text) {
		f.Notes = append(f.Notes, text)
	}
}

// maxDepth bounds the nesting of a request; tool schemas have 10 or so.
const maxDepth = 100

// ReadFields decodes the body of a request; its long texts remain parts of the body. Decoded values are charged to
// the budget.
func ReadFields(body string, b *jsontext.Budget) *Fields {
	f := &Fields{Budget: b}
	if at := badText(body); at >= 0 {
		f.Fault = Invalid("", "invalid_json", "byte %d of the body: it is not UTF-8 from here on: send JSON in UTF-8", at)
		return f
	}
	f.read(body)
	return f
}

// badText returns the index of the first byte of text that is not UTF-8, or -1.
func badText(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	at := 0
	for {
		r, n := utf8.DecodeRuneInString(text[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
}

func (f *Fields) read(text string) {
	r := jsontext.New(text, maxDepth, f.Budget)
	if r.Next() != '{' {
		if _, err := r.Raw(); err != nil {
			f.Fault = Malformed(text, err)
			return
		}
		f.Fault = Invalid("", "invalid_json", `the body is %s: want a JSON object such as {"messages": [...]}`, Shown(text))
		return
	}
	f.members = make(map[string]string)
	err := r.Object(func(key string) error {
		raw, err := r.Raw()
		f.members[key] = raw
		return err
	})
	if err == nil {
		err = r.End()
	}
	if err != nil {
		f.Fault = Malformed(text, err)
	}
}

// Malformed is the fault of a body for which a jsontext.Reader returned err.
func Malformed(body string, err error) *Fault {
	var syntax *jsontext.SyntaxError
	var deep *jsontext.DepthError
	switch {
	case errors.As(err, &deep):
		return Invalid("", "invalid_json", "byte %d of the body: nested deeper than %d levels: want a flatter object", deep.At, deep.Most)
	case errors.As(err, &syntax) && syntax.At >= len(body):
		return Invalid("", "invalid_json", "the body has %d bytes and is not JSON at its end: is it complete?", len(body))
	case errors.As(err, &syntax):
		return Invalid("", "invalid_json", "byte %d of the body: it is not JSON from here on: %s", syntax.At, Shown(body[syntax.At:]))
	case errors.Is(err, jsontext.ErrTooMany):
		return Invalid("", "too_many_values", "the body has more values than are read of one request: send fewer messages, tools or fields")
	}
	return Gone() // only the end of the request's context is left
}

// Shown returns the beginning of a found text, for an error message.
func Shown(found string) string {
	const most = 40
	if len(found) == 0 {
		return "empty"
	}
	if len(found) <= most {
		return found
	}
	found = found[:most]
	for len(found) > 0 && !utf8.ValidString(found) && len(found) > most-utf8.UTFMax {
		found = found[:len(found)-1]
	}
	return found + "..."
}

// Get returns the JSON of a member; ok is false if it is absent or null, or after a fault.
func (f *Fields) Get(name string) (raw string, ok bool) {
	raw, ok = f.members[name]
	return raw, ok && f.Fault == nil && raw != "null"
}

// Reader returns a reader of a member's JSON.
func (f *Fields) Reader(raw string) *jsontext.Reader { return jsontext.New(raw, maxDepth, f.Budget) }

// Broken records the fault of a member whose decoding failed: it has another form than wanted, or too many values.
func (f *Fields) Broken(name, raw string, err error, want string) {
	switch {
	case f.Fault != nil:
	case f.Budget.Spent(err):
		f.Fault = Malformed(raw, err)
	default:
		f.Wrong(name, raw, want)
	}
}

// Wrong records the fault of a member whose value is not the wanted one.
func (f *Fields) Wrong(name, raw, want string) {
	if f.Fault == nil {
		f.Fault = Invalid(name, "invalid_value", "%s is %s: want %s", name, Shown(raw), want)
	}
}

// Float parses a number; ok is false if raw is none.
func Float(raw string) (x float64, ok bool) {
	if raw == "" || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	x, err := strconv.ParseFloat(raw, 64)
	return x, err == nil
}

// Number decodes a number from lo to hi.
func (f *Fields) Number(name string, lo, hi float32, to *float32) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	x, number := Float(raw)
	if !number || x < float64(lo) || x > float64(hi) {
		f.Wrong(name, raw, "a number from "+spell(lo)+" to "+spell(hi))
		return
	}
	*to = float32(x)
}

func spell(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

// Integer decodes a whole number from lo to hi; it accepts the spellings of other languages: 5.0, 1e3.
func (f *Fields) Integer(name string, lo, hi int64, to *int64) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		x, number := Float(raw)
		if number && x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
			n, err = int64(x), nil
		}
	}
	if err != nil || n < lo || n > hi {
		f.Wrong(name, raw, "an integer from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
		return
	}
	*to = n
}

// Count decodes a whole number from lo to hi into an int.
func (f *Fields) Count(name string, lo, hi int, to *int) {
	n := int64(*to)
	f.Integer(name, int64(lo), int64(hi), &n)
	*to = int(n)
}

// Flag decodes true or false.
func (f *Fields) Flag(name string, to *bool) {
	switch raw, ok := f.Get(name); {
	case !ok:
	case raw == "true", raw == "false":
		*to = raw == "true"
	default:
		f.Wrong(name, raw, "true or false")
	}
}

// Text decodes a string.
func (f *Fields) Text(name string, to *string) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	text, err := f.Reader(raw).String()
	if err != nil {
		f.Broken(name, raw, err, "a string")
		return
	}
	*to = text
}

// Texts decodes one string or a list of them: up to most, none of them empty, none longer than bytes.
func (f *Fields) Texts(name string, most, bytes int, to *[]string) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	r, list := f.Reader(raw), []string{}
	text := func() error {
		s, err := r.String()
		if len(list) <= most { // one more says that there are too many
			list = append(list, s)
		}
		return err
	}
	read := text
	if r.Next() == '[' {
		read = func() error { return r.Array(text) }
	}
	if err := read(); err != nil {
		f.Broken(name, raw, err, "a string or a list of strings")
		return
	}
	if len(list) > most {
		f.Fault = Invalid(name, "invalid_value", "%s has more than %d entries: want fewer", name, most)
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

// Absent refuses a member that asks for a missing feature, and says what to use instead.
func (f *Fields) Absent(name, instead string) {
	if raw, ok := f.Get(name); ok && raw != "false" && raw != `""` {
		f.Fault = Invalid(name, "unsupported_value", "%s is not supported here: %s", name, instead)
	}
}

// Object decodes an object's members by read; faults in it name both. If the member is no object, the fault says
// want, and read is not called.
func (f *Fields) Object(name, want string, read func(*Fields)) {
	raw, ok := f.Get(name)
	if !ok {
		return
	}
	inner := &Fields{Budget: f.Budget, place: f.Place(name) + "."}
	if inner.read(raw); inner.Fault != nil {
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
