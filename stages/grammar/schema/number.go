package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluice-ai/sluice/stages/grammar/lang"
)

// Numbers are languages of their spellings. Exponents are only in the set of all numbers, and no larger than readers of
// JSON can hold; bounds, multiples, integers and what is left after a difference have none.

// numbers are the sets that every schema needs.
type numbers struct{ any, plain, integer *lang.DFA }

const (
	plainNumber = `-?(?:0|[1-9]\d*)(?:\.\d+)?`
	anyFraction = `(?:\.\d+)?`
	mostDigits  = 400 // of a bound: more than a float64 has
)

func newNumbers(left *lang.Budget) (n numbers, err error) {
	for _, x := range []struct {
		to   **lang.DFA
		expr string
	}{
		{&n.any, plainNumber + `(?:[eE][+-]?0?\d{1,2})?|-?\d(?:\.\d+)?[eE](?:[+-]?[12]\d\d|\+?30[0-7])|-?1(?:\.0+)?[eE]\+?308`},
		{&n.plain, plainNumber},
		{&n.integer, `-?(?:0|[1-9]\d*)(?:\.0+)?`},
	} {
		if *x.to, err = lang.Full(x.expr, left); err != nil {
			return n, err
		}
	}
	return n, nil
}

func (c *compiler) andNumber(a, b *lang.DFA) (*lang.DFA, error) {
	switch {
	case a == b || b == c.number.any:
		return a, nil
	case a == c.number.any:
		return b, nil
	}
	d, err := lang.And(a, b, &c.left)
	if err != nil || d.Empty() {
		return nil, err
	}
	return d, nil
}

// decimal is a number: its digits before and after the point, without zeros at the ends. Zero has none.
type decimal struct {
	negative    bool
	whole, part string
}

func readDecimal(text string) (d decimal, err error) {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	mantissa, d.negative = strings.CutPrefix(mantissa, "-")
	whole, part, _ := strings.Cut(mantissa, ".")
	e := 0
	if exponent != "" {
		if e, err = strconv.Atoi(exponent); err != nil || e > mostDigits || e < -mostDigits {
			return d, fmt.Errorf("%s has an exponent beyond %d", shown(text), mostDigits)
		}
	}
	if len(whole)+len(part) > mostDigits {
		return d, fmt.Errorf("a number of %d digits, want at most %d", len(whole)+len(part), mostDigits)
	}
	digits, point := whole+part, len(whole)+e
	if point < 0 {
		digits, point = strings.Repeat("0", -point)+digits, 0
	}
	if point > len(digits) {
		digits += strings.Repeat("0", point-len(digits))
	}
	d.whole, d.part = strings.TrimLeft(digits[:point], "0"), strings.TrimRight(digits[point:], "0")
	return d, nil
}

func (d decimal) zero() bool { return d.whole == "" && d.part == "" }

// integral writes the digits before the point.
func (d decimal) integral() string {
	if d.whole == "" {
		return "0"
	}
	return d.whole
}

// numeric reads what is said of numbers.
func (c *compiler) numeric(v *value, s *set) error {
	for _, k := range [...]string{"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"} {
		x := v.get(k)
		if x == nil || x.kind == isBool || s.num == nil {
			continue
		}
		if x.kind != isNumber {
			return fmt.Errorf("%s: want a number", k)
		}
		d, err := readDecimal(x.text)
		if err == nil {
			s.num, err = c.constrain(v, k, d, s.num)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", k, err)
		}
	}
	return nil
}

func (c *compiler) constrain(v *value, k string, d decimal, num *lang.DFA) (*lang.DFA, error) {
	var more *lang.DFA
	var err error
	switch k {
	case "multipleOf":
		more, err = c.multiples(d)
	default:
		strict := strings.HasPrefix(k, "exclusive")
		least := k == "minimum" || k == "exclusiveMinimum"
		if x := v.get(map[bool]string{true: "exclusiveMinimum", false: "exclusiveMaximum"}[least]); !strict && x != nil {
			strict = x.kind == isBool && x.yes // draft 4
		}
		more, err = c.full(bounded(d, least, strict))
	}
	if err != nil {
		return nil, err
	}
	return c.andNumber(num, more)
}

