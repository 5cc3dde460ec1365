package jinja

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"
)

// attr is obj.name in a template: a method or attribute of the object, else its element of that name.
func (r *run) attr(obj Value, name string) (Value, error) {
	if u, ok := obj.(*undefined); ok {
		return nil, u.fault()
	}
	if v, err := r.member(obj, name); v != nil || err != nil {
		return v, err
	}
	if d, ok := obj.(*Dict); ok {
		if v, ok := d.Get(name); ok {
			return v, nil
		}
	}
	return &undefined{of: obj, name: Str(name), kind: UndefinedValue}, nil
}

// member is Python's getattr within the sandbox: nil if there is none. A name that begins with an underscore and
// a method that would change the object exist, but using them is an error.
func (r *run) member(obj Value, name string) (Value, error) {
	switch x := obj.(type) {
	case *loop:
		if v, ok, err := x.attr(name); ok || err != nil {
			return v, err
		}
	case *namespace:
		if v, ok := x.vars.Get(name); ok {
			return v, nil
		}
	case *macro:
		if v, ok := x.attr(name); ok {
			return v, nil
		}
	case *cycler:
		if name == "current" && len(x.items) > 0 {
			return x.items[x.pos%len(x.items)], nil
		}
	case Int, Bool, bigInt, Float:
		if v := numberAttr(x, name); v != nil {
			return v, nil
		}
	}
	if m, ok := r.lib.methods[methodClass(obj)][name]; ok {
		if m == forbidden {
			return &undefined{of: obj, name: Str(name), kind: Security}, nil
		}
		return &function{fn: m, self: obj}, nil
	}
	if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") && len(name) > 4 {
		return &undefined{of: obj, name: Str(name), kind: Security}, nil
	}
	return nil, nil
}

// methodClass is the class whose methods a value has.
func methodClass(v Value) string {
	switch v.(type) {
	case markup:
		return "str"
	case Bool:
		return "int"
	}
	return v.class()
}

func numberAttr(v Value, name string) Value {
	_, isFloat := v.(Float)
	if b, ok := v.(Bool); ok {
		v = boolInt(b)
	}
	switch name {
	case "real":
		return v
	case "imag":
		if isFloat {
			return Float(0)
		}
		return Int(0)
	case "numerator":
		if !isFloat {
			return v
		}
	case "denominator":
		if !isFloat {
			return Int(1)
		}
	}
	return nil
}

// item is obj[key] in a template: an element, else an attribute of that name.
func (r *run) item(obj, key Value) (Value, error) {
	if u, ok := obj.(*undefined); ok {
		return nil, u.fault()
	}
	v, err := r.element(obj, key)
	if v != nil || err != nil {
		return v, err
	}
	if name, ok := text(key); ok {
		if v, err := r.member(obj, name); v != nil || err != nil {
			return v, err
		}
	}
	return &undefined{of: obj, name: key, kind: UndefinedValue}, nil
}

// element is Python's obj[key]; nil where Python would raise.
func (r *run) element(obj, key Value) (Value, error) {
	switch x := obj.(type) {
	case *Dict:
		v, _, err := r.lookup(x, key)
		if e := (*Error)(nil); errors.As(err, &e) && e.Kind == Type {
			return nil, nil // unhashable: there cannot be such a key
		}
		return v, err
	case *namespace:
		return nil, nil
	}
	i, ok := smallInt(key)
	if !ok {
		return nil, nil
	}
	if s, ok := text(obj); ok {
		return r.character(s, i)
	}
	n, at := indexed(obj)
	if i < 0 {
		i += int64(n)
	}
	if at == nil || i < 0 || i >= int64(n) {
		return nil, nil
	}
	return at(int(i)), nil
}

