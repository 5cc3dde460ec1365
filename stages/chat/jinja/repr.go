package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// toText is Python's str(v).
func (r *run) toText(v Value) (string, error) {
	switch x := v.(type) {
	case Str:
		return string(x), nil
	case markup:
		return string(x), nil
	case *undefined:
		return "", nil
	}
	return r.repr(v)
}

// repr is Python's repr(v).
func (r *run) repr(v Value) (string, error) {
	w := &printer{run: r}
	if err := w.value(v); err != nil {
		return "", err
	}
	return w.String(), r.room(w.Len())
}

// brief is repr for error messages: short, and without a budget of its own.
func brief(v Value) (string, error) {
	r := &run{limits: Limits{Steps: 1000, Output: 1000, Depth: 8}, steps: 1000, memory: 1000}
	s, err := r.repr(v)
	if err != nil {
		return v.class() + " object", err
	}
	return s, nil
}

// printer writes the repr of values, within the limits of a rendering.
type printer struct {
	strings.Builder
	run *run
}

func (w *printer) value(v Value) error {
	if err := w.run.spend(1); err != nil {
		return err
	}
	if w.Len() > w.run.limits.Output {
		return w.run.room(w.Len())
	}
	switch x := v.(type) {
	case None:
		w.WriteString("None")
	case Bool:
		w.WriteString(boolName(bool(x)))
	case Int:
		w.WriteString(strconv.FormatInt(int64(x), 10))
	case bigInt:
		w.WriteString(x.n.String())
		return w.run.spend(bigWork("", x, x))
	case Float:
		w.WriteString(floatRepr(float64(x)))
	case Str:
		writeQuoted(&w.Builder, string(x))
	case markup:
		w.WriteString("Markup(")
		writeQuoted(&w.Builder, string(x))
		w.WriteByte(')')
	case byteText:
		writeBytes(&w.Builder, x)
	case *undefined:
		w.WriteString("Undefined")
	case *rangeValue:
		w.WriteString(x.text())
	case Tuple, *List, *Dict, *view, *namespace:
		return w.container(x)
	default:
		w.WriteString(describeObject(v))
	}
	return nil
}

func (w *printer) container(v Value) error {
	if err := w.run.enter(); err != nil {
		return err
	}
	defer w.run.leave()
	switch x := v.(type) {
	case Tuple:
		closing := ")"
		if len(x) == 1 {
			closing = ",)"
		}
		return w.elements("(", closing, len(x), func(i int) Value { return x[i] })
	case *List:
		return w.elements("[", "]", len(x.Items), func(i int) Value { return x.Items[i] })
	case *view:
		return w.elements(x.kind+"([", "])", x.of.Len(), x.at)
	case *namespace:
		w.WriteString("<Namespace ")
		if err := w.container(x.vars); err != nil {
			return err
		}
		w.WriteByte('>')
	case *Dict:
		return w.dict(x)
	}
	return nil
}

func (w *printer) elements(open, closing string, n int, at func(int) Value) error {
	w.WriteString(open)
	for i := range n {
		if i > 0 {
			w.WriteString(", ")
		}
		if err := w.value(at(i)); err != nil {
			return err
		}
	}
	w.WriteString(closing)
	return nil
}

func (w *printer) dict(d *Dict) error {
	w.WriteByte('{')
	for i, k := range d.keys {
		if i > 0 {
			w.WriteString(", ")
		}
		if err := w.value(k); err != nil {
			return err
		}
		w.WriteString(": ")
		if err := w.value(d.values[i]); err != nil {
			return err
		}
	}
	w.WriteByte('}')
	return nil
}

func (r *rangeValue) text() string {
	s := "range(" + strconv.FormatInt(r.start, 10) + ", " + strconv.FormatInt(r.stop, 10)
	if r.step != 1 {
		s += ", " + strconv.FormatInt(r.step, 10)
	}
	return s + ")"
}

func boolName(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// floatRepr is the shortest text that reads back as f, laid out as Python does: an exponent below 1e-4 and from
// 1e16 on, ".0" for whole numbers.
func floatRepr(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// writeQuoted writes a string literal: in single quotes, unless it has single quotes and no double ones.
func writeQuoted(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.IndexByte(s, '\'') >= 0 && strings.IndexByte(s, '"') < 0 {
		quote = '"'
	}
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\\' || r == rune(quote):
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			writeEscaped(b, r)
		}
	}
	b.WriteByte(quote)
}

func writeEscaped(b *strings.Builder, r rune) {
	lead, digits := `\U`, 8
	if r < 0x100 {
		lead, digits = `\x`, 2
	} else if r < 0x10000 {
		lead, digits = `\u`, 4
	}
	hex := strconv.FormatInt(int64(r), 16)
	b.WriteString(lead)
	b.WriteString(strings.Repeat("0", digits-len(hex)))
	b.WriteString(hex)
}

func writeBytes(b *strings.Builder, s byteText) {
	quote := byte('\'')
	if strings.IndexByte(string(s), '\'') >= 0 && strings.IndexByte(string(s), '"') < 0 {
		quote = '"'
	}
	b.WriteByte('b')
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c == '\\' || c == quote:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			writeEscaped(b, rune(c))
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte(quote)
}
