package jinja

import (
	"math"
	"strconv"
	"strings"
)

// formatNumber formats a number by a specification of str.format or of the % operator.
func (r *run) formatNumber(v Value, p spec) (string, error) {
	if _, isFloat := v.(Float); isFloat || strings.IndexByte("eEfFgG%", p.kind) >= 0 && p.kind != 0 {
		f, _ := asFloat(v)
		return r.formatFloat(f, p)
	}
	if p.precision >= 0 {
		return "", fail(Argument, "Precision not allowed in integer format specifier")
	}
	n, _ := asInt(v)
	base, prefix := 10, ""
	switch p.kind {
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(p.kind)
	case 'c':
		if !n.IsInt64() || n.Int64() < 0 || n.Int64() > 0x10ffff {
			return "", fail(Overflow, "%%c arg not in range(0x110000)")
		}
		return r.pad("", string(rune(n.Int64())), p, '<')
	}
	digits := strings.TrimPrefix(n.Text(base), "-")
	if p.kind == 'X' {
		digits = strings.ToUpper(digits)
	}
	size := 3
	if base != 10 {
		size = 4
	}
	sign := signOf(n.Sign() < 0, p.sign)
	if p.alternate {
		sign += prefix
	}
	return r.pad(sign, grouped(digits, p.group, size), p, '>')
}

func signOf(negative bool, sign byte) string {
	switch {
	case negative:
		return "-"
	case sign == '+' || sign == ' ':
		return string(sign)
	}
	return ""
}

// grouped puts a separator between every size digits.
func grouped(digits string, sep byte, size int) string {
	if sep == 0 {
		return digits
	}
	var b strings.Builder
	for i, c := range []byte(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(c)
	}
	return b.String()
}

func (r *run) formatFloat(f float64, p spec) (string, error) {
	negative := math.Signbit(f) && !math.IsNaN(f)
	a := math.Abs(f)
	s, err := floatDigits(a, p)
	if err != nil {
		return "", err
	}
	if err := r.room(len(s)); err != nil {
		return "", err
	}
	if whole, rest, ok := cutDigits(s); ok {
		s = grouped(whole, p.group, 3) + rest
	}
	return r.pad(signOf(negative, p.sign), s, p, '>')
}

// cutDigits splits a number after its leading digits.
func cutDigits(s string) (whole, rest string, ok bool) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	return s[:end], s[end:], end > 0
}

func floatDigits(a float64, p spec) (string, error) {
	if math.IsInf(a, 0) || math.IsNaN(a) {
		s := floatRepr(a)
		if p.kind == 'E' || p.kind == 'F' || p.kind == 'G' {
			s = strings.ToUpper(s)
		}
		return s, nil
	}
	precision := p.precision
	if precision < 0 {
		precision = 6
	}
	switch p.kind {
	case 'f', 'F':
		return strconv.FormatFloat(a, 'f', precision, 64), nil
	case 'e', 'E':
		return strconv.FormatFloat(a, p.kind, precision, 64), nil
	case '%':
		return strconv.FormatFloat(a*100, 'f', precision, 64) + "%", nil
	case 'g', 'G', 'n':
		return general(a, max(precision, 1), p.kind == 'G'), nil
	case 0:
		if p.precision < 0 {
			return floatRepr(a), nil
		}
		s := general(a, max(precision, 1), false)
		if !strings.ContainsAny(s, ".e") {
			s += ".0"
		}
		return s, nil
	}
	return "", fail(Argument, "Unknown format code '%c' for object of type 'float'", p.kind)
}

