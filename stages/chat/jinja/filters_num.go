package jinja

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// truncated is int(f).
func truncated(f float64) (Value, error) {
	if math.IsNaN(f) {
		return nil, fail(Argument, "cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		return nil, fail(Overflow, "cannot convert float infinity to integer")
	}
	n, _ := big.NewFloat(f).Int(nil)
	return normInt(n), nil
}

// parseInt is int(text, base); base 0 reads prefixes.
func parseInt(s string, base int) (Value, bool) {
	s = strings.TrimFunc(s, isSpace)
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || len(s) > maxDigits {
		return nil, false
	}
	if len(digits) > 2 && digits[0] == '0' {
		prefix := map[byte]int{'x': 16, 'o': 8, 'b': 2}[digits[1]|0x20]
		if prefix != 0 && (prefix == base || base == 0) {
			digits, base = digits[2:], prefix
			digits = strings.TrimPrefix(digits, "_")
		}
	}
	if base == 0 {
		base = 10
	}
	if digits == "" || digits[0] == '_' || digits[len(digits)-1] == '_' || strings.Contains(digits, "__") ||
		digits[0] == '+' || digits[0] == '-' {
		return nil, false
	}
	n, ok := new(big.Int).SetString(strings.ReplaceAll(digits, "_", ""), base)
	if !ok {
		return nil, false
	}
	if s[0] == '-' {
		n.Neg(n)
	}
	return normInt(n), true
}

// parseFloat is float(text).
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP") {
		return 0, false // hexadecimal floats are Go's, not Python's
	}
	if strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil && !math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

func toInt(_ *run, v Value, a []Value) (Value, error) {
	fallback := Value(Int(0))
	if a[0] != nil {
		fallback = a[0]
	}
	base, err := asCount("int", a[1], 10)
	if err != nil {
		return nil, err
	}
	if base != 0 && (base < 2 || base > 36) {
		base = 10
	}
	switch x := v.(type) {
	case *undefined:
		return nil, x.fault()
	case Float:
		n, err := truncated(float64(x))
		if err != nil {
			return fallback, nil
		}
		return n, nil
	case Str, markup:
		s, _ := text(x)
		if n, ok := parseInt(s, base); ok {
			return n, nil
		}
		if f, ok := parseFloat(s); ok {
			if n, err := truncated(f); err == nil {
				return n, nil
			}
		}
		return fallback, nil
	}
	if n, ok := asInt(v); ok {
		return normInt(n), nil
	}
	return fallback, nil
}

func toFloat(_ *run, v Value, a []Value) (Value, error) {
	if u, ok := v.(*undefined); ok {
		return nil, u.fault()
	}
	if f, ok := asFloat(v); ok {
		return Float(f), nil
	}
	if s, ok := text(v); ok {
		if f, ok := parseFloat(s); ok {
			return Float(f), nil
		}
	}
	if a[0] != nil {
		return a[0], nil
	}
	return Float(0), nil
}

func absolute(_ *run, v Value, _ []Value) (Value, error) {
	if f, ok := v.(Float); ok {
		return Float(math.Abs(float64(f))), nil
	}
	n, ok := asInt(v)
	if !ok {
		return nil, fail(Type, "bad operand type for abs(): '%s'", v.class())
	}
	return normInt(new(big.Int).Abs(n)), nil
}

func round(r *run, v Value, a []Value) (Value, error) {
	places, err := asCount("round", a[0], 0)
	if err != nil {
		return nil, err
	}
	places = max(min(places, 400), -400)
	method := "common"
	if a[1] != nil {
		method = textOr(a[1], "")
	}
	if u, ok := v.(*undefined); ok {
		return nil, u.fault()
	}
	if !isNumber(v) {
		return nil, fail(Type, "type %s doesn't define __round__ method", v.class())
	}
	f, _ := asFloat(v)
	scale := math.Pow(10, float64(places))
	switch method {
	case "common":
		return roundEven(v, f, places)
	case "ceil", "floor":
		whole := math.Ceil
		if method == "floor" {
			whole = math.Floor
		}
		n, err := truncated(whole(f * scale))
		if err != nil {
			return nil, err
		}
		if places < 0 {
			return arithmetic("/", n, Float(scale))
		}
		power, err := intPower(big.NewInt(10), big.NewInt(int64(places)))
		if err != nil {
			return nil, err
		}
		return arithmetic("/", n, power)
	}
	return nil, fail(Argument, "method must be common, ceil or floor")
}

// roundEven is Python's round: ties of the exact value go to the even neighbour; integers stay integers.
func roundEven(v Value, f float64, places int) (Value, error) {
	if n, ok := asInt(v); ok {
		if places >= 0 {
			return normInt(n), nil
		}
		unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-places)), nil)
		twice := new(big.Int).Mul(n, big.NewInt(2))
		twice.Add(twice, unit) // floor((2n + unit) / 2unit), then back by one for a tie that went to odd
		q, m := new(big.Int).DivMod(twice, new(big.Int).Mul(unit, big.NewInt(2)), new(big.Int))
		if m.Sign() == 0 && q.Bit(0) == 1 {
			q.Sub(q, big.NewInt(1))
		}
		return normInt(q.Mul(q, unit)), nil
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return Float(f), nil
	}
	if places >= 0 {
		rounded, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'f', places, 64), 64)
		return Float(rounded), nil
	}
	exact, _ := new(big.Float).SetFloat64(f).Rat(nil)
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(-places)), nil)
	q := new(big.Rat).Quo(exact, new(big.Rat).SetInt(unit))
	n, _ := new(big.Int).SetString(q.FloatString(0), 10) // halves away from zero
	if q.Denom().Cmp(big.NewInt(2)) == 0 && n.Bit(0) == 1 {
		n.Sub(n, big.NewInt(int64(n.Sign())))
	}
	out, _ := new(big.Float).SetInt(n.Mul(n, unit)).Float64()
	return Float(out), nil
}

func fileSize(_ *run, v Value, a []Value) (Value, error) {
	number, err := toFloat(nil, v, []Value{None{}})
	if err != nil {
		return nil, err
	}
	if _, ok := number.(Float); !ok {
		return nil, fail(Argument, "could not convert a %s to a float", v.class())
	}
	size, base, units := float64(number.(Float)), 1000.0, []string{"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"}
	if flag(a[0]) {
		base, units = 1024, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"}
	}
	switch {
	case size == 1:
		return Str("1 Byte"), nil
	case size < base:
		return Str(strconv.Itoa(int(size)) + " Bytes"), nil
	}
	unit := base
	for i, name := range units {
		unit *= base
		if size < unit || i == len(units)-1 {
			return Str(strconv.FormatFloat(base*size/unit, 'f', 1, 64) + " " + name), nil
		}
	}
	return nil, nil
}

var numberFilters = map[string]*builtin{
	"int":            takes(0, "default base", toInt),
	"float":          takes(0, "default", toFloat),
	"abs":            takes(0, "", absolute),
	"round":          takes(0, "precision method", round),
	"filesizeformat": takes(0, "binary", fileSize),
}
