package jinja

import (
	"slices"
	"strings"
)

// strings makes a list of strings.
func (r *run) strings(parts []string) (Value, error) {
	items := make([]Value, len(parts))
	size := 0
	for i, p := range parts {
		items[i] = Str(p)
		size += len(p)
	}
	if err := r.scan(size); err != nil {
		return nil, err
	}
	return r.list(items)
}

func splitMethod(r *run, self Value, a []Value) (Value, error) {
	s, _ := text(self)
	limit, err := asCount("split", a[1], -1)
	if err != nil {
		return nil, err
	}
	if err := r.splitting(s); err != nil {
		return nil, err
	}
	if !given(a[0]) {
		return r.strings(splitSpace(s, limit))
	}
	sep, err := separator("split", a[0])
	if err != nil {
		return nil, err
	}
	if limit >= 0 {
		limit++
	}
	return r.strings(strings.SplitN(s, sep, limit))
}

func rsplitMethod(r *run, self Value, a []Value) (Value, error) {
	s, _ := text(self)
	limit, err := asCount("rsplit", a[1], -1)
	if err != nil {
		return nil, err
	}
	if err := r.splitting(s); err != nil {
		return nil, err
	}
	if !given(a[0]) {
		return r.strings(rsplitSpace(s, limit))
	}
	sep, err := separator("rsplit", a[0])
	if err != nil {
		return nil, err
	}
	var parts []string
	for limit != 0 {
		at := strings.LastIndex(s, sep)
		if at < 0 {
			break
		}
		parts = append(parts, s[at+len(sep):])
		s = s[:at]
		limit--
	}
	parts = append(parts, s)
	slices.Reverse(parts)
	return r.strings(parts)
}

// splitting pays for the parts of a text in advance, as if they had 8 bytes each.
func (r *run) splitting(s string) error { return r.spend(len(s) / 8 * stepsPerElement) }

func separator(fn string, v Value) (string, error) {
	sep, err := asText(fn, v)
	if err == nil && sep == "" {
		err = fail(Argument, "empty separator")
	}
	return sep, err
}

// splitSpace splits at runs of white space, at most limit times if limit is not negative.
func splitSpace(s string, limit int) []string {
	var parts []string
	for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
		end := strings.IndexFunc(s, isSpace)
		if end < 0 || limit == 0 {
			return append(parts, s)
		}
		parts = append(parts, s[:end])
		s = s[end:]
		limit--
	}
	return parts
}

func rsplitSpace(s string, limit int) []string {
	var parts []string
	for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
		at := strings.LastIndexFunc(s, isSpace)
		if at < 0 || limit == 0 {
			parts = append(parts, s)
			break
		}
		rest := strings.TrimLeftFunc(s[at:], isSpace)
		parts = append(parts, rest)
		s = s[:at]
		limit--
	}
	slices.Reverse(parts)
	return parts
}

// splitLines splits at every line end that Python knows: \n \r \r\n \v \f \x1c-\x1e \x85 and U+2028/2029.
func splitLines(s string, keep bool) []string {
	var lines []string
	for s != "" {
		at := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		if at < 0 {
			return append(lines, s)
		}
		end := at + 1
		switch {
		case strings.HasPrefix(s[at:], "\r\n"):
			end = at + 2
		case s[at] == 0xc2:
			end = at + 2
		case s[at] == 0xe2:
			end = at + 3
		}
		if keep {
			lines = append(lines, s[:end])
		} else {
			lines = append(lines, s[:at])
		}
		s = s[end:]
	}
	return lines
}

// partition makes (before, separator, after) around the place that search finds; if there is none, the text stands
// first, or last when searching from the end.
func partition(search func(s, sep string) int) func(*run, Value, []Value) (Value, error) {
	return func(r *run, self Value, a []Value) (Value, error) {
		s, _ := text(self)
		sep, err := separator("partition", a[0])
		if err != nil {
			return nil, err
		}
		at := search(s, sep)
		switch {
		case at >= 0:
			return Tuple{Str(s[:at]), Str(sep), Str(s[at+len(sep):])}, r.scan(len(s))
		case search("aa", "a") == 1: // from the end
			return Tuple{Str(""), Str(""), Str(s)}, r.scan(len(s))
		}
		return Tuple{Str(s), Str(""), Str("")}, r.scan(len(s))
	}
}

func joinMethod(r *run, self Value, a []Value) (Value, error) {
	sep, _ := text(self)
	if u, ok := a[0].(*undefined); ok && u.kind == Security {
		return nil, u.fault()
	}
	items, err := r.collect(a[0])
	if err != nil {
		return nil, err
	}
	parts := make([]string, len(items))
	for i, v := range items {
		s, ok := text(v)
		if !ok {
			return nil, fail(Type, "sequence item %d: expected str instance, %s found", i, v.class())
		}
		parts[i] = s
	}
	return r.joined(parts, sep)
}

// joined joins texts, having paid for the result before building it.
func (r *run) joined(parts []string, sep string) (Value, error) {
	size := 0
	for _, p := range parts {
		if size += len(p) + len(sep); size > r.limits.Output+len(sep) {
			break
		}
	}
	if err := r.room(max(size-len(sep), 0)); err != nil {
		return nil, err
	}
	return Str(strings.Join(parts, sep)), nil
}