// general is C's %g: precision significant digits, an exponent below 1e-4 or from 10**precision on, no zeros at
// the end.
func general(a float64, precision int, capital bool) string {
	e := strconv.FormatFloat(a, 'e', precision-1, 64)
	mantissa, exponent, _ := strings.Cut(e, "e")
	x, _ := strconv.Atoi(exponent)
	if x >= -4 && x < precision {
		s := strconv.FormatFloat(a, 'f', precision-1-x, 64)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	if capital {
		return mantissa + "E" + exponent
	}
	return mantissa + "e" + exponent
}

// percent is the % operator of strings.
func (r *run) percent(s string, v Value) (Value, error) {
	f := &percentArgs{values: []Value{v}}
	if t, ok := v.(Tuple); ok {
		f.values = t
	}
	f.mapping, _ = v.(*Dict)
	switch v.(type) {
	case *Dict, *List, *rangeValue, byteText, *undefined: // what Python can index may go unused
		f.optional = true
	}
	var b strings.Builder
	for s != "" {
		at := strings.IndexByte(s, '%')
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		text, rest, err := f.conversion(r, s[at+1:])
		if err != nil {
			return nil, err
		}
		b.WriteString(text)
		s = rest
		if b.Len() > r.limits.Output {
			break
		}
	}
	if f.used < len(f.values) && !f.optional {
		return nil, fail(Type, "not all arguments converted during string formatting")
	}
	return r.str(b.String())
}

type percentArgs struct {
	values   []Value
	used     int
	mapping  *Dict
	optional bool // using no value is fine
}

func (f *percentArgs) next() (Value, error) {
	if f.used >= len(f.values) {
		return nil, fail(Type, "not enough arguments for format string")
	}
	f.used++
	return f.values[f.used-1], nil
}

// conversion formats one %… whose percent sign is gone, and returns what follows it.
func (f *percentArgs) conversion(r *run, s string) (string, string, error) {
	var v Value
	var err error
	if strings.HasPrefix(s, "(") {
		name, rest, ok := strings.Cut(s[1:], ")")
		if !ok || f.mapping == nil {
			return "", "", fail(Type, "format requires a mapping")
		}
		if v, ok = f.mapping.Get(name); !ok {
			return "", "", fail(Missing, "'%s'", name)
		}
		s = rest
	}
	p, s, err := f.flags(s)
	if err != nil {
		return "", "", err
	}
	if s == "" {
		return "", "", fail(Argument, "incomplete format")
	}
	p.kind, s = s[0], s[1:]
	if p.kind == '%' {
		return "%", s, nil
	}
	if v == nil {
		if v, err = f.next(); err != nil {
			return "", "", err
		}
	}
	out, err := r.convert(v, p)
	return out, s, err
}

// flags parses flags, width and precision, either of which may be "*".
func (f *percentArgs) flags(s string) (spec, string, error) {
	p := spec{fill: " ", align: '>', precision: -1}
	for ; s != "" && strings.IndexByte("-+ 0#", s[0]) >= 0; s = s[1:] {
		switch s[0] {
		case '-':
			p.align, p.fill = '<', " "
		case '0':
			if p.align != '<' {
				p.align, p.fill = '=', "0"
			}
		case '#':
			p.alternate = true
		default:
			p.sign = s[0]
		}
	}
	var err error
	if p.width, s, err = f.size(s); err == nil && strings.HasPrefix(s, ".") {
		p.precision, s, err = f.size(s[1:])
	}
	return p, strings.TrimLeft(s, "hlL"), err
}

func (f *percentArgs) size(s string) (int, string, error) {
	if strings.HasPrefix(s, "*") {
		v, err := f.next()
		if err != nil {
			return 0, "", err
		}
		n, err := asCount("%", v, 0)
		return max(n, 0), s[1:], err
	}
	digits, rest, _ := cutDigits(s)
	n, err := strconv.Atoi(digits)
	if digits != "" && (err != nil || n > 1<<20) {
		return 0, "", fail(Argument, "width or precision too big")
	}
	return n, rest, nil
}

// convert formats one value for the % operator.
func (r *run) convert(v Value, p spec) (string, error) {
	var s string
	var err error
	switch p.kind {
	case 's':
		s, err = r.toText(v)
	case 'r', 'a':
		s, err = r.repr(v)
	case 'c':
		if c, ok := text(v); ok && runes(c) == 1 {
			s = c
			break
		}
		fallthrough
	case 'd', 'i', 'u', 'o', 'x', 'X', 'e', 'E', 'f', 'F', 'g', 'G':
		return r.convertNumber(v, p)
	default:
		return "", fail(Argument, "unsupported format character '%c'", p.kind)
	}
	if err != nil {
		return "", err
	}
	if p.precision >= 0 {
		s = firstRunes(s, p.precision)
	}
	p.fill = " "
	return r.pad("", s, p, '>')
}

func (r *run) convertNumber(v Value, p spec) (string, error) {
	if !isNumber(v) {
		return "", fail(Type, "%%%c format: a real number is required, not %s", p.kind, v.class())
	}
	if strings.IndexByte("diu", p.kind) >= 0 {
		p.kind = 'd'
		if f, ok := v.(Float); ok {
			n, err := truncated(float64(f))
			if err != nil {
				return "", err
			}
			v = n
		}
	} else if _, ok := v.(Float); ok && strings.IndexByte("oxXc", p.kind) >= 0 {
		return "", fail(Type, "%%%c format: an integer is required, not float", p.kind)
	}
	if strings.IndexByte("doxXc", p.kind) >= 0 {
		p.precision = -1
	}
	return r.formatNumber(v, p)
}
