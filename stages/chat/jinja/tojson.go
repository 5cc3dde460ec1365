package jinja

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// jsonWriter writes a value as Python's json.dumps does.
type jsonWriter struct {
	strings.Builder
	run      *run
	ascii    bool   // ensure_ascii
	pretty   bool   // one element a line
	indent   string // of one level, if pretty
	item     string // between elements
	colon    string // between key and value
	sortKeys bool
}

func toJSON(r *run, v Value, a []Value) (Value, error) {
	w := &jsonWriter{run: r, ascii: flag(a[0]), item: ", ", colon: ": ", sortKeys: flag(a[3])}
	if given(a[1]) {
		w.pretty, w.item = true, ","
		if s, ok := text(a[1]); ok {
			w.indent = s
		} else {
			n, err := asCount("tojson", a[1], 0)
			if err != nil {
				return nil, err
			}
			if n > r.limits.Output {
				return nil, fail(Limit, "tojson: an indentation of %d", n)
			}
			w.indent = strings.Repeat(" ", max(n, 0))
		}
	}
	if given(a[2]) {
		pair, err := r.collect(a[2])
		if err != nil {
			return nil, err
		}
		if len(pair) != 2 {
			return nil, fail(Argument, "tojson: separators has %d elements, wanted (item, key)", len(pair))
		}
		var errs [2]error
		w.item, errs[0] = asText("tojson", pair[0])
		w.colon, errs[1] = asText("tojson", pair[1])
		if err := firstError(errs[0], errs[1]); err != nil {
			return nil, err
		}
	}
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	return r.str(w.String())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *jsonWriter) value(v Value, depth int) error {
	if err := w.run.spend(1); err != nil {
		return err
	}
	if w.Len() > w.run.limits.Output {
		return w.run.room(w.Len())
	}
	switch x := v.(type) {
	case Str:
		w.quoted(string(x))
		return w.run.scan(len(x))
	case markup:
		w.quoted(string(x))
		return w.run.scan(len(x))
	case *List:
		return w.array(x.Items, depth)
	case Tuple:
		return w.array(x, depth)
	case *Dict:
		return w.object(x, depth)
	}
	s, ok := jsonScalar(v)
	if !ok {
		return fail(Type, "Object of type %s is not JSON serializable", v.class())
	}
	w.WriteString(s)
	return nil
}

// jsonScalar is the text of None, a truth value or a number.
func jsonScalar(v Value) (string, bool) {
	switch x := v.(type) {
	case None:
		return "null", true
	case Bool:
		return strconv.FormatBool(bool(x)), true
	case Int:
		return strconv.FormatInt(int64(x), 10), true
	case bigInt:
		return x.n.String(), true
	case Float:
		switch f := float64(x); {
		case math.IsNaN(f):
			return "NaN", true
		case math.IsInf(f, 1):
			return "Infinity", true
		case math.IsInf(f, -1):
			return "-Infinity", true
		}
		return floatRepr(float64(x)), true
	}
	return "", false
}

// line begins the line of an element at a depth, if the output is pretty.
func (w *jsonWriter) line(depth int) error {
	if !w.pretty {
		return nil
	}
	if err := w.run.scan(depth * len(w.indent)); err != nil {
		return err
	}
	if w.Len()+depth*len(w.indent) > w.run.limits.Output {
		return w.run.room(w.run.limits.Output + 1)
	}
	w.WriteByte('\n')
	for range depth {
		w.WriteString(w.indent)
	}
	return nil
}

func (w *jsonWriter) array(items []Value, depth int) error {
	if len(items) == 0 {
		w.WriteString("[]")
		return nil
	}
	w.WriteByte('[')
	err := w.elements(len(items), depth, func(i int) error { return w.value(items[i], depth+1) })
	w.WriteByte(']')
	return err
}

// elements writes the inside of an array or object.
func (w *jsonWriter) elements(n, depth int, write func(i int) error) error {
	if err := w.run.enter(); err != nil {
		return err
	}
	defer w.run.leave()
	for i := range n {
		if i > 0 {
			w.WriteString(w.item)
		}
		if err := w.line(depth + 1); err != nil {
			return err
		}
		if err := write(i); err != nil {
			return err
		}
	}
	return w.line(depth)
}

func (w *jsonWriter) object(d *Dict, depth int) error {
	if d.Len() == 0 {
		w.WriteString("{}")
		return nil
	}
	order := make([]int, d.Len())
	for i := range order {
		order[i] = i
	}
	if w.sortKeys {
		var failed error
		slices.SortStableFunc(order, func(i, j int) int {
			n, _, err := w.run.order("<", d.keys[i], d.keys[j])
			failed = firstError(failed, err, w.run.spend(1))
			return n
		})
		if failed != nil {
			return failed
		}
	}
	w.WriteByte('{')
	err := w.elements(len(order), depth, func(i int) error {
		if err := w.key(d.keys[order[i]]); err != nil {
			return err
		}
		w.WriteString(w.colon)
		return w.value(d.values[order[i]], depth+1)
	})
	w.WriteByte('}')
	return err
}

func (w *jsonWriter) key(k Value) error {
	if s, ok := text(k); ok {
		w.quoted(s)
		return w.run.scan(len(s))
	}
	s, ok := jsonScalar(k)
	if !ok {
		return fail(Type, "keys must be str, int, float, bool or None, not %s", k.class())
	}
	w.quoted(s)
	return nil
}

func (w *jsonWriter) quoted(s string) {
	w.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			w.WriteByte('\\')
			w.WriteRune(r)
		case '\n':
			w.WriteString(`\n`)
		case '\r':
			w.WriteString(`\r`)
		case '\t':
			w.WriteString(`\t`)
		case '\b':
			w.WriteString(`\b`)
		case '\f':
			w.WriteString(`\f`)
		default:
			w.character(r)
		}
	}
	w.WriteByte('"')
}

func (w *jsonWriter) character(r rune) {
	switch {
	case r >= ' ' && (r < 0x7f || !w.ascii):
		w.WriteRune(r)
	case r > 0xffff:
		hi, lo := utf16.EncodeRune(r)
		w.unicodeEscape(hi)
		w.unicodeEscape(lo)
	default:
		w.unicodeEscape(r)
	}
}

func (w *jsonWriter) unicodeEscape(r rune) {
	hex := strconv.FormatInt(int64(r), 16)
	w.WriteString(`\u`)
	w.WriteString("0000"[len(hex):])
	w.WriteString(hex)
}
