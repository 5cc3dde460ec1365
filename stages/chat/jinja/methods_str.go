package jinja

import (
	"strings"
	"unicode/utf8"
)

// onText makes a method without arguments that maps a string to a string.
func onText(f func(string) string) *builtin {
	return takes(0, "", func(r *run, self Value, _ []Value) (Value, error) {
		s, _ := text(self)
		if err := r.scan(len(s)); err != nil {
			return nil, err
		}
		return r.str(f(s))
	})
}

// stripping makes strip, lstrip or rstrip: white space, or any of the given characters.
func stripping(name string, left, right bool) *builtin {
	return takes(0, "chars", func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		if !given(a[0]) {
			return r.strip(s, isSpace, left, right)
		}
		chars, err := asText(name, a[0])
		if err != nil {
			return nil, err
		}
		return r.strip(s, func(c rune) bool { return strings.ContainsRune(chars, c) }, left, right)
	})
}

func (r *run) strip(s string, cut func(rune) bool, left, right bool) (Value, error) {
	if left {
		s = strings.TrimLeftFunc(s, cut)
	}
	if right {
		s = strings.TrimRightFunc(s, cut)
	}
	return Str(s), r.scan(len(s))
}

// cutting makes removeprefix or removesuffix.
func cutting(cut func(s, end string) string) *builtin {
	return takes(1, "end", func(_ *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		end, err := asText("str", a[0])
		return Str(cut(s, end)), err
	})
}

// searching makes find, index and their kin: the position, in characters, of what is sought between two bounds.
func searching(name string, search func(s, sub string) int, must bool) *builtin {
	return takes(1, "sub start end", func(r *run, self Value, a []Value) (Value, error) {
		sub, err := asText(name, a[0])
		if err != nil {
			return nil, err
		}
		s, from, err := r.window(self, a[1], a[2])
		if err != nil {
			return nil, err
		}
		at := -1
		if from >= 0 {
			at = search(s, sub)
		}
		switch {
		case at >= 0:
			return Int(from + runes(s[:at])), nil
		case must:
			return nil, fail(Argument, "substring not found")
		}
		return Int(-1), nil
	})
}

// window is the part of a string between two optional bounds, and where it begins; -1 if it begins past the end.
func (r *run) window(self, start, end Value) (string, int, error) {
	s, _ := text(self)
	if err := r.scan(len(s)); err != nil || start == nil && end == nil {
		return s, 0, err
	}
	bounds := [3]Value{None{}, None{}, None{}}
	if given(start) {
		bounds[0] = start
	}
	if given(end) {
		bounds[1] = end
	}
	n := runes(s)
	from, to, _, err := sliceBounds(bounds, n)
	if err != nil {
		return "", 0, err
	}
	if v, ok := smallInt(bounds[0]); ok && v > int64(n) {
		return "", -1, nil
	}
	part, err := r.substring(s, n, from, to, 1)
	if err != nil {
		return "", 0, err
	}
	s, _ = text(part)
	return s, from, nil
}

// matching makes startswith or endswith, which also take a tuple of candidates.
func matching(name string, match func(s, part string) bool) *builtin {
	return takes(1, "part start end", func(r *run, self Value, a []Value) (Value, error) {
		s, from, err := r.window(self, a[1], a[2])
		if err != nil {
			return nil, err
		}
		candidates := Tuple{a[0]}
		if t, ok := a[0].(Tuple); ok {
			candidates = t
		}
		for _, c := range candidates {
			part, err := asText(name, c)
			if err != nil {
				return nil, err
			}
			if from >= 0 && match(s, part) {
				return Bool(true), nil
			}
		}
		return Bool(false), nil
	})
}

// padding makes ljust, rjust and center; left says how much of n missing characters goes before the text.
func padding(name string, left func(n, width int) int) *builtin {
	return takes(1, "width fillchar", func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		width, err := asCount(name, a[0], 0)
		if err != nil {
			return nil, err
		}
		fill := " "
		if a[1] != nil {
			if fill, err = asText(name, a[1]); err != nil {
				return nil, err
			}
			if runes(fill) != 1 {
				return nil, fail(Type, "The fill character must be exactly one character long")
			}
		}
		n := max(width-runes(s), 0)
		if err := r.room(min(n, r.limits.Output+1) * len(fill)); err != nil {
			return nil, err
		}
		before := left(n, width)
		return r.str(strings.Repeat(fill, before) + s + strings.Repeat(fill, n-before))
	})
}

// centered is how Python divides the padding of str.center.
func centered(n, width int) int { return n/2 + n&width&1 }

