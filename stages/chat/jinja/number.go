package jinja

import (
	"math"
	"math/big"
)

// maxBits bounds integers. Python prints at most 4300 digits, about as many.
const maxBits = 1 << 14

// normInt returns an integer in its shortest form.
func normInt(n *big.Int) Value {
	if n.IsInt64() {
		return Int(n.Int64())
	}
	return bigInt{n}
}

func boolInt(b Bool) Int {
	if b {
		return 1
	}
	return 0
}

// asInt converts integers and truth values.
func asInt(v Value) (*big.Int, bool) {
	switch x := v.(type) {
	case Int:
		return big.NewInt(int64(x)), true
	case Bool:
		return big.NewInt(int64(boolInt(x))), true
	case bigInt:
		return x.n, true
	}
	return nil, false
}

// smallInt converts integers that fit.
func smallInt(v Value) (int64, bool) {
	switch x := v.(type) {
	case Int:
		return int64(x), true
	case Bool:
		return int64(boolInt(x)), true
	}
	return 0, false
}

// asFloat converts any number.
func asFloat(v Value) (float64, bool) {
	switch x := v.(type) {
	case Float:
		return float64(x), true
	case bigInt:
		f, _ := new(big.Float).SetInt(x.n).Float64()
		return f, true
	}
	i, ok := smallInt(v)
	return float64(i), ok
}

// arithmetic computes a op b for two numbers.
func arithmetic(op string, a, b Value) (Value, error) {
	x, xInt := asInt(a)
	y, yInt := asInt(b)
	if xInt && yInt {
		return intArithmetic(op, x, y)
	}
	f, _ := asFloat(a)
	g, _ := asFloat(b)
	return floatArithmetic(op, f, g)
}

// smallArithmetic is the common case: no overflow, no allocation of big integers.
func smallArithmetic(op string, x, y int64) (Value, bool) {
	const half = 1 << 31
	switch op {
	case "+":
		if s := x + y; (s > x) == (y > 0) {
			return Int(s), true
		}
	case "-":
		if s := x - y; (s < x) == (y > 0) {
			return Int(s), true
		}
	case "*":
		if x > -half && x < half && y > -half && y < half {
			return Int(x * y), true
		}
	}
	return nil, false
}

func intArithmetic(op string, x, y *big.Int) (Value, error) {
	z := new(big.Int)
	switch op {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "**":
		return intPower(x, y)
	case "/":
		if y.Sign() == 0 {
			return nil, fail(ZeroDivision, "division by zero")
		}
		f, _ := new(big.Rat).SetFrac(x, y).Float64()
		if math.IsInf(f, 0) {
			return nil, fail(Overflow, "integer division result too large for a float")
		}
		return Float(f), nil
	default: // "//" and "%" round towards minus infinity
		if y.Sign() == 0 {
			return nil, fail(ZeroDivision, "integer division or modulo by zero")
		}
		m := new(big.Int)
		z.QuoRem(x, y, m)
		if m.Sign() != 0 && m.Sign() != y.Sign() {
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if op == "%" {
			z = m
		}
	}
	return bounded(z)
}

func bounded(n *big.Int) (Value, error) {
	if n.BitLen() > maxBits {
		return nil, fail(Limit, "an integer of more than %d bits", maxBits)
	}
	return normInt(n), nil
}

func intPower(x, y *big.Int) (Value, error) {
	if y.Sign() < 0 {
		f, _ := asFloat(normInt(x))
		g, _ := asFloat(normInt(y))
		return floatArithmetic("**", f, g)
	}
	if x.BitLen() <= 1 { // 0, 1, -1: any exponent is cheap
		if y.Sign() == 0 || x.Sign() < 0 && y.Bit(0) == 0 {
			return Int(1), nil
		}
		return normInt(x), nil
	}
	if !y.IsInt64() || y.Int64() > maxBits || int64(x.BitLen()-1)*y.Int64() > maxBits {
		return nil, fail(Limit, "an integer of more than %d bits", maxBits)
	}
	return bounded(new(big.Int).Exp(x, y, nil))
}

func floatArithmetic(op string, f, g float64) (Value, error) {
	switch op {
	case "+":
		return Float(f + g), nil
	case "-":
		return Float(f - g), nil
	case "*":
		return Float(f * g), nil
	case "**":
		return floatPower(f, g)
	}
	if g == 0 {
		return nil, fail(ZeroDivision, "float division by zero")
	}
	if op == "/" {
		return Float(f / g), nil
	}
	m := math.Mod(f, g)
	if m != 0 && (m < 0) != (g < 0) {
		m += g
	} else if m == 0 {
		m = math.Copysign(0, g)
	}
	if op == "%" {
		return Float(m), nil
	}
	q := math.Round((f - m) / g)
	if q == 0 {
		q = math.Copysign(0, f/g)
	}
	return Float(q), nil
}

func floatPower(f, g float64) (Value, error) {
	switch {
	case f == 0 && g < 0:
		return nil, fail(ZeroDivision, "0.0 cannot be raised to a negative power")
	case f < 0 && g != math.Trunc(g) && !math.IsInf(f, 0):
		return nil, fail(Type, "complex numbers are not supported")
	}
	p := math.Pow(f, g)
	if math.IsInf(p, 0) && !math.IsInf(f, 0) && !math.IsInf(g, 0) {
		return nil, fail(Overflow, "(34, 'Numerical result out of range')")
	}
	return Float(p), nil
}

// compareNumbers orders two numbers exactly; ok is false if either is NaN.
func compareNumbers(a, b Value) (order int, ok bool) {
	if x, isInt := smallInt(a); isInt {
		if y, isInt := smallInt(b); isInt {
			switch {
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	}
	x, ok := exact(a)
	y, ok2 := exact(b)
	if !ok || !ok2 {
		return 0, false
	}
	return x.Cmp(y), true
}

func exact(v Value) (*big.Float, bool) {
	if f, ok := v.(Float); ok {
		if math.IsNaN(float64(f)) {
			return nil, false
		}
		return big.NewFloat(float64(f)), true
	}
	n, _ := asInt(v)
	return new(big.Float).SetPrec(maxBits + 64).SetInt(n), true
}

func isNumber(v Value) bool {
	switch v.(type) {
	case Int, Bool, Float, bigInt:
		return true
	}
	return false
}
