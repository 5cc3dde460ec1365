package jinja

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
)

func unary(op string, v Value) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, u.fault()
	}
	if f, ok := v.(Float); ok {
		if op == "-" {
			return -f, nil
		}
		return f, nil
	}
	n, ok := asInt(v)
	if !ok {
		return nil, fail(Type, "bad operand type for unary %s: '%s'", op, v.class())
	}
	if op == "-" {
		n = new(big.Int).Neg(n)
	}
	return normInt(n), nil
}

// binary computes a op b.
func (r *run) binary(op string, a, b Value) (Value, error) {
	if x, ok := a.(Int); ok {
		if y, ok := b.(Int); ok {
			if v, ok := smallArithmetic(op, int64(x), int64(y)); ok {
				return v, nil
			}
		}
	}
	for _, v := range []Value{a, b} {
		if u, ok := v.(*undefined); ok && !(op == "%" && isText(a)) {
			return nil, u.fault()
		}
	}
	switch {
	case isNumber(a) && isNumber(b):
		if err := r.spend(bigWork(op, a, b)); err != nil {
			return nil, err
		}
		return arithmetic(op, a, b)
	case op == "+":
		return r.add(a, b)
	case op == "*":
		return r.repeat(a, b)
	case op == "%" && isText(a):
		s, _ := text(a)
		return r.percent(s, b)
	}
	return nil, unsupported(op, a, b)
}

func unsupported(op string, a, b Value) error {
	return fail(Type, "unsupported operand type(s) for %s: '%s' and '%s'", op, a.class(), b.class())
}

func isText(v Value) bool {
	_, ok := text(v)
	return ok
}

func (r *run) add(a, b Value) (Value, error) {
	switch x := a.(type) {
	case Str, markup:
		return r.join2(a, b)
	case *List:
		if y, ok := b.(*List); ok {
			items, err := r.concat(x.Items, y.Items)
			return &List{items}, err
		}
	case Tuple:
		if y, ok := b.(Tuple); ok {
			items, err := r.concat(x, y)
			return Tuple(items), err
		}
	default:
		return nil, unsupported("+", a, b)
	}
	return nil, fail(Type, `can only concatenate %s (not "%s") to %[1]s`, a.class(), b.class())
}

func (r *run) concat(x, y []Value) ([]Value, error) {
	if err := r.spend((len(x) + len(y)) * stepsPerElement); err != nil {
		return nil, err
	}
	return slices.Concat(x, y), nil
}

func (r *run) join2(a, b Value) (Value, error) {
	x, _ := text(a)
	y, ok := text(b)
	if !ok {
		return nil, fail(Type, `can only concatenate str (not "%s") to str`, b.class())
	}
	_, safeA := a.(markup)
	_, safeB := b.(markup)
	if safeA != safeB {
		if safeA {
			y = escapeHTML(y)
		} else {
			x = escapeHTML(x)
		}
	}
	if err := r.room(len(x) + len(y)); err != nil {
		return nil, err
	}
	if safeA || safeB {
		return markup(x + y), nil
	}
	return Str(x + y), nil
}

// repeat is sequence * count, either way round.
func (r *run) repeat(a, b Value) (Value, error) {
	count, ok := asInt(b)
	seq := a
	if !ok {
		if count, ok = asInt(a); !ok {
			return nil, unsupported("*", a, b)
		}
		seq = b
	}
	n := 0
	if count.Sign() > 0 {
		if !count.IsInt64() {
			return nil, fail(Overflow, "cannot fit 'int' into an index-sized integer")
		}
		n = int(min(count.Int64(), 1<<40)) // more than any limit
	}
	var items []Value
	class := false
	switch x := seq.(type) {
	case Str, markup:
		s, _ := text(x)
		if len(s) == 0 {
			return Str(""), nil
		}
		if n > r.limits.Output/len(s) {
			return nil, fail(Limit, "a text longer than %d bytes", r.limits.Output)
		}
		return r.str(strings.Repeat(s, n))
	case *List:
		items, class = x.Items, true
	case Tuple:
		items = x
	default:
		return nil, unsupported("*", a, b)
	}
	if len(items) > 0 && n > r.steps/stepsPerElement/len(items) {
		return nil, fail(Limit, "a sequence of more than %d elements", r.limits.Steps)
	}
	if len(items) == 0 {
		n = 0
	}
	if err := r.spend(n * len(items) * stepsPerElement); err != nil {
		return nil, err
	}
	out := slices.Repeat(items, n)
	if class {
		return &List{out}, nil
	}
	return Tuple(out), nil
}

// compare computes a op b for one comparison operator.
func (r *run) compare(op string, a, b Value) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		same, err := r.equal(a, b)
		return !same, err
	case "in":
		return r.contains(b, a)
	case "not in":
		found, err := r.contains(b, a)
		return !found, err
	}
	order, ok, err := r.order(op, a, b)
	if err != nil || !ok {
		return false, err
	}
	switch op {
	case "<":
		return order < 0, nil
	case "<=":
		return order <= 0, nil
	case ">":
		return order > 0, nil
	}
	return order >= 0, nil
}