var stringMethods = map[string]*builtin{
	"upper": onText(upper), "lower": onText(lower), "title": onText(titleCase), "capitalize": onText(capitalize),
	"swapcase": onText(swapCase), "casefold": onText(caseFold),

	"strip": stripping("strip", true, true), "lstrip": stripping("lstrip", true, false),
	"rstrip":       stripping("rstrip", false, true),
	"removeprefix": cutting(strings.TrimPrefix), "removesuffix": cutting(strings.TrimSuffix),
	"startswith": matching("startswith", strings.HasPrefix), "endswith": matching("endswith", strings.HasSuffix),
	"find": searching("find", strings.Index, false), "rfind": searching("rfind", strings.LastIndex, false),
	"index": searching("index", strings.Index, true), "rindex": searching("rindex", strings.LastIndex, true),
	"ljust":  padding("ljust", func(int, int) int { return 0 }),
	"rjust":  padding("rjust", func(n, _ int) int { return n }),
	"center": padding("center", centered),

	"split": takes(0, "sep maxsplit", splitMethod), "rsplit": takes(0, "sep maxsplit", rsplitMethod),
	"splitlines": takes(0, "keepends", func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		if err := r.splitting(s); err != nil {
			return nil, err
		}
		return r.strings(splitLines(s, flag(a[0])))
	}),
	"partition": takes(1, "sep", partition(strings.Index)), "rpartition": takes(1, "sep", partition(strings.LastIndex)),
	"join": takes(1, "iterable", joinMethod),
	"replace": takes(2, "old new count", func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		old, err := asText("replace", a[0])
		if err != nil {
			return nil, err
		}
		with, err := asText("replace", a[1])
		if err != nil {
			return nil, err
		}
		count, err := asCount("replace", a[2], -1)
		if err != nil {
			return nil, err
		}
		return r.replace(s, old, with, count)
	}),
	"count": takes(1, "sub start end", func(r *run, self Value, a []Value) (Value, error) {
		sub, err := asText("count", a[0])
		if err != nil {
			return nil, err
		}
		s, from, err := r.window(self, a[1], a[2])
		if err != nil || from < 0 {
			return Int(0), err
		}
		return Int(strings.Count(s, sub)), nil
	}),
	"zfill": takes(1, "width", func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		width, err := asCount("zfill", a[0], 0)
		if err != nil {
			return nil, err
		}
		n := max(width-runes(s), 0)
		if err := r.room(min(n, r.limits.Output+1)); err != nil {
			return nil, err
		}
		sign := ""
		if strings.HasPrefix(s, "-") || strings.HasPrefix(s, "+") {
			sign, s = s[:1], s[1:]
		}
		return r.str(sign + strings.Repeat("0", n) + s)
	}),
	"expandtabs": takes(0, "tabsize", func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		size, err := asCount("expandtabs", a[0], 8)
		if err != nil {
			return nil, err
		}
		if n := strings.Count(s, "\t"); size > 0 && n > 0 && size > r.limits.Output/n {
			return nil, r.room(r.limits.Output + 1)
		}
		return r.str(expandTabs(s, size))
	}),
	"encode": takes(0, "encoding errors", func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		if name := textOr(a[0], "utf-8"); a[0] != nil && !strings.EqualFold(strings.ReplaceAll(name, "-", ""), "utf8") {
			return nil, fail(Runtime, "encode: only utf-8 is supported, not %.40q", name)
		}
		return byteText(s), r.room(len(s))
	}),
	"translate": takes(1, "table", translate),
	"format":    takesAny(formatMethod),
	"format_map": takes(1, "mapping", func(r *run, self Value, a []Value) (Value, error) {
		d, ok := a[0].(*Dict)
		if !ok {
			return nil, fail(Type, "format_map: a mapping is needed, not %s", a[0].class())
		}
		args := callArgs{}
		for i, k := range d.keys {
			if name, ok := text(k); ok {
				args.names, args.named = append(args.names, name), append(args.named, d.values[i])
			}
		}
		return formatMethod(r, self, args)
	}),
	"maketrans": takesAny(unsupportedMethod),
}

var bytesMethods = map[string]*builtin{
	"decode": takes(0, "encoding errors", func(r *run, self Value, _ []Value) (Value, error) {
		return r.str(validText(string(self.(byteText))))
	}),
}

// replace replaces up to count occurrences; all if count is negative.
func (r *run) replace(s, old, with string, count int) (Value, error) {
	if count == 0 {
		return Str(s), nil
	}
	n := strings.Count(s, old)
	if count > 0 {
		n = min(n, count)
	}
	if grow := len(with) - len(old); grow > 0 && n > r.limits.Output/grow {
		return nil, r.room(r.limits.Output + 1)
	}
	if err := r.scan(len(s)); err != nil {
		return nil, err
	}
	return r.str(strings.Replace(s, old, with, count))
}

func translate(r *run, self Value, a []Value) (Value, error) {
	s, _ := text(self)
	var b strings.Builder
	for _, c := range s {
		if err := r.spend(1); err != nil {
			return nil, err
		}
		to, err := r.element(a[0], Int(c))
		if err != nil {
			return nil, err
		}
		switch x := to.(type) {
		case nil:
			b.WriteRune(c)
		case None:
		case Int:
			if x < 0 || x > utf8.MaxRune {
				return nil, fail(Argument, "character mapping must be in range(0x110000)")
			}
			b.WriteRune(rune(x))
		default:
			t, err := asText("translate", to)
			if err != nil {
				return nil, err
			}
			if err := r.room(len(t)); err != nil {
				return nil, err
			}
			b.WriteString(t)
		}
	}
	return r.str(b.String())
}

func expandTabs(s string, size int) string {
	var b strings.Builder
	column := 0
	for _, c := range s {
		switch {
		case c == '\t' && size > 0:
			n := size - column%size
			b.WriteString(strings.Repeat(" ", n))
			column += n
			continue
		case c == '\t':
			continue
		case c == '\n' || c == '\r':
			column = -1
		}
		b.WriteRune(c)
		column++
	}
	return b.String()
}
