package jinja

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestPins holds corners that a comparison with Jinja2 3.1.6 on random templates brought up: the wanted texts are
// what it renders.
func TestPins(t *testing.T) {
	for _, c := range []struct{ source, want string }{
		{
			`{% for i in [1, 2] %}{{ i }}{% continue %}{% else %}none finished{% endfor %}`,
			`12none finished`,
		},
		{
			`{% for i in [1, 2] %}{% break %}{% else %}none finished{% endfor %}`,
			`none finished`,
		},
		{
			`{% for i in [1, 2] %}{% if i == 2 %}{% break %}{% endif %}{% else %}E{% endfor %}`,
			``,
		},
		{
			`{% set g = 5 | select("nosuch") %}never walked`,
			`never walked`,
		},
		{
			`{% set g = none | batch(2) %}never walked`,
			`never walked`,
		},
		{
			`{{ none | selectattr("a") | list }}{{ 0 | map("upper") | list }}`,
			`[][]`,
		},
		{
			`{{ "12" % [1] }}{{ "a%s" % missing }}{{ "%(k)s-%(k)5d" % {"k": 7} }}{{ "%x %X %o %#x %+d % d %e %g %G" % (255, 255, 8, 255, 5, 5, 1234.5, 0.00001, 1e20) }}`,
			`12a7-    7ff FF 10 0xff +5  5 1.234500e+03 1e-05 1E+20`,
		},
		{
			`{{ "{:>8}|{:<8}|{:^8}|{:*^9}|{:08.3f}|{:+d}|{:x}|{:#b}|{:e}|{:.3}|{:%}|{:_}".format("a", "b", "c", "d", 3.14159, 5, 255, 5, 12345.678, "abcdef", 0.25, 1234567) }}`,
			`       a|b       |   c    |****d****|0003.142|+5|ff|0b101|1.234568e+04|abc|25.000000%|1_234_567`,
		},
		{
			`{{ "{0[k]} {0.k} {1[0]} {{}} {2!r:>6}".format({"k": "v"}, [9], "z") }}`,
			`v v 9 {}    'z'`,
		},
		{
			`{{ 0x_1f }} {{ 0b1_0 }} {{ 00 }} {{ 1e5 }} {{ 1_0.5 }} {{ 1.5E-3 }}`,
			`31 2 0 100000.0 10.5 0.0015`,
		},
		{
			`{{ [1, 2, 3][::-2] }} {{ "abcdef"[-3:-1] }} {{ (1, 2, 3)[5:] }} {{ range(10)[2:8:3] | list }} {{ "abc"[True] }}`,
			`[3, 1] de () [2, 5] b`,
		},
		{
			`{{ 5 is sequence }} {{ range(2) is sequence }} {{ {}.keys() is sequence }} {{ missing is sequence }} {{ missing is iterable }}`,
			`False True False True True`,
		},
		{
			`{{ loop is defined }}{% for x in [1] if loop is defined %}x{% endfor %}`,
			`False`,
		},
		{
			`{% for x in [3, 1, 2] | sort %}{{ loop.revindex0 }}{{ loop.cycle(1, 2) }}{{ loop.nextitem }};{% endfor %}`,
			`212;123;01;`,
		},
		{
			`{% macro m(a, b="d") %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{{ caller is defined }}{% endmacro %}{{ m(1, 2, 3, z=4) }}{{ m.arguments }}`,
			`12(3,){'z': 4}False('a', 'b')`,
		},
		{
			`{% macro m() %}{{ caller("x") }}{% endmacro %}{% call(v) m() %}[{{ v }}]{% endcall %}`,
			`[x]`,
		},
		{
			`{% autoescape true %}{% set lt = "<" | safe %}{{ lt ~ "&" }}{{ lt + "&" }}{% set x %}<{{ "<" }}{% endset %}{{ x }}{% endautoescape %}`,
			`<&amp;<&amp;<&lt;`,
		},
		{
			`{{ 1.0 | round(1) }} {{ 1234.5678 | round(-2) }} {{ 1250 | round(-2) }} {{ 1350 | round(-2) }} {{ 2.675 | round(2) }} {{ 0.5 | round }} {{ 2.34 | round(1, "ceil") }} {{ 2.39 | round(1, "floor") }}`,
			`1.0 1200.0 1200 1400 2.67 0.0 2.4 2.3`,
		},
		{
			`{{ 7 // 0.5 }} {{ -7 % 2.5 }} {{ 5 // -0.3 }} {{ 0.0 // -1 }} {{ 1e308 * 10 }} {{ 10 ** 20 // 7 }} {{ -10 ** 21 % 7 }}`,
			`14.0 0.5 -17.0 -0.0 inf 14285714285714285714 1`,
		},
		{
			`{{ 9007199254740993 == 9007199254740993.0 }} {{ 10 ** 30 > 1e29 }} {{ true < 2 }} {{ [1, "a"] == [1.0, "a"] }}`,
			`False True True True`,
		},
		{
			`{{ {1: "a"}[1.0] }} {{ {true: "t"}[1] }} {{ {(1, 2): "x"}[(1, 2)] }} {{ {none: 1}[none] }}`,
			`a t x 1`,
		},
		{
			`{{ "a.b.c".rsplit(".", 1) }} {{ " a  b ".rsplit(none, 1) }} {{ " a  b c ".split(none, 1) }} {{ "abcabc".rindex("b") }} {{ "abc".find("b", 2) }} {{ "aXbX".count("X", 2) }} {{ "".partition("x") }} {{ "a-b-c".rpartition("-") }} {{ "abc".rpartition("x") }}`,
			`['a.b', 'c'] [' a', 'b'] ['a', 'b c '] 4 -1 1 ('', '', '') ('a-b', '-', 'c') ('', '', 'abc')`,
		},
		{
			`{{ "x".center(4) }}|{{ "xy".center(5) }}|{{ "-5".zfill(4) }}|{{ "a".ljust(3, ".") }}|{{ "ab".isalpha() }}{{ "".isalpha() }}{{ "²".isdigit() }}{{ "½".isnumeric() }}{{ "Ab Cd".istitle() }}`,
			` x  |  xy |-005|a..|TrueFalseTrueTrueTrue`,
		},
		{
			`{{ ["b", "a"] | sort | join(",") }} {{ {"b": 1, "a": 2} | dictsort | list }} {{ [{"a": 2, "b": 1}, {"a": 1, "b": 2}] | sort(attribute="a,b") | map(attribute="b") | list }}`,
			`a,b [('a', 2), ('b', 1)] [2, 1]`,
		},
		{
			`{{ [1, 2, 3, 4] | batch(3, "x") | map("join", "-") | list }} {{ [1, 2, 3, 4, 5] | slice(3, "f") | list }} {{ [3, 1] | min }} {{ [] | max is undefined }}`,
			`['1-2-3', '4-x-x'] [[1, 2], [3, 4], [5, 'f']] 1 True`,
		},
		{
			`{{ "abc def ghi" | truncate(8, false, "…", 0) }} {{ "abc" | wordcount }} {{ "<b>x</b> &amp; <!-- c --> y" | striptags }} {{ 1536 | filesizeformat(true) }} {{ [("a", 1)] | urlencode }}`,
			`abc… 1 x & y 1.5 KiB a=1`,
		},
		{
			`{{ "%d" % 3.9 }} {{ "%5.1f|%-6s|%%" % (2.25, "ab") }} {{ "%c%c" % (65, "B") }} {{ "%r" % ("a",) }} {{ "%.2s" % "abc" }}`,
			`3   2.2|ab    |% AB 'a' ab`,
		},
		{
			`{{ namespace(a=1) }} {{ dict([("a", 1)], b=2) }} {{ dict({"x": 1}) }} {{ {"a": 1}.items() }} {{ {"a": 1}.keys() }} {{ {"a": 1}.values() }}`,
			`<Namespace {'a': 1}> {'a': 1, 'b': 2} {'x': 1} dict_items([('a', 1)]) dict_keys(['a']) dict_values([1])`,
		},
		{
			`{{ "ŉß" | upper }} {{ "ΌΣΟΣ Σ" | lower }} {{ "ǆabc ßx".title() }} {{ "ßA".capitalize() }} {{ "aΣ".swapcase() }} {{ "Straße".casefold() }}`,
			`ʼNSS όσος σ ǅabc Ssx Ssa Aς strasse`,
		},
	} {
		out, err := renderJSON(c.source, []byte(`{}`), DefaultLimits())
		assert.NoError(t, err, c.source)
		assert.Equal(t, c.want, out, c.source)
	}
}
