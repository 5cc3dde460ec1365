package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatMethod is str.format: {}, {0}, {name}, {name.attr[key]}, !r and !s, and format specifications.
func formatMethod(r *run, self Value, args callArgs) (Value, error) {
	s, _ := text(self)
	f := &formatter{run: r, args: args}
	out, err := f.expand(s, 2)
	if err != nil {
		return nil, err
	}
	return Str(out), nil
}

type formatter struct {
	run  *run
	args callArgs
	auto int // number of the next {}
}

// expand replaces the fields of a text; specifications may hold fields themselves, levels deep.
func (f *formatter) expand(s string, levels int) (string, error) {
	if levels == 0 {
		return "", fail(Argument, "Max string recursion exceeded")
	}
	var b strings.Builder
	for s != "" {
		at := strings.IndexAny(s, "{}")
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		if at+1 < len(s) && s[at] == s[at+1] {
			b.WriteByte(s[at])
			s = s[at+2:]
			continue
		}
		if s[at] == '}' {
			return "", fail(Argument, "Single '}' encountered in format string")
		}
		end := fieldEnd(s[at:])
		if end < 0 {
			return "", fail(Argument, "Single '{' encountered in format string")
		}
		text, err := f.field(s[at+1:at+end], levels)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
		s = s[at+end+1:]
		if b.Len() > f.run.limits.Output {
			break
		}
	}
	return b.String(), f.run.room(b.Len())
}

// fieldEnd returns where the bracket that s begins with is closed.
func fieldEnd(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func (f *formatter) field(s string, levels int) (string, error) {
	name, spec, _ := strings.Cut(s, ":")
	name, conversion, converts := strings.Cut(name, "!")
	v, err := f.value(name)
	if err != nil {
		return "", err
	}
	if converts {
		var t string
		switch conversion {
		case "r", "a":
			t, err = f.run.repr(v)
		case "s":
			t, err = f.run.toText(v)
		default:
			err = fail(Argument, "Unknown conversion specifier %.20q", conversion)
		}
		if err != nil {
			return "", err
		}
		v = Str(t)
	}
	if spec, err = f.expand(spec, levels-1+boolBit(!strings.ContainsAny(spec, "{}"))); err != nil {
		return "", err
	}
	return f.run.formatValue(v, spec)
}

func boolBit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// value resolves 0, name, name.attr and name[key]; an empty name counts on.
func (f *formatter) value(path string) (Value, error) {
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	v, err := f.argument(path[:end])
	for rest := path[end:]; err == nil && rest != ""; {
		if rest[0] == '.' {
			end := strings.IndexAny(rest[1:], ".[") + 1
			if end == 0 {
				end = len(rest)
			}
			v, err = f.run.attr(v, rest[1:end])
			rest = rest[end:]
			continue
		}
		key, after, ok := strings.Cut(rest[1:], "]")
		if !ok || after != "" && after[0] != '.' && after[0] != '[' {
			return nil, fail(Argument, "Only '.' or '[' may follow ']' in format field specifier")
		}
		var k Value = Str(key)
		if n, err := strconv.ParseUint(key, 10, 31); err == nil {
			k = Int(n)
		}
		v, err = f.run.item(v, k)
		rest = after
	}
	return v, err
}

func (f *formatter) argument(name string) (Value, error) {
	n, err := strconv.ParseUint(name, 10, 31)
	if name == "" {
		n, err = uint64(f.auto), nil
		f.auto++
	}
	if err == nil {
		if n >= uint64(len(f.args.pos)) {
			return nil, fail(Missing, "Replacement index %d out of range for positional args tuple", n)
		}
		return f.args.pos[n], nil
	}
	at := indexOf(f.args.names, name)
	if at < 0 {
		return nil, fail(Missing, "'%s'", name)
	}
	return f.args.named[at], nil
}

// spec is a format specification: [[fill]align][sign][#][0][width][,][.precision][type].
type spec struct {
	fill      string
	align     byte // < > ^ =, or 0
	sign      byte
	alternate bool
	width     int
	group     byte // ',' or '_'
	precision int  // -1 without
	kind      byte // 0 without
}

func parseSpec(s string) (spec, error) {
	p := spec{fill: " ", precision: -1}
	all := s
	_, n := utf8.DecodeRuneInString(s)
	if len(s) > n && n > 0 && strings.IndexByte("<>^=", s[n]) >= 0 {
		p.fill, p.align, s = s[:n], s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		p.align, s = s[0], s[1:]
	}
	take := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	p.sign = take("+- ")
	p.alternate = take("#") != 0
	if take("0") != 0 && p.align == 0 {
		p.fill, p.align = "0", '='
	}
	digits := func() int {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		v, err := strconv.Atoi(s[:end])
		if err != nil {
			v = 1 << 40 // too large to represent; any limit refuses it
		}
		s = s[end:]
		return v
	}
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		p.width = digits()
	}
	p.group = take(",_")
	if take(".") != 0 {
		if s == "" || s[0] < '0' || s[0] > '9' {
			return p, fail(Argument, "Format specifier missing precision")
		}
		p.precision = digits()
	}
	p.kind = take("bcdeEfFgGnosxX%")
	if s != "" || p.precision > 1<<20 {
		return p, fail(Argument, "Invalid format specifier '%.40s'", all)
	}
	return p, nil
}

// formatValue is Python's format(v, spec).
func (r *run) formatValue(v Value, specification string) (string, error) {
	if specification == "" {
		return r.toText(v)
	}
	p, err := parseSpec(specification)
	if err != nil {
		return "", err
	}
	if b, ok := v.(Bool); ok {
		v = boolInt(b)
	}
	if isNumber(v) && p.kind != 's' {
		return r.formatNumber(v, p)
	}
	s, ok := text(v)
	if !ok {
		return "", fail(Type, "unsupported format string passed to %s.__format__", v.class())
	}
	if p.kind != 0 && p.kind != 's' || p.sign != 0 || p.align == '=' || p.group != 0 {
		return "", fail(Argument, "Unknown format code for object of type 'str'")
	}
	if p.precision >= 0 {
		s = firstRunes(s, p.precision)
	}
	return r.pad("", s, p, '<')
}

func firstRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// pad fills a number (sign apart) or text up to the width.
func (r *run) pad(sign, s string, p spec, align byte) (string, error) {
	if p.align != 0 {
		align = p.align
	}
	n := max(p.width-runes(sign)-runes(s), 0)
	if err := r.room(len(sign) + len(s) + min(n, r.limits.Output+1)*len(p.fill)); err != nil {
		return "", err
	}
	fill := func(n int) string { return strings.Repeat(p.fill, n) }
	switch align {
	case '<':
		return sign + s + fill(n), nil
	case '^':
		return fill(n/2) + sign + s + fill(n-n/2), nil
	case '=':
		return sign + fill(n) + s, nil
	}
	return fill(n) + sign + s, nil
}