// order compares two values of which one may be less; ok is false where no order holds (NaN).
func (r *run) order(op string, a, b Value) (order int, ok bool, err error) {
	for _, v := range []Value{a, b} {
		if u, ok := v.(*undefined); ok {
			return 0, false, u.fault()
		}
	}
	if isNumber(a) && isNumber(b) {
		order, ok = compareNumbers(a, b)
		return order, ok, nil
	}
	if x, ok := text(a); ok {
		if y, ok := text(b); ok {
			return strings.Compare(x, y), true, r.scan(min(len(x), len(y)))
		}
	}
	if x, ok := a.(*List); ok {
		if y, ok := b.(*List); ok {
			return r.orderAll(op, x.Items, y.Items)
		}
	}
	if x, ok := a.(Tuple); ok {
		if y, ok := b.(Tuple); ok {
			return r.orderAll(op, x, y)
		}
	}
	return 0, false, fail(Type, "'%s' not supported between instances of '%s' and '%s'", op, a.class(), b.class())
}

func (r *run) orderAll(op string, x, y []Value) (int, bool, error) {
	if err := r.enter(); err != nil {
		return 0, false, err
	}
	defer r.leave()
	for i := range min(len(x), len(y)) {
		same, err := r.equal(x[i], y[i])
		if err != nil {
			return 0, false, err
		}
		if !same {
			return r.order(op, x[i], y[i])
		}
	}
	return cmp.Compare(len(x), len(y)), true, nil
}

// equal is Python's a == b.
func (r *run) equal(a, b Value) (bool, error) {
	if err := r.spend(1); err != nil {
		return false, err
	}
	if isNumber(a) && isNumber(b) {
		order, ok := compareNumbers(a, b)
		return ok && order == 0, nil
	}
	switch x := a.(type) {
	case Str, markup:
		s, _ := text(x)
		t, ok := text(b)
		return ok && s == t, r.scan(len(s))
	case None:
		_, ok := b.(None)
		return ok, nil
	case *undefined:
		_, ok := b.(*undefined)
		return ok, nil
	case byteText:
		y, ok := b.(byteText)
		return ok && string(x) == string(y), nil
	case Tuple:
		if y, ok := b.(Tuple); ok {
			return r.equalAll(x, y)
		}
		return false, nil
	case *List:
		if y, ok := b.(*List); ok {
			return r.equalAll(x.Items, y.Items)
		}
		return false, nil
	case *Dict:
		if y, ok := b.(*Dict); ok {
			return r.equalDicts(x, y)
		}
		return false, nil
	case *rangeValue:
		y, ok := b.(*rangeValue)
		return ok && *x == *y, nil
	}
	return identical(a, b), nil
}

func (r *run) equalAll(x, y []Value) (bool, error) {
	if len(x) != len(y) {
		return false, nil
	}
	if err := r.enter(); err != nil {
		return false, err
	}
	defer r.leave()
	for i := range x {
		if same, err := r.equal(x[i], y[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (r *run) equalDicts(x, y *Dict) (bool, error) {
	if x.Len() != y.Len() {
		return false, nil
	}
	if err := r.enter(); err != nil {
		return false, err
	}
	defer r.leave()
	for i, k := range x.keys {
		v, ok, err := r.lookup(y, k)
		if err != nil || !ok {
			return false, err
		}
		if same, err := r.equal(x.values[i], v); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// identical is Python's a is b, as far as values here have an identity.
func identical(a, b Value) bool {
	x, okX := a.(Tuple)
	y, okY := b.(Tuple)
	if okX || okY {
		return okX && okY && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	}
	s, okX := a.(byteText)
	t, okY := b.(byteText)
	if okX || okY {
		return okX && okY && string(s) == string(t)
	}
	return a == b
}

// contains is needle in hay.
func (r *run) contains(hay, needle Value) (bool, error) {
	switch x := hay.(type) {
	case Str, markup:
		s, _ := text(x)
		t, ok := text(needle)
		if !ok {
			return false, fail(Type, "'in <string>' requires string as left operand, not %s", needle.class())
		}
		return strings.Contains(s, t), r.scan(len(s))
	case *Dict:
		_, ok, err := r.lookup(x, needle)
		return ok, err
	case *view:
		if x.kind == "dict_keys" {
			_, ok, err := r.lookup(x.of, needle)
			return ok, err
		}
	}
	pull, err := r.iterate(hay)
	if err != nil {
		return false, fail(Type, "argument of type '%s' is not iterable", hay.class())
	}
	for {
		v, ok, err := pull()
		if err != nil || !ok {
			return false, err
		}
		if same, err := r.equal(v, needle); err != nil || same {
			return same, err
		}
	}
}