// indexed gives access to the elements of a sequence other than a string; at is nil for other values.
func indexed(v Value) (n int, at func(int) Value) {
	switch x := v.(type) {
	case Tuple:
		return len(x), func(i int) Value { return x[i] }
	case *List:
		return len(x.Items), func(i int) Value { return x.Items[i] }
	case *rangeValue:
		return int(x.len()), func(i int) Value { return x.at(int64(i)) }
	case byteText:
		return len(x), func(i int) Value { return Int(x[i]) }
	}
	return 0, nil
}

func (r *run) character(s string, i int64) (Value, error) {
	if err := r.scan(len(s)); err != nil {
		return nil, err
	}
	if i < 0 {
		i += int64(runes(s))
	}
	if i < 0 || i >= int64(len(s)) {
		return nil, nil
	}
	for _, c := range s {
		if i == 0 {
			return Str(string(c)), nil
		}
		i--
	}
	return nil, nil
}

// slice is obj[from:to:step] with None for a bound that is not given.
func (r *run) slice(obj Value, bounds [3]Value) (Value, error) {
	if u, ok := obj.(*undefined); ok {
		return nil, u.fault()
	}
	s, isString := text(obj)
	n, at := indexed(obj)
	if isString {
		if err := r.scan(len(s)); err != nil {
			return nil, err
		}
		n = runes(s)
	} else if at == nil {
		return nil, fail(Type, "'%s' object cannot be sliced", obj.class())
	}
	from, to, step, err := sliceBounds(bounds, n)
	if err != nil {
		return nil, err
	}
	if rg, ok := obj.(*rangeValue); ok {
		return &rangeValue{rg.start + int64(from)*rg.step, rg.start + int64(to)*rg.step, rg.step * int64(step)}, nil
	}
	if isString {
		return r.substring(s, n, from, to, step)
	}
	out := []Value{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		out = append(out, at(i))
	}
	if err := r.spend(len(out)); err != nil {
		return nil, err
	}
	switch obj.(type) {
	case *List:
		return &List{out}, nil
	case byteText:
		part := make(byteText, len(out))
		for i, v := range out {
			part[i] = byte(v.(Int))
		}
		return part, nil
	}
	return Tuple(out), nil
}

func (r *run) substring(s string, n, from, to, step int) (Value, error) {
	if n != len(s) {
		chars := []rune(s)
		var b strings.Builder
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			b.WriteRune(chars[i])
		}
		return r.str(b.String())
	}
	if step == 1 {
		return Str(s[from:max(from, to)]), nil
	}
	var b strings.Builder
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		b.WriteByte(s[i])
	}
	return r.str(b.String())
}

// sliceBounds clips bounds to a sequence of n elements, as Python's slice.indices does. A step is clipped to n+1,
// which goes past the end from anywhere.
func sliceBounds(bounds [3]Value, n int) (from, to, step int, err error) {
	step = 1
	if _, none := bounds[2].(None); !none {
		if step, err = sliceIndex(bounds[2]); err != nil {
			return 0, 0, 0, err
		}
		if step == 0 {
			return 0, 0, 0, fail(Argument, "slice step cannot be zero")
		}
		step = max(min(step, n+1), -n-1)
	}
	low, high := 0, n
	from, to = 0, n
	if step < 0 {
		low, high = -1, n-1
		from, to = n-1, -1
	}
	for i, bound := range []*int{&from, &to} {
		if _, none := bounds[i].(None); none {
			continue
		}
		v, err := sliceIndex(bounds[i])
		if err != nil {
			return 0, 0, 0, err
		}
		if v < 0 {
			v += n
		}
		*bound = max(low, min(high, v))
	}
	return from, to, step, nil
}

func sliceIndex(v Value) (int, error) {
	n, ok := asInt(v)
	if !ok {
		return 0, fail(Type, "slice indices must be integers or None or have an __index__ method")
	}
	if n.IsInt64() {
		return int(max(min(n.Int64(), math.MaxInt32), math.MinInt32)), nil
	}
	return n.Sign() * math.MaxInt32, nil
}

// validText replaces what is not UTF-8.
func validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