// bounded is an expression for the numbers of at least d, or at most d; strict: not d itself.
func bounded(d decimal, least, strict bool) string {
	sign, other := "", "-" // of the numbers on d's side of zero that are bounded, and of the others
	if d.negative && !d.zero() {
		sign, other = "-", ""
	}
	positive := sign == ""
	if d.zero() {
		nonzero := `(?:0\.\d*[1-9]\d*|[1-9]\d*` + anyFraction + `)`
		side := map[bool]string{true: "", false: "-"}[least]
		if strict {
			return side + nonzero
		}
		return side + nonzero + `|-?0(?:\.0+)?`
	}
	if positive == least { // beyond d, away from zero
		return sign + above(d, strict)
	}
	zero := `-0(?:\.0+)?|`
	if sign == "-" {
		zero = `-?0(?:\.0+)?|`
	}
	return zero + sign + below(d, strict) + `|` + other + `(?:0|[1-9]\d*)` + anyFraction
}

// above is an expression for the magnitudes of at least d.
func above(d decimal, strict bool) string {
	n := d.integral()
	ways := []string{fmt.Sprintf(`[1-9]\d{%d}\d*%s`, len(n), anyFraction)}
	for i := range n {
		if n[i] < '9' && (d.whole != "" || i > 0) {
			ways = append(ways, fmt.Sprintf(`%s[%c-9]\d{%d}%s`, n[:i], n[i]+1, len(n)-i-1, anyFraction))
		}
	}
	if d.whole == "" {
		ways = append(ways, `[1-9]`+anyFraction)
	}
	for i := range d.part {
		if d.part[i] < '9' {
			ways = append(ways, fmt.Sprintf(`%s\.%s[%c-9]\d*`, n, d.part[:i], d.part[i]+1))
		}
	}
	switch {
	case strict:
		ways = append(ways, fmt.Sprintf(`%s\.%s\d*[1-9]\d*`, n, d.part))
	case d.part == "":
		ways = append(ways, n+anyFraction)
	default:
		ways = append(ways, fmt.Sprintf(`%s\.%s\d*`, n, d.part))
	}
	return "(?:" + strings.Join(ways, "|") + ")"
}

// below is an expression for the magnitudes of at most d.
func below(d decimal, strict bool) string {
	n := d.integral()
	var ways []string
	if len(n) > 1 {
		ways = append(ways, `0`+anyFraction, fmt.Sprintf(`[1-9]\d{0,%d}%s`, len(n)-2, anyFraction))
	}
	for i := range n {
		least := byte('0')
		if i == 0 && len(n) > 1 {
			least = '1'
		}
		if n[i] > least {
			ways = append(ways, fmt.Sprintf(`%s[%c-%c]\d{%d}%s`, n[:i], least, n[i]-1, len(n)-i-1, anyFraction))
		}
	}
	for i := range d.part {
		if i > 0 {
			ways = append(ways, fmt.Sprintf(`%s\.%s`, n, d.part[:i]))
		}
		if d.part[i] > '0' {
			ways = append(ways, fmt.Sprintf(`%s\.%s[0-%c]\d*`, n, d.part[:i], d.part[i]-1))
		}
	}
	if d.part != "" {
		ways = append(ways, n)
	}
	switch {
	case !strict && d.part == "":
		ways = append(ways, n+`(?:\.0+)?`)
	case !strict:
		ways = append(ways, fmt.Sprintf(`%s\.%s0*`, n, d.part))
	case len(ways) == 0:
		return `[^\x00-\x{10FFFF}]`
	}
	return "(?:" + strings.Join(ways, "|") + ")"
}

// equal is the language of numbers that equal one of those.
func (c *compiler) equal(texts []string) (*lang.DFA, error) {
	var ways []string
	for _, t := range texts {
		d, err := readDecimal(t)
		if err != nil {
			return nil, err
		}
		sign, tail := "", `(?:\.0+)?`
		switch {
		case d.zero():
			sign = "-?"
		case d.negative:
			sign = "-"
		}
		if d.part != "" {
			tail = `\.` + d.part + `0*`
		}
		ways = append(ways, sign+d.integral()+tail)
	}
	return lang.Full(strings.Join(ways, "|"), &c.left)
}

// multiples is the language of the multiples of d.
func (c *compiler) multiples(d decimal) (*lang.DFA, error) {
	if d.negative || d.zero() {
		return nil, errors.New("want a number above 0")
	}
	const most = 5000
	m, err := strconv.Atoi(d.whole + d.part)
	places := len(d.part)
	if err != nil || m > most {
		return nil, fmt.Errorf("it has more than %d as its digits", most)
	}
	return lang.Multiples(m, places, &c.left)
}
